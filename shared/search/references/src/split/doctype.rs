//! Document type declarations: which may be stepped over.

/// Longest document type declaration that is stepped over. PubMed's has 150 bytes.
const MOST_DOCTYPE: usize = 4096;

/// What the declaration at the front of the bytes is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Doctype {
    /// It names an external document type at most; this is its length in bytes.
    External(usize),
    /// Its end has not arrived yet.
    Incomplete,
    /// It has an internal subset, or is not a valid declaration.
    Refused,
}

pub(super) fn doctype(declaration: &[u8]) -> Doctype {
    match outside_quotes(declaration) {
        Some(stop) if declaration[stop] == b'>' => Doctype::External(stop + 1),
        None if declaration.len() < MOST_DOCTYPE => Doctype::Incomplete,
        _ => Doctype::Refused,
    }
}

/// How long the declaration at the front is, if it is whole and has no internal subset.
pub(crate) fn external_length(declaration: &[u8]) -> Option<usize> {
    match doctype(declaration) {
        Doctype::External(length) => Some(length),
        Doctype::Incomplete | Doctype::Refused => None,
    }
}

/// Where the declaration ends or its internal subset begins. No `<` may come before either.
fn outside_quotes(declaration: &[u8]) -> Option<usize> {
    let mut quote = None;
    declaration
        .iter()
        .take(MOST_DOCTYPE)
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
    fn only_a_whole_declaration_without_a_subset_is_stepped_over() {
        let public = br#"<!DOCTYPE a PUBLIC "-//b>[" 'c"'>"#;
        assert_eq!(doctype(public), Doctype::External(public.len()));
        assert_eq!(doctype(&public[..20]), Doctype::Incomplete);
        assert_eq!(doctype(b"<!DOCTYPE a []>"), Doctype::Refused);
        assert_eq!(doctype(b"<!DOCTYPE a <b>"), Doctype::Refused);
        assert_eq!(doctype(&[b'x'; MOST_DOCTYPE]), Doctype::Refused);
    }
}
