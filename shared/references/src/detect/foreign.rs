//! Text formats of the field that are recognised in order to say so, but not read.

use crate::split::lines;

/// A format told by how the file starts.
pub(super) fn by_start(start: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 3] =
        [("FN ", "Web of Science plain text"), ("{\\rtf", "rich text (RTF)"), ("%PDF", "a PDF document")];
    STARTS.iter().find(|(prefix, _)| start.starts_with(prefix)).map(|(_, name)| *name)
}

/// A format told by lines further on. Asked last, because these marks occur in other formats' values.
pub(super) fn by_lines(text: &str) -> Option<&'static str> {
    if text.trim_start().starts_with(['{', '[']) {
        return Some("JSON");
    }
    lines::all(text).find_map(|line| {
        let line = line.trim_start();
        if is_bibtex(line) {
            Some("BibTeX")
        } else if line.starts_with("%0 ") {
            Some("an EndNote tagged file (.enw)")
        } else if line.starts_with("PT J") {
            Some("Web of Science plain text")
        } else {
            None
        }
    })
}

/// `@article{key,` and its like.
fn is_bibtex(line: &str) -> bool {
    let Some((kind, _)) = line.strip_prefix('@').and_then(|rest| rest.split_once('{')) else { return false };
    let kind = kind.trim_end();
    !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_named() {
        assert_eq!(
            by_start("FN Clarivate Analytics Web of Science\nVR 1.0"),
            Some("Web of Science plain text")
        );
        assert_eq!(by_lines("% export\n@article{smith2020,\n title = {A}}"), Some("BibTeX"));
        assert_eq!(by_lines("\n%0 Journal Article\n%T A"), Some("an EndNote tagged file (.enw)"));
        assert_eq!(by_lines("[{\"id\": 1}]"), Some("JSON"));
        assert_eq!(by_lines("someone@example.org {hello}"), None);
    }
}
