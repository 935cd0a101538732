//! Recognizes related text formats that are not supported, so that the message can name them.

/// Recognizes a format by the beginning of the file.
pub(super) fn by_start(start: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 2] = [("{\\rtf", "rich text (RTF)"), ("%PDF", "a PDF document")];
    STARTS.iter().find(|(prefix, _)| start.starts_with(prefix)).map(|(_, name)| *name)
}

/// Recognizes JSON that is not read.
pub(super) fn json(start: &str) -> Option<&'static str> {
    if !start.starts_with(['{', '[']) {
        return None;
    }
    let has = |name: &str| start.contains(name);
    if has("\"CodeSets\"") || (has("\"ItemId\"") && has("\"References\"")) {
        Some("JSON of EPPI-Reviewer")
    } else if has("\"paperId\"") {
        Some("JSON of Semantic Scholar")
    } else if has("\"itemType\"") {
        Some("JSON of Zotero")
    } else {
        None
    }
}

/// Recognizes a format by later lines. Tried last, because such lines also occur in values of other formats.
pub(super) fn by_lines(text: &str) -> Option<&'static str> {
    if text.trim_start().starts_with(['{', '[']) {
        return Some("JSON");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn related_formats_are_named() {
        assert_eq!(by_start("{\\rtf1 a"), Some("rich text (RTF)"));
        assert_eq!(by_lines("[{\"id\": 1}]"), Some("JSON"));
        assert_eq!(by_lines("someone@example.org {hello}"), None);
    }
}
