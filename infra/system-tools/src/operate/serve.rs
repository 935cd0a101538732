//! The operator's HTTP routes and page on a port, until the process is stopped.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use local::http::{self, AccessPolicy, Limits, PageFile, Server};
use local::{output, stop, user_name};
use messages::store::chain;
use operate::Operator;
use operate::http::{OperatorApi, router};
use saga::Failures;
use uuid::Uuid;

use super::{OpenSystem, program};

/// The default address: only this machine can reach it.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// The interval between collections of failures, and between the steps of a retry.
const WORK_INTERVAL: Duration = Duration::from_secs(1);
/// The page itself.
const INDEX: &str = "index.html";

/// The address and the data to serve.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// Address to listen on; an address that other machines can reach requires a token, which is printed
    #[arg(long, value_name = "ADDRESS", default_value_t = DEFAULT_LISTEN)]
    pub listen: SocketAddr,
    /// Host name that clients use, in addition to localhost and the addresses of this machine
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Folder with the built page; without it, only the HTTP API is served
    #[arg(long, value_name = "DIR")]
    pub page: Option<PathBuf>,
}

/// Serves until the process is asked to stop. Concurrently it collects failures and takes the steps of retries, as a
/// worker does.
pub(super) async fn run<P>(opened: OpenSystem<P>, args: &Serve) -> anyhow::Result<bool> {
    let system = opened.system;
    let page = args.page.as_deref().map(|folder| page(folder, system.name)).transpose()?.unwrap_or_default();
    let listener = http::listen(args.listen)
        .with_context(|| format!("cannot listen on {} (--listen takes another address)", args.listen))?;
    let address = listener.local_addr()?;
    let open = page.iter().map(PageFile::address).collect();
    let access = AccessPolicy::of(address.ip(), args.host.clone(), open);
    // A client with the token may be another person than the one who started the server.
    let operator = if access.token.is_some() { Operator::unnamed() } else { Operator { name: user_name() } };
    let api = Arc::new(OperatorApi::over(opened.engine, system, program())?);
    let failures = api.failures().clone();
    let routes = router(api, move |_| Some(operator.clone())).merge(http::page(page));
    if let Some(token) = &access.token {
        output::remark("other machines can reach this server; every request needs the header field");
        output::remark(&format!("  Authorization: Bearer {token}"));
    }
    output::remark(&format!("answering at http://{address}"));
    output::remark(&format!("operating {}; Ctrl-C stops", system.name));
    let until_stopped = async {
        stop::asked_to_stop().await;
        stop::stop_in_time();
    };
    let server = Server { router: routes, access, limits: Limits::of_this_process() };
    let serving = http::serve(listener, server, until_stopped);
    tokio::select! {
        () = serving => {}
        () = work(&failures) => {}
    }
    output::remark("stopped");
    Ok(true)
}

/// Collects failures and takes the steps of retries. Never ends.
async fn work(failures: &Failures) {
    let mut is_failing = false;
    loop {
        let done = failures.run(None).await;
        if let (Err(error), false) = (&done, is_failing) {
            output::remark(&format!("failures cannot be collected: {}", chain(error)));
        }
        is_failing = done.is_err();
        failures.reporter.host.sleep(WORK_INTERVAL).await;
    }
}

/// Reads the files of a built page, and writes the name of the system into it. The page then shows only the screens for
/// operators.
fn page(folder: &Path, system: &str) -> anyhow::Result<Vec<PageFile>> {
    let mut files = Vec::new();
    read(folder, "", &mut files)
        .with_context(|| format!("reading the page in {}; `make page` builds it", folder.display()))?;
    let index = files.iter_mut().find(|file| file.path == INDEX);
    let index =
        index.with_context(|| format!("{} has no {INDEX}; `make page` builds the page", folder.display()))?;
    let text = String::from_utf8(index.bytes.to_vec()).context("the page is not text")?;
    let named = format!("<meta name=\"system\" content=\"{}\" />\n  </head>", attribute(system));
    *index = file(INDEX.to_owned(), text.replacen("</head>", &named, 1).into_bytes());
    Ok(files)
}

fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// Reads the files below a folder. Hidden files keep the folder in the repository and are skipped.
fn read(folder: &Path, below: &str, files: &mut Vec<PageFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let path = format!("{below}{name}");
        if entry.file_type()?.is_dir() {
            read(&entry.path(), &format!("{path}/"), files)?;
        } else {
            files.push(file(path, fs::read(entry.path())?));
        }
    }
    Ok(())
}

fn file(path: String, bytes: Vec<u8>) -> PageFile {
    let tag = Uuid::new_v5(&Uuid::nil(), &bytes).simple().to_string();
    let (path, is_gzip) = match path.strip_suffix(".gz") {
        Some(path) => (path.to_owned(), true),
        None => (path, false),
    };
    PageFile { path, bytes: bytes.into(), is_gzip, tag }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_names_its_system() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("assets")).unwrap();
        fs::write(folder.path().join("assets/index-1a.js.gz"), b"packed").unwrap();
        fs::write(folder.path().join(".gitignore"), b"*").unwrap();
        let error = page(folder.path(), "orders").unwrap_err().to_string();
        assert!(error.ends_with("has no index.html; `make page` builds the page"), "{error}");
        fs::write(folder.path().join(INDEX), b"<html><head></head></html>").unwrap();
        let mut files = page(folder.path(), "a\"b").unwrap();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let paths: Vec<(&str, bool)> = files.iter().map(|file| (file.path.as_str(), file.is_gzip)).collect();
        assert_eq!(paths, [("assets/index-1a.js", true), (INDEX, false)]);
        let text = std::str::from_utf8(&files[1].bytes).unwrap();
        assert!(text.contains("<meta name=\"system\" content=\"a&quot;b\" />"), "{text}");
    }
}
