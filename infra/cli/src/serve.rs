//! Running the functions and the HTTP API until somebody stops them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use functions::api::{HEALTH, METRICS, router_with_trials};
use local::http::{self, Door, Limits, PageFile, Server, UploadsAt};
use local::{output, stop};
use service::SearchService;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::args;
use crate::page;
use crate::trials::Trials;
use crate::workspace::{self, Workspace};

/// The default address for a data directory: only this machine can reach it.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Receives messages and requests until the process is asked to stop, and finishes what has begun if it can be soon.
/// Other messages are delivered again, here or elsewhere.
pub(crate) async fn run(args: &args::Serve) -> anyhow::Result<bool> {
    let mut workspace = Workspace::open(workspace::settings(&args.place)?).await?;
    let listener = listen(args, &workspace)?;
    if let (Some((_, address)), Some(home)) = (&listener, workspace.home()) {
        let url = format!("http://{address}{}", http::UPLOADS);
        let store = Arc::clone(&home.store);
        workspace.backend.ports.uploads = Ok(Arc::new(UploadsAt { store, url }));
    }
    let runner = workspace.runner(&args.trial)?;
    let (stopping, mut stopped) = watch::channel(());
    let api = match listener {
        Some((listener, address)) => {
            let trials = Arc::new(Trials::default());
            let mut routes =
                router_with_trials(SearchService::over(&runner.ports(), &functions::SYSTEM)?, trials);
            let page = page::files();
            // They hold nothing; what the page asks for needs the token.
            let open = page.iter().map(PageFile::address).collect();
            routes = routes.merge(http::page(page));
            let limits = Limits::of_this_process();
            if let Some(home) = workspace.home() {
                routes = routes.merge(http::uploads(Arc::clone(&home.store), &limits));
            }
            let door = Door::of(address.ip(), args.host.clone(), open);
            if let Some(token) = &door.token {
                let reached = "other machines can reach this server: the page asks for the token, every request needs the header field";
                output::remark(reached);
                output::remark(&format!("  Authorization: Bearer {token}"));
            }
            output::remark(&format!(
                "health at http://{address}{HEALTH}, metrics at http://{address}{METRICS}"
            ));
            output::remark(&format!("answering at http://{address}"));
            let stop = async move { drop(stopped.changed().await) };
            Some(tokio::spawn(http::serve(listener, Server { router: routes, door, limits }, stop)))
        }
        None => None,
    };
    output::remark(&format!("working in {}; Ctrl-C stops", workspace.name()));
    let told = async {
        stop::asked_to_stop().await;
        output::remark("finishing what has begun; Ctrl-C again stops at once");
        stop::stop_in_time();
        drop(stopping);
    };
    runner.run_until(told).await?;
    if let Some(api) = api {
        api.await?.context("answering requests failed")?;
    }
    output::remark("stopped");
    Ok(true)
}

fn listen(args: &args::Serve, workspace: &Workspace) -> anyhow::Result<Option<(TcpListener, SocketAddr)>> {
    let default = workspace.home().map(|_| DEFAULT_LISTEN);
    let Some(address) = args.listen.or(default) else { return Ok(None) };
    let listener = http::listen(address)
        .with_context(|| format!("{address} cannot be listened at (--listen takes another address)"))?;
    let address = listener.local_addr()?;
    Ok(Some((listener, address)))
}
