//! Benchmark of sweeps over many searches that are due simultaneously.

use backend::{BackendKind, Config};
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use dev::bench::backlog::{self, QUEUE_CALL, Row, Want};

use super::{folder, print};
use crate::args::BenchBacklog;

pub(super) async fn run(args: &BenchBacklog) -> anyhow::Result<bool> {
    let mut config = Config::from_env()?;
    config.backend = args.backend.map_or(config.backend, Into::into);
    let sizes: Vec<usize> = args.searches.iter().map(|count| *count as usize).collect();
    let rows = match config.backend {
        BackendKind::Embedded => {
            backlog::in_folder(&config, &folder(args.output.dir.as_ref())?, &sizes).await?
        }
        BackendKind::Aws => backlog::in_database(config, &sizes).await?,
    };
    print(args.output.json, &rows, |rows| table(rows))?;
    Ok(true)
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let of_queue = format!("calls to the queue, of {} ms", QUEUE_CALL.as_millis());
    table.set_header(["searches", "each with", "seconds", "a second", "calls to the store", &of_queue]);
    for Row { want, searches, seconds, store_calls, queue_calls } in rows {
        let want = match want {
            Want::Views => "a view to write",
            Want::Timeouts => "a timeout to send",
        };
        let rate = format!("{:.0}", *searches as f64 / seconds);
        let seconds = format!("{seconds:.1}");
        let [searches, store_calls, queue_calls] =
            [*searches as u64, *store_calls, *queue_calls].map(|count| count.to_string());
        table.add_row([&searches, want, &seconds, &rate, &store_calls, &queue_calls]);
    }
    table.to_string()
}
