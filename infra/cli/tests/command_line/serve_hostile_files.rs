//! Uploads of files that expand to far more memory than their size.

use serde_json::json;
use servers::TestResult;

use crate::packed::packed;
use crate::program::Program;
use crate::serve::{Server, json_of, psycinfo};

/// The memory bound of the whole server, in MiB.
const BOUND_MIB: u64 = 64;
const MIB: usize = 1 << 20;

/// Returns a workbook with one sheet and uncompressed parts.
fn workbook(strings: &str, rows: &str) -> Vec<u8> {
    let list = "<workbook><sheets><sheet name=\"a\" r:id=\"r1\"/></sheets></workbook>";
    let relations =
        "<Relationships><Relationship Id=\"r1\" Target=\"worksheets/sheet1.xml\"/></Relationships>";
    let (strings, sheet) =
        (format!("<sst>{strings}</sst>"), format!("<worksheet><sheetData>{rows}</sheetData></worksheet>"));
    packed(&[
        ("xl/workbook.xml", list.as_bytes()),
        ("xl/_rels/workbook.xml.rels", relations.as_bytes()),
        ("xl/sharedStrings.xml", strings.as_bytes()),
        ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
    ])
}

/// Returns hostile files with the expected outcome of each.
fn hostile() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let many = |value: &str| value.repeat(3 * MIB / value.len());
    let text = format!("<si><t>{}</t></si>", "x".repeat(MIB - 100));
    let cells = "<c t=\"s\"><v>0</v></c>".repeat(1_000);
    let ris = format!("TY  - JOUR\nTI  - a\n{}ER  - \n", many("AU  - x\n"));
    let csv = format!("Title,Authors\na,\"{}\"\n", many("x;"));
    let json = format!("[{{\"title\": \"a\", \"type\": \"article\", \"x\": [{}1]}}]", many("1,"));
    let xml = format!(
        "<xml><records><record><titles><title>a</title></titles><contributors><authors>{}</authors></contributors>\
         </record></records></xml>",
        many("<author>xy</author>")
    );
    vec![
        ("row.xlsx", workbook(&text, &format!("<row>{cells}</row>")), "failed"),
        ("text.xlsx", workbook(&format!("<si>{}</si>", many("<t>some text</t>")), ""), "failed"),
        ("authors.ris", ris.into_bytes(), "failed"),
        ("authors.csv", csv.into_bytes(), "failed"),
        ("values.json", json.into_bytes(), "failed"),
        ("authors.xml", xml.into_bytes(), "completed"),
        ("good.ris", psycinfo(), "completed"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_files_stay_within_memory_bound() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    let files = hostile();
    let names: Vec<_> =
        files.iter().map(|(name, content, _)| json!({ "name": name, "size_bytes": content.len() })).collect();
    let search = json!({ "name": "Hostile", "files": names });
    let announced = json_of(server.announce(None, &search).await?).await?;
    for (index, (name, content, _)) in files.iter().enumerate() {
        let uploaded = server.upload(&announced["files"][index]["upload"], content).await?;
        assert_eq!(uploaded.status().as_u16(), 204, "{name}");
    }
    let ended = server.until_ended(announced["search_id"].as_str().unwrap()).await?;
    for (index, (name, _, outcome)) in files.iter().enumerate() {
        assert_eq!(ended["files"][index]["outcome"]["outcome"], *outcome, "{name}: {ended}");
    }
    let peak = server.peak_mib();
    assert!(peak <= BOUND_MIB, "{peak} MiB");
    assert_eq!(server.stop(), Some(0));
    Ok(())
}
