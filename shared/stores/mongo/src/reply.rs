//! What the answer to an `update` command says of each of its statements.
//!
//! The answer names the statements that failed and those that inserted a document, and gives one total for those
//! that matched one. So what became of an upsert is always known: it failed, or it was made. For the others only
//! the total is: when some of them matched and some did not, the documents have to tell which.

use mongodb::bson::{Bson, Document};
use saga::Persisted;

use crate::fault::{DUPLICATE_KEY, Fault};

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// How many statements matched a document or inserted one.
    touched: usize,
    /// Which statements met a document that they expected to be absent.
    taken: Vec<usize>,
}

impl Reply {
    /// Reads an answer. A statement that failed for another reason than a taken key makes all of it a failure.
    pub(crate) fn read(answer: &Document) -> Result<Self, Fault> {
        // First, since it covers all statements: none of what follows is certain.
        if let Some(Bson::Document(error)) = answer.get("writeConcernError") {
            return Err(Fault::WriteConcern { code: code(error), message: message(error) });
        }
        let touched = number(answer.get("n")).ok_or_else(|| Fault::Answer("it has no n".to_owned()))?;
        let mut taken = Vec::new();
        for error in documents(answer, "writeErrors") {
            if code(error) != DUPLICATE_KEY {
                return Err(Fault::Statement { code: code(error), message: message(error) });
            }
            let index = number(error.get("index"));
            taken.push(index.ok_or_else(|| Fault::Answer("a write error names no statement".to_owned()))?);
        }
        Ok(Self { touched, taken })
    }

    /// For statements that cannot meet a taken key.
    pub(crate) fn expect_none_taken(&self) -> Result<(), Fault> {
        match self.taken.first() {
            None => Ok(()),
            Some(index) => Err(Fault::Statement {
                code: DUPLICATE_KEY,
                message: format!("statement {index} inserted beside another"),
            }),
        }
    }

    /// What became of each write; none where only the document can tell. `inserts` says of each statement
    /// whether it was an upsert.
    pub(crate) fn outcomes(&self, inserts: &[bool]) -> Vec<Option<Persisted>> {
        let upserted =
            (0..inserts.len()).filter(|index| inserts[*index] && !self.taken.contains(index)).count();
        let updates = inserts.iter().filter(|insert| !**insert).count();
        let update = match self.touched.checked_sub(upserted) {
            Some(matched) if matched == updates => Some(Persisted::Stored),
            Some(0) => Some(Persisted::Conflict),
            _ => None,
        };
        inserts
            .iter()
            .enumerate()
            .map(|(index, insert)| match (self.taken.contains(&index), insert) {
                (true, _) => Some(Persisted::Conflict),
                (false, true) => Some(Persisted::Stored),
                (false, false) => update,
            })
            .collect()
    }
}

fn documents<'a>(answer: &'a Document, name: &str) -> impl Iterator<Item = &'a Document> {
    answer.get_array(name).into_iter().flatten().filter_map(Bson::as_document)
}

fn number(value: Option<&Bson>) -> Option<usize> {
    match value? {
        Bson::Int32(number) => usize::try_from(*number).ok(),
        Bson::Int64(number) => usize::try_from(*number).ok(),
        _ => None,
    }
}

fn code(error: &Document) -> i32 {
    error.get_i32("code").unwrap_or_default()
}

fn message(error: &Document) -> String {
    error.get_str("errmsg").unwrap_or("without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::doc;
    use saga::Persisted::{Conflict, Stored};

    fn outcomes(answer: &Document, inserts: &[bool]) -> Vec<Option<Persisted>> {
        Reply::read(answer).unwrap().outcomes(inserts)
    }

    #[test]
    fn upserts_are_told_apart_by_the_keys_that_were_taken() {
        let answer = doc! { "n": 2, "ok": 1.0, "writeErrors": [{ "index": 1, "code": 11000, "errmsg": "" }] };
        assert_eq!(outcomes(&answer, &[true, true, true]), [Some(Stored), Some(Conflict), Some(Stored)]);
    }

    #[test]
    fn updates_are_told_apart_only_when_all_matched_or_none() {
        assert_eq!(outcomes(&doc! { "n": 2 }, &[false, false]), [Some(Stored); 2]);
        assert_eq!(outcomes(&doc! { "n": 0 }, &[false, false]), [Some(Conflict); 2]);
        assert_eq!(outcomes(&doc! { "n": 1 }, &[false, false]), [None; 2]);
    }

    #[test]
    fn an_upsert_over_an_expired_document_counts_among_those_that_matched() {
        assert_eq!(outcomes(&doc! { "n": 1 }, &[true, false]), [Some(Stored), Some(Conflict)]);
        assert_eq!(outcomes(&doc! { "n": 2 }, &[true, false]), [Some(Stored), Some(Stored)]);
        assert_eq!(outcomes(&doc! { "n": 2 }, &[true, false, false]), [Some(Stored), None, None]);
    }

    #[test]
    fn an_unconfirmed_write_is_no_outcome_whatever_else_is_said() {
        let answer = doc! { "n": 1, "writeConcernError": { "code": 64, "errmsg": "timed out" } };
        assert!(matches!(Reply::read(&answer), Err(Fault::WriteConcern { code: 64, .. })));
    }

    #[test]
    fn a_statement_that_failed_otherwise_is_a_failure() {
        let answer = doc! { "n": 1, "writeErrors": [{ "index": 0, "code": 121, "errmsg": "validation" }] };
        assert!(matches!(Reply::read(&answer), Err(Fault::Statement { code: 121, .. })));
        assert!(matches!(Reply::read(&doc! { "ok": 1.0 }), Err(Fault::Answer(_))));
    }
}
