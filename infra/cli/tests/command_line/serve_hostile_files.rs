//! Uploads of files that expand to far more memory than their size.

use serde_json::json;
use servers::TestResult;

use crate::program::Program;
use crate::serve::{Server, json_of, psycinfo};

/// The memory bound of the whole server, in MiB.
const BOUND_MIB: u64 = 64;
const MIB: usize = 1 << 20;

/// Returns the checksum of an archive's entry.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| {
                if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 }
            },
        )
    })
}

/// Returns a workbook with one sheet and uncompressed parts.
fn workbook(strings: &str, rows: &str) -> Vec<u8> {
    let list = "<workbook><sheets><sheet name=\"a\" r:id=\"r1\"/></sheets></workbook>";
    let relations =
        "<Relationships><Relationship Id=\"r1\" Target=\"worksheets/sheet1.xml\"/></Relationships>";
    let (strings, sheet) =
        (format!("<sst>{strings}</sst>"), format!("<worksheet><sheetData>{rows}</sheetData></worksheet>"));
    let (mut out, mut entries) = (Vec::new(), Vec::new());
    for (name, content) in [
        ("xl/workbook.xml", list),
        ("xl/_rels/workbook.xml.rels", relations),
        ("xl/sharedStrings.xml", &*strings),
        ("xl/worksheets/sheet1.xml", &*sheet),
    ] {
        let (at, size) = (u32::try_from(out.len()).unwrap(), u32::try_from(content.len()).unwrap());
        let mut same = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        [crc32(content.as_bytes()), size, size].iter().for_each(|number| same.extend(number.to_le_bytes()));
        same.extend([u8::try_from(name.len()).unwrap(), 0, 0, 0]);
        out.extend([b"PK\x03\x04", same.as_slice(), name.as_bytes(), content.as_bytes()].concat());
        entries.extend(
            [b"PK\x01\x02\x14\0", same.as_slice(), &[0; 10], &at.to_le_bytes(), name.as_bytes()].concat(),
        );
    }
    let (start, length) = (u32::try_from(out.len()).unwrap(), u32::try_from(entries.len()).unwrap());
    out.extend(entries);
    out.extend(b"PK\x05\x06\0\0\0\0\x04\0\x04\0");
    out.extend([length.to_le_bytes(), start.to_le_bytes()].concat());
    out.extend([0, 0]);
    out
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
