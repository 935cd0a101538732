//! Benchmark of the calls for one message.

use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use dev::bench::calls::{self, Row};
use dev::bench::prices::{Price, Prices};
use local::output;

use super::verdict;

pub(super) async fn run(json: bool, dir: &Path) -> anyhow::Result<bool> {
    let rows = calls::measure(dir).await?;
    if json {
        output::pretty_json(&rows)?;
    } else {
        output::block(&table(&rows).to_string())?;
        let prices = Prices::shipped()?;
        let region = &prices.region;
        output::line(&format!(
            "Calls for one message in run-saga; dollars for a million messages in {region}:"
        ))?;
        for price in [&prices.dynamodb_write_unit, &prices.sqs_request, &prices.lambda_request] {
            let Price { per_million, as_of, what, source } = price;
            output::line(&format!("  {per_million:.3} for a million of: {what} ({source}, {as_of})"))?;
        }
        output::line("  MongoDB is paid by the hour, whatever the number of calls.")?;
    }
    Ok(rows.iter().all(Row::holds))
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["mode", "what happens", "DynamoDB", "MongoDB", "bound", "sends", "$ / million", ""]);
    for row in rows {
        let (dynamodb, mongodb) = row.per_message();
        let bound =
            row.bound.map_or_else(|| "-".to_owned(), |(dynamodb, mongodb)| format!("{dynamodb} + {mongodb}"));
        let sends = row.sends as f64 / row.messages.max(1) as f64;
        table.add_row([
            row.mode.to_owned(),
            row.situation.to_owned(),
            dynamodb.to_string(),
            mongodb.to_string(),
            bound,
            sends.to_string(),
            format!("{:.2}", row.dollars_per_million),
            verdict(row.holds()).to_owned(),
        ]);
    }
    table
}
