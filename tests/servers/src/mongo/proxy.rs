//! An unreliable network between the adapter and the server, controlled by the test.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Forwards all traffic unless it is [down](Proxy::cut_off). It discards the response to a selected command and closes
/// the connection: the server has executed the command, but the client cannot know.
pub struct Proxy {
    port: u16,
    cut: Arc<Mutex<Option<Vec<u8>>>>,
    down: watch::Sender<bool>,
}

impl Proxy {
    /// Starts a proxy for the server at `host`, such as `127.0.0.1:27017`.
    pub async fn before(host: String) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let cut = Arc::new(Mutex::new(None));
        let orders = Arc::clone(&cut);
        let (down, is_down) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (host, orders, mut is_down) = (host.clone(), Arc::clone(&orders), is_down.clone());
                tokio::spawn(async move {
                    // The end of a connection does not concern the proxy.
                    tokio::select! {
                        biased;
                        _ = is_down.wait_for(|is_down| *is_down) => {}
                        _ = pass(client, &host, &orders) => {}
                    }
                });
            }
        });
        Ok(Self { port, cut, down })
    }

    /// Closes every connection, and each new one immediately, until [`Proxy::restore`].
    pub fn cut_off(&self) {
        self.down.send_replace(true);
    }

    /// Forwards traffic again.
    pub fn restore(&self) {
        self.down.send_replace(false);
    }

    /// Returns the address of the proxy.
    pub fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port)
    }

    /// Discards the response to the next command with this name on this collection.
    pub fn lose_answer_to(&self, command: &str, collection: &str) {
        // A BSON string element: type 2, name, length, value.
        let mut pattern = vec![2];
        pattern.extend(command.as_bytes());
        pattern.push(0);
        pattern.extend(u32::try_from(collection.len() + 1).unwrap_or_default().to_le_bytes());
        pattern.extend(collection.as_bytes());
        *self.order() = Some(pattern);
    }

    /// Returns `true` if a response was discarded.
    pub fn has_cut(&self) -> bool {
        self.order().is_none()
    }

    fn order(&self) -> std::sync::MutexGuard<'_, Option<Vec<u8>>> {
        self.cut.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

async fn pass(mut client: TcpStream, host: &str, orders: &Mutex<Option<Vec<u8>>>) -> io::Result<()> {
    let mut server = TcpStream::connect(host).await?;
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut lose = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let asked = &asked[..read?];
                lose |= is_ordered(asked, orders);
                if asked.is_empty() {
                    return Ok(());
                }
                server.write_all(asked).await?;
            }
            read = server.read(&mut answered) => {
                let read = read?;
                if read == 0 || lose {
                    return Ok(());
                }
                client.write_all(&answered[..read]).await?;
            }
        }
    }
}

fn is_ordered(asked: &[u8], orders: &Mutex<Option<Vec<u8>>>) -> bool {
    let mut order = orders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let is = order.as_ref().is_some_and(|pattern| asked.windows(pattern.len()).any(|part| part == pattern));
    if is {
        *order = None;
    }
    is
}
