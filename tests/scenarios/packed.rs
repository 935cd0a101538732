//! Packed files: archives of several files, and workbooks.

use std::io::Write;

use imports::queues::{PARSE, SAGA, UPLOADS};
use imports::{Counts, JobState, Outcome, ReadStudies};
use jiff::SignedDuration;
use messages::{Disposition, Host, ReceiveMessages};
use service::AnnouncedSearch;

use super::api::{api, get, path_of};
use super::parsing::{many_records, recording};
use crate::world::{TWO_RECORDS, World, deliveries};

/// Returns an uncompressed archive of these files.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let at = u32::try_from(out.len()).unwrap();
        let size = u32::try_from(bytes.len()).unwrap();
        let mut same = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        [crc32fast::hash(bytes), size, size].iter().for_each(|long| same.extend(long.to_le_bytes()));
        same.extend([u8::try_from(name.len()).unwrap(), 0, 0, 0]);
        out.extend([b"PK\x03\x04", same.as_slice(), name.as_bytes(), bytes].concat());
        list.extend(
            [b"PK\x01\x02\x14\0", same.as_slice(), &[0; 10], &at.to_le_bytes(), name.as_bytes()].concat(),
        );
    }
    let count = u8::try_from(files.len()).unwrap();
    let (start, length) = (u32::try_from(out.len()).unwrap(), u32::try_from(list.len()).unwrap());
    out.extend(list);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count, 0, count, 0]);
    out.extend([length.to_le_bytes(), start.to_le_bytes()].concat());
    out.extend([0, 0]);
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn workbook(rows: &str) -> Vec<u8> {
    let list = "<workbook><sheets><sheet name=\"About\" r:id=\"a\"/><sheet name=\"Records\" r:id=\"b\"/>\
                <sheet name=\"Old\" state=\"hidden\" r:id=\"b\"/></sheets></workbook>";
    let relations = "<Relationships><Relationship Id=\"a\" Target=\"worksheets/sheet1.xml\"/>\
                     <Relationship Id=\"b\" Target=\"worksheets/sheet2.xml\"/></Relationships>";
    let about =
        "<worksheet><sheetData><row><c t=\"str\"><v>Exported by Roe</v></c></row></sheetData></worksheet>";
    let rows = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    zip(&[
        ("xl/workbook.xml", list.as_bytes()),
        ("xl/_rels/workbook.xml.rels", relations.as_bytes()),
        ("xl/worksheets/sheet1.xml", about.as_bytes()),
        ("xl/worksheets/sheet2.xml", rows.as_bytes()),
    ])
}

/// Returns the counts of a file, or the reason why it is refused.
async fn read(world: &World, bytes: Vec<u8>) -> (AnnouncedSearch, Result<Counts, String>) {
    let announced = world.announce(&["a.bin"]).await;
    world.upload_bytes(&announced, 0, bytes).await;
    world.run().await;
    let job = world.job(announced.search_id).await;
    let came = match job.files[0].outcome.clone().unwrap() {
        Outcome::Completed(counts) => Ok(counts),
        Outcome::Failed { reason } => Err(reason),
    };
    (announced, came)
}

async fn titles(world: &World, announced: &AnnouncedSearch) -> Vec<(u64, String)> {
    let studies =
        world.store().studies(announced.search_id, announced.files[0].file_id, 0, 100).await.unwrap();
    studies.into_iter().map(|study| (study.record, study.reference.title)).collect()
}

const CSV: &str = "Title,Year\nFrom a table,2001\nToo long,2002,x\n";

