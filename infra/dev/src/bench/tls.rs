//! Local servers over TLS, behind a proxy that terminates TLS.
//!
//! The certificates are like those of AWS endpoints: RSA with 2048 bits, signed by an intermediate authority. Both ends
//! of a handshake run on this machine, so it costs more than between two machines.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PKCS_RSA_SHA256};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The variables that may name an endpoint of AWS.
const ENDPOINTS: [&str; 5] = [
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_SQS",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_SECRETS_MANAGER",
];
const MONGODB_URI: &str = "MONGODB_URI";

/// Servers over TLS, which stop when this value is dropped.
pub(super) struct Servers {
    /// The environment variables that select them, with their values.
    pub(super) settings: Vec<(&'static str, String)>,
    _tasks: JoinSet<()>,
}

impl Servers {
    /// Starts a TLS proxy for every server for whose variable `named` returns an address. Writes the root's certificate
    /// to `dir`.
    ///
    /// # Errors
    /// Returns an error if an address is not that of a server without TLS, if a port or certificate cannot be
    /// created, or if the folder is not writable.
    pub(super) async fn before(named: impl Fn(&str) -> Option<String>, dir: &Path) -> anyhow::Result<Self> {
        let (root, config) = certificates()?;
        let root_file = dir.join("root.pem");
        std::fs::write(&root_file, root).with_context(|| format!("writing {}", root_file.display()))?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let mut tasks = JoinSet::new();
        let mut settings = vec![("SSL_CERT_FILE", root_file.display().to_string())];
        for name in ENDPOINTS {
            let Some(url) = named(name) else { continue };
            let server = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
            let server = server
                .with_context(|| format!("{name} is not the address of a server without TLS: {url}"))?;
            let port = front(&acceptor, server.to_owned(), &mut tasks).await?;
            settings.push((name, format!("https://localhost:{port}")));
        }
        if let Some(uri) = named(MONGODB_URI) {
            let port = front(&acceptor, server_of(&uri)?, &mut tasks).await?;
            settings.push((MONGODB_URI, over_tls(&uri, port, &root_file)));
        }
        Ok(Self { settings, _tasks: tasks })
    }
}

/// Listens with TLS. Returns the port.
async fn front(acceptor: &TlsAcceptor, server: String, tasks: &mut JoinSet<()>) -> anyhow::Result<u16> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let port = listener.local_addr()?.port();
    let acceptor = acceptor.clone();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        // A failed connection is closed, which its client notices.
        while let Ok((client, _)) = listener.accept().await {
            connections.spawn(pass(acceptor.clone(), client, server.clone()));
        }
    });
    Ok(port)
}

async fn pass(acceptor: TlsAcceptor, client: TcpStream, server: String) -> std::io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut client = acceptor.accept(client).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}

/// Returns the root's certificate as PEM, and the certificate chain of a server with the name `localhost`.
fn certificates() -> anyhow::Result<(String, ServerConfig)> {
    let key = || KeyPair::generate_for(&PKCS_RSA_SHA256);
    let authority = |common_name: &str| -> anyhow::Result<CertificateParams> {
        let mut params = CertificateParams::new([])?;
        params.distinguished_name.push(rcgen::DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(params)
    };
    let (root, root_key) = (authority("a root")?, key()?);
    let root_pem = root.self_signed(&root_key)?.pem();
    let root = Issuer::new(root, root_key);
    let (middle, middle_key) = (authority("an authority")?, key()?);
    let middle_der = middle.signed_by(&middle_key, &root)?.der().clone();
    let middle = Issuer::new(middle, middle_key);
    let leaf_key = key()?;
    let leaf = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let leaf_der = leaf.signed_by(&leaf_key, &middle)?.der().clone();
    let chain: Vec<CertificateDer<'static>> = vec![leaf_der, middle_der];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    Ok((root_pem, config))
}

/// Returns the host and the port of a MongoDB address.
fn server_of(uri: &str) -> anyhow::Result<String> {
    let Some(rest) = uri.strip_prefix("mongodb://") else {
        bail!("{MONGODB_URI} is not the address of a server without TLS");
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.contains(',') {
        bail!("{MONGODB_URI} does not name one server");
    }
    Ok(if host.contains(':') { host.to_owned() } else { format!("{host}:27017") })
}

/// Returns the address with TLS at a local port.
fn over_tls(uri: &str, port: u16, root: &Path) -> String {
    let rest = uri.strip_prefix("mongodb://").unwrap_or(uri);
    let split = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(split);
    let user = authority.rsplit_once('@').map_or(String::new(), |(user, _)| format!("{user}@"));
    let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
    let path = if path.is_empty() { "/" } else { path };
    let own = ["tls", "ssl", "tlsCAFile", "directConnection"];
    let kept = options
        .split('&')
        .filter(|option| !option.is_empty() && !own.contains(&option.split('=').next().unwrap_or_default()));
    let root = root.display();
    let added = format!("directConnection=true&tls=true&tlsCAFile={root}");
    let options: Vec<&str> = kept.chain([added.as_str()]).collect();
    format!("mongodb://{user}localhost:{port}{path}?{}", options.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_address_is_changed_to_tls() {
        let uri = "mongodb://u:p@127.0.0.1:4000/db?replicaSet=rs0&directConnection=false";
        assert_eq!(server_of(uri).unwrap(), "127.0.0.1:4000");
        assert_eq!(
            over_tls(uri, 5, Path::new("/r.pem")),
            "mongodb://u:p@localhost:5/db?replicaSet=rs0&directConnection=true&tls=true&tlsCAFile=/r.pem"
        );
        assert_eq!(server_of("mongodb://host").unwrap(), "host:27017");
        assert!(over_tls("mongodb://host", 5, Path::new("/r.pem")).starts_with("mongodb://localhost:5/?"));
        assert!(server_of("mongodb://a,b/").is_err() && server_of("mongodb+srv://a/").is_err());
    }

    #[tokio::test]
    async fn client_with_trusted_root_reaches_server_over_tls() {
        let plain = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = plain.local_addr().unwrap();
        let app = axum::Router::new().fallback(|| async { "answered" });
        tokio::spawn(async move { axum::serve(plain, app).await });
        let dir = tempfile::tempdir().unwrap();
        let named = |name: &str| (name == "AWS_ENDPOINT_URL").then(|| format!("http://{address}/"));
        let servers = Servers::before(named, dir.path()).await.unwrap();
        let setting = |name: &str| {
            servers.settings.iter().find(|(named, _)| *named == name).map(|(_, value)| value.clone()).unwrap()
        };
        let (url, root) = (setting("AWS_ENDPOINT_URL"), std::fs::read(setting("SSL_CERT_FILE")).unwrap());
        let root = reqwest::Certificate::from_pem(&root).unwrap();
        let trusting = reqwest::Client::builder().tls_certs_only([root]).build().unwrap();
        assert_eq!(trusting.get(&url).send().await.unwrap().text().await.unwrap(), "answered");
        assert!(reqwest::Client::new().get(&url).send().await.is_err());
    }
}
