//! orders: a few complete orders on SQLite, with a configurable number of deliveries of each message.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend::{AdvancedHost, Config};
use clap::Parser;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use embedded::{Settings, Store};
use local::{FaultInjection, Home, Runner, output};
use messages::{DecisionRecord, RecordedVerdict, Verdict};
use orders::shop::{OrderError, Shop, partition};
use orders::{DISPATCH_OUTBOX, QUEUES, SYSTEM, TIME_TO_PAY};
use outbox::View;
use saga::Engine;

/// The maximum wait for something that should happen immediately.
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Places three orders: one is paid, one is paid too little, one is not paid; and a fourth when everything is sold out.
#[derive(Parser)]
struct Args {
    /// The data directory [default: a temporary folder]
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// The number of deliveries of each message.
    #[arg(long, default_value_t = 1)]
    duplicate: u32,
    /// The number of further orders, which wait for their payment when the program ends.
    #[arg(long, default_value_t = 0)]
    unpaid: u32,
}

#[tokio::main]
async fn main() -> ExitCode {
    telemetry::start(telemetry::LogFormat::Human);
    let args = Args::parse();
    let done = match &args.data_dir {
        Some(dir) => run(dir, &args).await,
        None => match tempfile::tempdir() {
            Ok(dir) => run(dir.path(), &args).await,
            Err(error) => Err(error.into()),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(dir: &Path, args: &Args) -> anyhow::Result<()> {
    let host = Arc::new(AdvancedHost::default());
    let lock = Arc::new(Store::lock(dir)?);
    let store = Arc::new(Store::open(dir, host.clone(), Settings::of(SYSTEM.name, &QUEUES))?);
    store.recover(&lock).await?;
    let (clock, observer) = (Arc::clone(&host), Arc::clone(&store));
    let ports = move |store: &Arc<Store>| -> Engine {
        backend::engine::embedded(&SYSTEM, store, clock.clone(), observer.clone(), Config::of(SYSTEM.name))
            .ports
    };
    let engine = ports(&store);
    let home = Home { store: Arc::clone(&store), lock, ports: Arc::new(ports) };
    let runner = Runner::new(
        &SYSTEM,
        engine,
        Some(home),
        FaultInjection { copies: args.duplicate, ..FaultInjection::default() },
    );
    let shop = Shop::over(&runner.ports())?;
    let numbers = runner
        .run_until(async {
            let numbers = play(&shop, &host, &runner).await?;
            leave(&shop, &runner, args.unpaid).await?;
            anyhow::Ok(numbers)
        })
        .await??;
    print(&shop, &store, &numbers).await
}

/// The actions of the customers.
async fn play(shop: &Shop, host: &AdvancedHost, runner: &Runner<Engine>) -> anyhow::Result<[String; 3]> {
    let before = shop.orders().await?.items.len();
    let numbers = [1, 2, 3].map(|n| format!("A-{}", before + n));
    shop.restock(numbers.len() as u64).await?;
    for number in &numbers {
        shop.place(number, 1_000).await?;
        // Repeated, as by a second click.
        shop.place(number, 1_000).await?;
    }
    match shop.place("late", 1_000).await {
        Err(OrderError::SoldOut) => output::line("order late was refused: everything is sold out")?,
        other => anyhow::bail!("order late should have been refused: {other:?}"),
    }
    shop.pay(&numbers[0], 1_000).await?;
    shop.pay(&numbers[1], 999).await?;
    until(async || Ok(runner.is_idle().await? == Some(true))).await?;
    host.advance(TIME_TO_PAY);
    until(async || Ok(shop.orders().await?.items.iter().all(|view| view.ended))).await?;
    until(async || Ok(runner.is_idle().await? == Some(true))).await?;
    Ok(numbers)
}

/// Places orders that are not paid.
async fn leave(shop: &Shop, runner: &Runner<Engine>, unpaid: u32) -> anyhow::Result<()> {
    let before = shop.orders().await?.items.len();
    shop.restock(unpaid.into()).await?;
    for n in 1..=unpaid as usize {
        shop.place(&format!("A-{}", before + n), 1_000).await?;
    }
    until(async || Ok(runner.is_idle().await? == Some(true))).await
}

async fn until(holds: impl AsyncFn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let began = Instant::now();
    while !holds().await? {
        anyhow::ensure!(began.elapsed() < TIMEOUT, "some orders have not ended");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

async fn print(shop: &Shop, store: &Store, numbers: &[String; 3]) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header([
        "order",
        "state",
        "handled",
        "duplicates",
        "what was decided",
    ]);
    let mut states = Vec::new();
    for number in numbers {
        let (view, mut decisions) = (shop.order(number).await?, store.decisions(partition(number)).await?);
        // Decisions about the sessions of requests are omitted.
        decisions.retain(|decision| decision.function != DISPATCH_OUTBOX.name);
        let count =
            |verdict| decisions.iter().filter(|decision| decision.verdict == verdict).count().to_string();
        let state = state(&view);
        table.add_row([
            number.clone(),
            state.clone(),
            count(Verdict::Handled),
            count(Verdict::Duplicate),
            decided(&decisions),
        ]);
        states.push(state);
    }
    output::block(&table.to_string())?;
    anyhow::ensure!(states == ["shipped", "overdue", "overdue"], "the orders should have ended otherwise");
    Ok(())
}

fn state(view: &View) -> String {
    view.body["state"].as_str().unwrap_or_default().to_owned()
}

/// Returns the decisions that changed or refused something, each once.
fn decided(decisions: &[DecisionRecord<RecordedVerdict>]) -> String {
    let told = |decision: &&DecisionRecord<RecordedVerdict>| {
        [Verdict::Handled, Verdict::Rejected].iter().any(|told| decision.verdict == *told)
    };
    let mut lines: Vec<String> = Vec::new();
    for decision in decisions.iter().filter(told) {
        let line = format!("{}: {}", decision.message, decision.why);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}