#[tokio::test]
async fn archive_files_are_read_and_others_are_named() {
    let world = World::new();
    let archive = zip(&[
        ("exports/a.ris", TWO_RECORDS.as_bytes()),
        ("readme.txt", b"Dear all, here they are"),
        ("b.csv", CSV.as_bytes()),
        ("empty", b""),
    ]);
    let (announced, came) = read(&world, archive).await;
    let counts = came.unwrap();
    assert_eq!((counts.records, counts.studies, counts.quarantined), (4, 3, 1));
    assert_eq!((counts.format.as_str(), counts.encoding.as_str()), ("RIS, CSV", "UTF-8"));
    let parts: Vec<_> =
        counts.parts.iter().map(|part| (part.name.as_str(), part.first, part.records)).collect();
    assert_eq!(parts, [("exports/a.ris", 1, 2), ("b.csv", 3, 2)]);
    assert!(counts.notes[0].starts_with("\"readme.txt\" was skipped: no known"), "{:?}", counts.notes);
    assert_eq!(counts.notes[1], "\"empty\" was skipped: the file is empty");
    assert_eq!(titles(&world, &announced).await[2], (3, "From a table".to_owned()));
    let path = path_of(announced.search_id);
    let shown = get(&api(&world), &format!("{path}/studies/0-3")).await;
    assert_eq!((&shown["raw"], &shown["study"]["part"]), (&"From a table,2001".into(), &"b.csv".into()));
    assert_eq!(shown["study"]["line"], 2);
    let unread = get(&api(&world), &format!("{path}/quarantine/0-4")).await;
    assert_eq!((&unread["raw"], &unread["unread"]["part"]), (&"Too long,2002,x".into(), &"b.csv".into()));
    assert_eq!(unread["around"]["before"], "Title,Year\n");
}

#[tokio::test]
async fn gzip_file_is_read_as_its_content() {
    let world = World::new();
    let (announced, came) = read(&world, gzip(TWO_RECORDS.as_bytes())).await;
    let counts = came.unwrap();
    assert_eq!((counts.records, counts.format.as_str(), counts.notes.len()), (2, "RIS", 0));
    let shown = get(&api(&world), &format!("{}/studies/0-2", path_of(announced.search_id))).await;
    assert!(shown["raw"].as_str().unwrap().starts_with("TY  - "), "{shown}");
    assert_eq!(shown["study"]["part"], serde_json::Value::Null);
}

#[tokio::test]
async fn sheet_with_records_is_read_and_others_named() {
    let world = World::new();
    let cell = |text: &str| format!("<c t=\"str\"><v>{text}</v></c>");
    let rows = format!(
        "<row>{}{}</row><row>{}<c><v>2.001E3</v></c></row>",
        cell("Title"),
        cell("Year"),
        cell("A title, with a comma")
    );
    let (announced, came) = read(&world, workbook(&rows)).await;
    let counts = came.unwrap();
    assert_eq!((counts.records, counts.format.as_str()), (1, "Excel workbook"));
    assert!(counts.notes[0].starts_with("\"About\" was skipped: "), "{:?}", counts.notes);
    assert_eq!(counts.notes[1], "the sheet \"Old\" is hidden, and was not read");
    let shown = get(&api(&world), &format!("{}/studies/0-1", path_of(announced.search_id))).await;
    assert_eq!((&shown["study"]["part"], &shown["study"]["year"]), (&"Records".into(), &2001.into()));
    assert_eq!(shown["raw"], "\"A title, with a comma\",2001");
}

