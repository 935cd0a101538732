//! JSON Lines: one object per study, with all stored data.

use std::io;

use references::SparseReference;
use serde::Serialize;
use uuid::Uuid;

use crate::{Source, Study};

#[derive(Serialize)]
struct Line<'a> {
    study_key: Uuid,
    search_id: Uuid,
    file: &'a str,
    record: u64,
    #[serde(flatten)]
    source: &'a Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<Uuid>,
    #[serde(flatten)]
    reference: SparseReference<'a>,
}

pub(crate) fn push(study: &Study<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    let line = Line {
        study_key: study.key,
        search_id: study.search,
        file: study.file,
        record: study.record,
        source: study.source,
        duplicate_of: study.duplicate_of,
        reference: study.reference.sparse(),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.push(b'\n');
    Ok(())
}
