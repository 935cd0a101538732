//! Recognizes related text formats that are not supported, so that the message can name them.

use crate::split::lines;

/// Recognizes a format by the beginning of the file.
pub(super) fn by_start(start: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 3] = [
        ("{\\rtf", "rich text (RTF)"),
        ("%PDF", "a PDF document"),
        ("<RECORD 1>", "text of Engineering Village"),
    ];
    STARTS.iter().find(|(prefix, _)| start.starts_with(prefix)).map(|(_, name)| *name)
}

/// Recognizes JSON that is not read.
pub(super) fn json(start: &str) -> Option<&'static str> {
    (start.starts_with(['{', '[']) && start.contains("\"itemType\"")).then_some("JSON of Zotero")
}

/// Recognizes a format by later lines. Tried last, because such lines also occur in values of other formats.
pub(super) fn by_lines(text: &str) -> Option<&'static str> {
    let text = text.trim_start();
    let has_line = |name: &str| lines::all(text).any(|line| line.trim() == name);
    if ["TITLE", "AUTHOR NAMES", "SOURCE"].into_iter().all(has_line) {
        return Some("text of Embase");
    }
    if text.starts_with("Record: 1") && lines::all(text).any(|line| line.starts_with("Title:")) {
        return Some("text of EBSCOhost or APA PsycNet");
    }
    if text.starts_with("Scopus") && text.contains("EXPORT DATE") {
        return Some("text of Scopus");
    }
    if text.contains("\n(https://www.sciencedirect.com/") || text.contains("\n(http://www.sciencedirect.com/")
    {
        return Some("text of ScienceDirect");
    }
    if text.starts_with("Recent queries in pubmed") || text.starts_with("Search number,Query,") {
        return Some("the history of searches in PubMed");
    }
    if is_number_list(text) {
        return Some("a list of numbers, such as PMIDs");
    }
    if has_line("references:") && text.contains("- id:") {
        return Some("YAML of a citation processor");
    }
    let numbered = text.strip_prefix("[1]").or_else(|| text.strip_prefix("［1］"));
    if numbered.is_some_and(|rest| rest.contains("[J]") || rest.contains("[D]") || rest.contains("[C]")) {
        return Some("a list of references in GB/T 7714");
    }
    if is_formatted(text) {
        return Some("a formatted list of references");
    }
    let inner = text.strip_prefix(['{', '[']).map(str::trim_start);
    inner.is_some_and(|inner| inner.starts_with(['"', '{', '[', '}', ']'])).then_some("JSON")
}

/// Returns `true` if every line is a number of PubMed.
fn is_number_list(text: &str) -> bool {
    let is_number =
        |line: &str| (4..=8).contains(&line.len()) && line.bytes().all(|byte| byte.is_ascii_digit());
    let mut lines = lines::all(text).map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(is_number)
}

/// Returns `true` if most of the first lines are citations: `Roe A. Tests. J Tests. 2020;12(3):1-9.`, `Roe, A. (2020). Tests.`
fn is_formatted(text: &str) -> bool {
    /// The number of lines that are inspected, and the minimum number of citations.
    const LINES: (usize, usize) = (10, 2);
    let is_year = |digits: &str| digits.starts_with("19") || digits.starts_with("20");
    let is_citation = |line: &&str| {
        line.as_bytes().windows(5).enumerate().any(|(at, bytes)| {
            let is_number = bytes[..4].iter().all(u8::is_ascii_digit) && is_year(&line[at..at + 4]);
            let is_in_brackets = at > 0 && line.as_bytes()[at - 1] == b'(' && matches!(bytes[4], b')' | b',');
            is_number && (bytes[4] == b';' || is_in_brackets)
        })
    };
    let first = || lines::all(text).filter(|line| !line.trim().is_empty()).take(LINES.0);
    let citations = first().filter(is_citation).count();
    citations >= LINES.1 && 2 * citations > first().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn related_formats_are_named() {
        assert_eq!(by_start("{\\rtf1 a"), Some("rich text (RTF)"));
        assert_eq!(by_lines("[{\"id\": 1}]"), Some("JSON"));
        assert_eq!(by_lines("[1]王伟.研究[J].医学杂志,2020"), Some("a list of references in GB/T 7714"));
        assert_eq!(
            by_lines("RECORD 1\n\nTITLE\na\n\nAUTHOR NAMES\nb\n\nSOURCE\n c\n"),
            Some("text of Embase")
        );
        assert_eq!(
            by_lines("Scopus\nEXPORT DATE: 15 March 2024\n\nRoe, A.\nTests\n"),
            Some("text of Scopus")
        );
        let text = "Record: 1\n\nTitle: Tests.\n\nAuthors: Roe, Ann\n";
        assert_eq!(by_lines(text), Some("text of EBSCOhost or APA PsycNet"));
        for text in [
            "1. Roe A. Tests. J Tests. 2020;12(3):1-9.\n2. Doe B. More tests. J Tests. 2019;1:2.\n",
            "Roe, A. (2020). Tests. J Tests, 12(3), 1–9.\n\nDoe, B. (2019, May). More tests.\n",
        ] {
            assert_eq!(by_lines(text), Some("a formatted list of references"));
        }
        assert_eq!(by_lines("We met (2019) and\nlater on\nin (2020)\nonce more\n"), None);
        assert_eq!(by_start("<RECORD 1>\nTitle:Tests\n"), Some("text of Engineering Village"));
        let text = "Ann Roe,\nTests,\n2020,\n(https://www.sciencedirect.com/science/article/pii/S1)\n";
        assert_eq!(by_lines(text), Some("text of ScienceDirect"));
        let text = "---\nreferences:\n- id: roe\n  title: Tests\n";
        assert_eq!(by_lines(text), Some("YAML of a citation processor"));
        assert_eq!(by_lines("30771050\r\n345933\r\n"), Some("a list of numbers, such as PMIDs"));
        let text = "Recent queries in pubmed\nSearch,Query,Items found,Time\n";
        assert_eq!(by_lines(text), Some("the history of searches in PubMed"));
        assert_eq!(by_lines("[draft] Dear all"), None);
        assert_eq!(by_lines("someone@example.org {hello}"), None);
    }
}
