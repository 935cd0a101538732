//! Running the functions and the HTTP API until the process is stopped.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use http_api::{HEALTH, METRICS, router_with_trials};
use local::http::{self, AccessPolicy, Limits, PageFile, Server, UploadsAt};
use local::{output, stop};
use service::SearchService;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::args;
use crate::fault_trials::Trials;
use crate::page;
use crate::workspace::{self, Workspace};

/// The default address for a data directory: only this machine can reach it.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Handles messages and requests until the process is asked to stop, and then finishes those in flight that end soon.
/// The other messages are redelivered, here or to another process.
pub(crate) async fn run(args: &args::Serve) -> anyhow::Result<bool> {
    let mut workspace = Workspace::open(workspace::settings(&args.location)?).await?;
    let listener = listen(args, &workspace)?;
    if let (Some((_, address)), Some(home)) = (&listener, workspace.home()) {
        let url = format!("http://{address}{}", http::UPLOADS);
        let store = Arc::clone(&home.store);
        workspace.backend.ports.uploads = Ok(Arc::new(UploadsAt { store, url }));
    }
    let runner = workspace.runner(&args.faults)?;
    let (stopping, mut stopped) = watch::channel(());
    let api = match listener {
        Some((listener, address)) => {
            let trials = Arc::new(Trials::default());
            let mut routes =
                router_with_trials(SearchService::over(&runner.ports(), &functions::SYSTEM)?, trials);
            let page = page::files();
            // The page's own files contain no data, so they need no token. The requests of the page to the API do.
            let open = page.iter().map(PageFile::address).collect();
            routes = routes.merge(http::page(page));
            let limits = Limits::of_this_process();
            if let Some(home) = workspace.home() {
                routes = routes.merge(http::uploads(Arc::clone(&home.store), &limits));
            }
            let access = AccessPolicy::of(address.ip(), args.host.clone(), open);
            if let Some(token) = &access.token {
                let reachable = "other machines can reach this server; the page asks for the token, and every request needs the header field";
                output::remark(reachable);
                output::remark(&format!("  Authorization: Bearer {token}"));
            }
            output::remark(&format!(
                "health at http://{address}{HEALTH}, metrics at http://{address}{METRICS}"
            ));
            output::remark(&format!("answering at http://{address}"));
            let stop = async move { drop(stopped.changed().await) };
            Some(tokio::spawn(http::serve(listener, Server { router: routes, access, limits }, stop)))
        }
        None => None,
    };
    output::remark(&format!("working in {}; Ctrl-C stops", workspace.name()));
    let until_stopped = async {
        stop::asked_to_stop().await;
        output::remark("finishing messages and requests in progress; Ctrl-C again stops immediately");
        stop::stop_in_time();
        drop(stopping);
    };
    runner.run_until(until_stopped).await?;
    if let Some(api) = api {
        api.await.context("answering requests failed")?;
    }
    output::remark("stopped");
    Ok(true)
}

fn listen(args: &args::Serve, workspace: &Workspace) -> anyhow::Result<Option<(TcpListener, SocketAddr)>> {
    let default = workspace.home().map(|_| DEFAULT_LISTEN);
    let Some(address) = args.listen.or(default) else { return Ok(None) };
    let listener = http::listen(address)
        .with_context(|| format!("cannot listen on {address} (--listen takes another address)"))?;
    let address = listener.local_addr()?;
    Ok(Some((listener, address)))
}
