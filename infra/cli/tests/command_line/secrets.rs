//! Secrets that no log or error contains: object keys, which contain tokens, and the fields of forms.

use std::sync::Arc;
use std::time::Duration;

use backend::{Config, SystemHost};
use embedded::{Settings, Store};
use imports::queues::QUEUES;
use imports::{PresignedPost, ProjectId};
use messages::Host;
use servers::TestResult;
use servers::mongo::eventually;
use service::{AnnouncedSearch, NewFile, NewSearch, SearchService};

use crate::program::{Program, bundled};

const FILE: &str = "psycinfo.ris";
const TIMEOUT: Duration = Duration::from_secs(60);
/// The minimum length of a form field that counts as a secret. Shorter fields contain well-known words, which logs may
/// contain too.
const MIN_SECRET: usize = 16;

/// Strings that an attacker could use.
#[derive(Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn of(forms: &[&PresignedPost]) -> Self {
        let mut secrets = Self::default();
        for form in forms {
            secrets.add_key(&form.fields["key"]);
            secrets.0.extend(form.fields.values().filter(|value| value.len() >= MIN_SECRET).cloned());
        }
        secrets
    }

    /// Adds a key, its form in a URL, and its token.
    pub(crate) fn add_key(&mut self, key: &str) {
        let token = key.rsplit('/').nth(1).unwrap();
        assert_eq!(token.len(), 36, "{key}");
        self.0.extend([key.to_owned(), key.replace('/', "%2F"), token.to_owned()]);
    }

    /// Adds a secret.
    #[cfg(feature = "services")]
    pub(crate) fn and(mut self, secret: &str) -> Self {
        self.0.push(secret.to_owned());
        self
    }

    /// Panics with the line that contains a secret.
    pub(crate) fn are_not_in(&self, said: &str) {
        assert!(!self.0.is_empty());
        for line in said.lines() {
            let found = self.0.iter().find(|secret| line.contains(secret.as_str()));
            assert!(found.is_none(), "{found:?} is exposed: {line}");
        }
    }
}

/// Creates a search whose files are uploaded but not read yet.
async fn uploaded(program: &Program) -> Result<AnnouncedSearch, Box<dyn std::error::Error + Send + Sync>> {
    let host: Arc<dyn Host> = Arc::new(SystemHost);
    let store = Arc::new(Store::open(&program.data(), Arc::clone(&host), Settings::new(&QUEUES))?);
    let ports = backend::embedded(&store, Arc::clone(&host), Arc::new(()), Config::default()).ports;
    let content = std::fs::read(bundled(FILE))?;
    let file = |name: &str| NewFile { name: name.into(), size_bytes: content.len() as u64 };
    let request = NewSearch { name: "secret".into(), files: vec![file("a.ris"), file("b.ris")] };
    let announced = SearchService::over(&ports, &functions::SYSTEM)?
        .create(ProjectId::from_uuid(host.fresh_id()), &request)
        .await?;
    for file in &announced.files {
        store.upload(&file.upload, content.as_slice()).await?;
    }
    Ok(announced)
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_objects_hide_their_keys() -> TestResult {
    let program = Program::new().setting("RUST_LOG", "trace");
    let announced = uploaded(&program).await?;
    let secrets = Secrets::of(&announced.files.iter().map(|file| &file.upload).collect::<Vec<_>>());
    // One object is missing, which may be temporary. The other was replaced by a folder.
    let objects = std::fs::read_dir(program.data().join("objects"))?.collect::<Result<Vec<_>, _>>()?;
    let [away, changed] = objects.as_slice() else { return Err("two files were uploaded".into()) };
    std::fs::remove_file(away.path())?;
    std::fs::remove_file(changed.path())?;
    std::fs::create_dir(changed.path())?;
    let log = program.folder().join("log");
    let mut server = program.start_logging(&["serve", "--listen", "127.0.0.1:0"], &log);
    let search = announced.search_id.to_string();
    let refused = format!("of search {search} cannot succeed");
    let failed = format!("of search {search} failed");
    let all = async || {
        let shown = ["show", "studies"].map(|command| program.run(&[command, &search]));
        let listed = program.run(&["outbox", "list", "--json"]);
        let runs = shown.iter().chain([&listed]).map(|run| format!("{}\n{}", run.stdout, run.stderr));
        let said = runs.chain([std::fs::read_to_string(&log)?]).collect::<Vec<_>>().join("\n");
        Ok::<_, std::io::Error>(said)
    };
    let told = eventually("both are told", TIMEOUT, async || {
        let said = all().await?;
        secrets.are_not_in(&said);
        Ok::<_, std::io::Error>(said.contains(&refused) && said.contains(&failed))
    })
    .await;
    let killed = server.kill();
    server.wait()?;
    killed?;
    told?;
    Ok(())
}

/// The program's own disk reports the error.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn upload_to_full_disk_hides_its_key() -> TestResult {
    let program = Program::new().setting("RUST_LOG", "trace");
    let room = 1 << 20;
    // All titles differ, so that the stored data is large even after compression.
    let title = |n: u32| uuid::Uuid::new_v5(&uuid::Uuid::nil(), &n.to_le_bytes());
    let records = (0..100_000).map(|n| format!("TY  - JOUR\nTI  - {}\nER  - \n\n", title(n)));
    let large = program.file("large.ris", records.collect::<String>().as_bytes());
    let child = program.start_with_space(&["import", large.to_str().unwrap(), "--json"], room);
    let ended = child.wait_with_output()?;
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8(ended.stderr)?;
    assert!(said.contains("uploading failed"), "{said}");
    let store = Store::open_read_only(&program.data(), Arc::new(SystemHost), Settings::new(&QUEUES))?;
    let pending = store.pending_uploads().await?;
    Secrets::of(&[&pending.first().ok_or("it is still to be uploaded")?.upload.form]).are_not_in(&said);
    Ok(())
}