#[tokio::test]
async fn refused_packed_files_give_reason_and_store_nothing() {
    let world = World::new();
    for (bytes, said) in [
        (
            zip(&[("a.ris", TWO_RECORDS.as_bytes()), ("b.zip", &zip(&[]))]),
            "\"b.zip\", which is inside, is packed itself",
        ),
        (
            zip(&[("a.ris", TWO_RECORDS.as_bytes()), ("b.xml", b"<xml><records><record>")]),
            "\"b.xml\", which is inside: the XML is",
        ),
        (
            gzip(&gzip(TWO_RECORDS.as_bytes())),
            "a gzip file, which is inside, is packed itself; unpack it and upload the files inside",
        ),
        (
            gzip(&[b"a.ris".as_slice(), &[0; 252], b"ustar", &[0; 250]].concat()),
            "a tar archive, which is inside, is packed itself; unpack it and upload the files inside",
        ),
        (zip(&[]), "it is a ZIP archive with no reference file inside"),
        (
            zip(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", b"<w:document/>")]),
            "it is a Word document; export the references",
        ),
        (
            zip(&[("mimetype", b"application/"), ("content.xml", b"<a/>")]),
            "it is an OpenDocument file; save a spreadsheet as .xlsx and upload that, or export the references",
        ),
        (zip(&[("Index/Document.iwa", b"a")]), "it is a document of Numbers, Pages or Keynote; save"),
        (
            zip(&[("a.pdf", b"%PDF-1.7")]),
            "it is a ZIP archive with no reference file inside: \"a.pdf\" was skipped",
        ),
        (
            zip(&[("../a.ris", TWO_RECORDS.as_bytes())]),
            "\"../a.ris\" in the archive has a name that leads elsewhere",
        ),
        (gzip(TWO_RECORDS.as_bytes())[..30].to_vec(), "the gzip file is damaged"),
        (
            gzip(&[TWO_RECORDS.as_bytes(), &vec![b'\n'; 32 << 20]].concat()),
            "it unpacks to more than 250 times its size",
        ),
        (gzip(b"Dear all"), "no known reference format"),
    ] {
        let (announced, came) = read(&world, bytes).await;
        let reason = came.unwrap_err();
        assert!(reason.starts_with(said), "{reason}");
        assert_eq!(titles(&world, &announced).await, []);
    }
}

/// An invocation lasts 2 s, and each batch takes 1 s. Positions refer to the unpacked bytes.
#[tokio::test]
async fn large_archive_is_read_in_several_invocations() {
    for form in ["zip", "gzip", "workbook"] {
        let world = World::new();
        let (file, all) = (many_records(10_000), 20_000);
        let bytes = match form {
            "zip" => zip(&[("a.ris", file.as_bytes()), ("readme", b"no"), ("b.ris", file.as_bytes())]),
            "gzip" => gzip(many_records(all).as_bytes()),
            _ => {
                let row = |n: usize| format!("<row><c t=\"str\"><v>Study {n}</v></c></row>");
                let head = "<row><c t=\"str\"><v>Title</v></c></row>".to_owned();
                workbook(&(head + &(1..=all).map(row).collect::<String>()))
            }
        };
        let announced = world.announce(&["a.bin"]).await;
        world.upload_bytes(&announced, 0, bytes).await;
        world.deliver_all(&[&UPLOADS, &SAGA]).await;
        let (mut batch, mut attempts) = (world.take(&PARSE).await, 0);
        while !batch.is_empty() {
            let (function, _) = recording(&world, None);
            let deadline = world.host.now().checked_add(SignedDuration::from_secs(2)).unwrap();
            let answers = function.consume(&deliveries(&batch), Some(deadline)).await;
            assert_eq!(answers, [Disposition::Acknowledge], "{form}");
            world.store().answer(&PARSE, &batch[0].receipt, &answers[0]).await.unwrap();
            batch = world.take(&PARSE).await;
            attempts += 1;
        }
        assert!(attempts > 2, "{form}: {attempts}");
        world.run().await;
        let job = world.job(announced.search_id).await;
        assert_eq!((job.state, job.studies()), (JobState::Completed, all as u64), "{form}");
        let Some(Outcome::Completed(counts)) = &job.files[0].outcome else { panic!("{job:?}") };
        let parts: Vec<_> = counts.parts.iter().map(|part| (part.first, part.records)).collect();
        assert_eq!(
            parts,
            if form == "zip" { vec![(1, 10_000), (10_001, 10_000)] } else { vec![(1, 20_000)] }
        );
        let file_id = announced.files[0].file_id;
        let studies = world.store().studies(announced.search_id, file_id, 0, 30_000).await.unwrap();
        assert!(studies.iter().map(|study| study.record).eq(1..=all as u64), "{form}");
        assert_eq!(
            studies[all - 1].reference.title,
            if form == "zip" { "Study 10000" } else { "Study 20000" }
        );
    }
}
