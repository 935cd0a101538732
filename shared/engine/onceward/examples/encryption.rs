//! Encrypted fields: the number of a card is ciphertext in every queue, outbox, record, document and view.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::error::Error;
use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use onceward::messages::ReceiveMessages;
use onceward::prelude::*;
use onceward::sqlite::{Settings, Store};
use onceward::{SystemHost, serde_json};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The key of the data, and the key of the nonces. On AWS the program decrypts them with KMS when it starts.
static KEYS: LazyLock<Option<(LessSafeKey, hmac::Key)>> = LazyLock::new(|| {
    let data = UnboundKey::new(&AES_256_GCM, &[7; 32]).ok()?;
    Some((LessSafeKey::new(data), hmac::Key::new(hmac::HMAC_SHA256, &[8; 32])))
});

/// The nonce follows from the text, so a repeated transition returns the same data. Equal texts have equal ciphertexts.
fn seal(text: &str) -> Option<Vec<u8>> {
    let (data, nonces) = KEYS.as_ref()?;
    let nonce = *hmac::sign(nonces, text.as_bytes()).as_ref().first_chunk::<NONCE_LEN>()?;
    let mut sealed = text.as_bytes().to_vec();
    data.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed).ok()?;
    Some([nonce.as_slice(), &sealed].concat())
}

fn open(sealed: &[u8]) -> Option<String> {
    let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let (mut text, nonce) = (text.to_vec(), Nonce::assume_unique_for_key(*nonce));
    let text = KEYS.as_ref()?.0.open_in_place(nonce, Aad::empty(), &mut text).ok()?;
    String::from_utf8(text.to_vec()).ok()
}

/// A text that is encrypted wherever it is serialized, and hidden in logs.
#[derive(Clone, PartialEq, Eq)]
struct EncryptedText(String);

impl fmt::Debug for EncryptedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptedText(***)")
    }
}

impl Serialize for EncryptedText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let sealed = seal(&self.0).ok_or_else(|| S::Error::custom("the text cannot be encrypted"))?;
        sealed.serialize(to)
    }
}

impl<'de> Deserialize<'de> for EncryptedText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = open(&Vec::deserialize(from)?);
        text.map(Self).ok_or_else(|| D::Error::custom("the text cannot be decrypted"))
    }
}

const CARDS: Queue = Queue::named("cards");
messages! { enum Command of "shop" to CARDS { Charge { card: EncryptedText } = 1 } }
static QUEUES: [QueueSpec; 3] = [
    QueueSpec::without_consumer(CONTROL),
    QueueSpec::standard(CARDS, Queue::named("cards-dead")),
    QueueSpec::without_consumer(Queue::named("cards-dead")),
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dir, host) = (tempfile::tempdir()?, Arc::new(SystemHost));
    let store = Arc::new(Store::open(dir.path(), host.clone(), Settings::of("shop", &QUEUES))?);
    let (card, key) = (EncryptedText("4111 1111 1111 1111".to_owned()), Key::new("card", "Ada"));
    let entry = store.engine("shop", host, Arc::new(())).entry_point("web")?;
    let mut session = entry.session(PartitionKey::named("cards", "Ada"));
    session.write(key.clone(), serde_json::to_value(&card)?);
    session.send(&Command::Charge { card: card.clone() })?;
    session.commit().await?;
    let received = store.receive(&CARDS, 1, Duration::from_mins(1)).await?;
    let delivery = &received.first().ok_or("nothing was sent")?.delivery;
    assert_eq!(Message::decode(&delivery.body)?.read::<Command>()?, Command::Charge { card: card.clone() });
    let record = entry.session(PartitionKey::named("cards", "Ada")).read(key).await?.ok_or("no record")?;
    assert_eq!(serde_json::from_value::<EncryptedText>(record.body)?, card);
    let has = |file: &[u8], text: &str| file.windows(text.len()).any(|part| part == text.as_bytes());
    let files = std::fs::read_dir(dir.path())?.flatten().filter(|file| file.path().is_file());
    let files: Vec<Vec<u8>> = files.map(|file| std::fs::read(file.path())).collect::<Result<_, _>>()?;
    assert!(files.iter().any(|file| has(file, "Charge")) && !files.iter().any(|file| has(file, &card.0)));
    println!("the program reads the number, and no stored file contains it");
    Ok(())
}
