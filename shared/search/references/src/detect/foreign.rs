//! Recognizes related text formats that are not supported, so that the message can name them.

/// Recognizes a format by the beginning of the file.
pub(super) fn by_start(start: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 2] = [("{\\rtf", "rich text (RTF)"), ("%PDF", "a PDF document")];
    STARTS.iter().find(|(prefix, _)| start.starts_with(prefix)).map(|(_, name)| *name)
}

/// Recognizes JSON that is not read.
pub(super) fn json(start: &str) -> Option<&'static str> {
    (start.starts_with(['{', '[']) && start.contains("\"itemType\"")).then_some("JSON of Zotero")
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
