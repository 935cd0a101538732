//! Outcomes of the statements of an `update` command, from the server's reply.
//!
//! The reply lists the statements that failed and those that inserted a document, and contains one total of the
//! statements that matched a document. The outcome of an upsert is therefore always known. For updates, only the total
//! is known. If only some updates matched, the caller has to read the documents.

use mongodb::bson::{Bson, Document};
use saga::PersistOutcome;

use crate::driver_error::DUPLICATE_KEY;
use crate::error::CallError;

/// Reply to an `update` command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Number of statements that matched or inserted a document.
    touched: usize,
    /// Indices of the statements that failed with a duplicate key, because the document was expected to be absent.
    taken: Vec<usize>,
}

impl Reply {
    /// Parses a reply. Returns an error if a statement failed for another reason than a duplicate key.
    pub(crate) fn read(answer: &Document) -> Result<Self, CallError> {
        // Check this first: it affects all statements, so the rest of the reply is not reliable.
        if let Some(Bson::Document(error)) = answer.get("writeConcernError") {
            return Err(CallError::WriteConcern { code: code(error), message: message(error) });
        }
        let touched =
            number(answer.get("n")).ok_or_else(|| CallError::InvalidReply("it has no n".to_owned()))?;
        let mut taken = Vec::new();
        for error in documents(answer, "writeErrors") {
            if code(error) != DUPLICATE_KEY {
                return Err(CallError::Statement { code: code(error), message: message(error) });
            }
            let index = number(error.get("index"));
            taken.push(
                index
                    .ok_or_else(|| CallError::InvalidReply("a write error names no statement".to_owned()))?,
            );
        }
        Ok(Self { touched, taken })
    }

    /// Returns an error if a statement failed with a duplicate key, for statements that cannot.
    pub(crate) fn expect_no_conflict(&self) -> Result<(), CallError> {
        match self.taken.first() {
            None => Ok(()),
            Some(index) => Err(CallError::Statement {
                code: DUPLICATE_KEY,
                message: format!("statement {index} unexpectedly inserted a document with a taken key"),
            }),
        }
    }

    /// Returns the outcome of each write; `None` if only the document shows it. `inserts` contains for each statement
    /// whether it is an upsert.
    pub(crate) fn outcomes(&self, inserts: &[bool]) -> Vec<Option<PersistOutcome>> {
        let upserted =
            (0..inserts.len()).filter(|index| inserts[*index] && !self.taken.contains(index)).count();
        let updates = inserts.iter().filter(|insert| !**insert).count();
        let update = match self.touched.checked_sub(upserted) {
            Some(matched) if matched == updates => Some(PersistOutcome::Stored),
            Some(0) => Some(PersistOutcome::Conflict),
            _ => None,
        };
        inserts
            .iter()
            .enumerate()
            .map(|(index, insert)| match (self.taken.contains(&index), insert) {
                (true, _) => Some(PersistOutcome::Conflict),
                (false, true) => Some(PersistOutcome::Stored),
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
    use saga::PersistOutcome::{Conflict, Stored};

    fn outcomes(answer: &Document, inserts: &[bool]) -> Vec<Option<PersistOutcome>> {
        Reply::read(answer).unwrap().outcomes(inserts)
    }

    #[test]
    fn upserts_are_distinguished_by_duplicate_keys() {
        let answer = doc! { "n": 2, "ok": 1.0, "writeErrors": [{ "index": 1, "code": 11000, "errmsg": "" }] };
        assert_eq!(outcomes(&answer, &[true, true, true]), [Some(Stored), Some(Conflict), Some(Stored)]);
    }

    #[test]
    fn updates_are_known_if_all_or_none_matched() {
        assert_eq!(outcomes(&doc! { "n": 2 }, &[false, false]), [Some(Stored); 2]);
        assert_eq!(outcomes(&doc! { "n": 0 }, &[false, false]), [Some(Conflict); 2]);
        assert_eq!(outcomes(&doc! { "n": 1 }, &[false, false]), [None; 2]);
    }

    #[test]
    fn upsert_of_expired_document_counts_as_match() {
        assert_eq!(outcomes(&doc! { "n": 1 }, &[true, false]), [Some(Stored), Some(Conflict)]);
        assert_eq!(outcomes(&doc! { "n": 2 }, &[true, false]), [Some(Stored), Some(Stored)]);
        assert_eq!(outcomes(&doc! { "n": 2 }, &[true, false, false]), [Some(Stored), None, None]);
    }

    #[test]
    fn write_concern_error_takes_precedence() {
        let answer = doc! { "n": 1, "writeConcernError": { "code": 64, "errmsg": "timed out" } };
        assert!(matches!(Reply::read(&answer), Err(CallError::WriteConcern { code: 64, .. })));
    }

    #[test]
    fn other_statement_errors_are_returned() {
        let answer = doc! { "n": 1, "writeErrors": [{ "index": 0, "code": 121, "errmsg": "validation" }] };
        assert!(matches!(Reply::read(&answer), Err(CallError::Statement { code: 121, .. })));
        assert!(matches!(Reply::read(&doc! { "ok": 1.0 }), Err(CallError::InvalidReply(_))));
    }
}
