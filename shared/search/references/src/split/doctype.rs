//! Recognizes document type declarations that can be skipped.

/// The maximum length of a document type declaration that is skipped. PubMed's has 150 bytes.
const MAX_DOCTYPE: usize = 4096;

/// The type of the declaration at the beginning of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Doctype {
    /// No declaration, or only the declaration of an external document type, with its length in bytes.
    External(usize),
    /// The end has not arrived yet.
    Incomplete,
    /// A declaration with an internal subset, or an invalid declaration.
    Refused,
}

pub(super) fn doctype(declaration: &[u8]) -> Doctype {
    match outside_quotes(declaration) {
        Some(stop) if declaration[stop] == b'>' => Doctype::External(stop + 1),
        None if declaration.len() < MAX_DOCTYPE => Doctype::Incomplete,
        _ => Doctype::Refused,
    }
}

/// The length of the declaration at the beginning, if it is complete and has no internal subset.
pub(crate) fn external_length(declaration: &[u8]) -> Option<usize> {
    match doctype(declaration) {
        Doctype::External(length) => Some(length),
        Doctype::Incomplete | Doctype::Refused => None,
    }
}

/// The position where the declaration ends or its internal subset begins. A `<` must not precede it.
fn outside_quotes(declaration: &[u8]) -> Option<usize> {
    let mut quote = None;
    declaration
        .iter()
        .take(MAX_DOCTYPE)
        .skip(1)
        .position(|&byte| match (quote, byte) {
            (None, b'>' | b'[' | b'<') => true,
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                false
            }
            (Some(open), _) if open == byte => {
                quote = None;
                false
            }
            _ => false,
        })
        .map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_external_doctype_is_skipped() {
        let public = br#"<!DOCTYPE a PUBLIC "-//b>[" 'c"'>"#;
        assert_eq!(doctype(public), Doctype::External(public.len()));
        assert_eq!(doctype(&public[..20]), Doctype::Incomplete);
        assert_eq!(doctype(b"<!DOCTYPE a []>"), Doctype::Refused);
        assert_eq!(doctype(b"<!DOCTYPE a <b>"), Doctype::Refused);
        assert_eq!(doctype(&[b'x'; MAX_DOCTYPE]), Doctype::Refused);
    }
}
