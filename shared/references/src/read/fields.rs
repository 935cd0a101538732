//! Tags and their values in the order of the record.

/// An ordered list of tags and values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn push(&mut self, tag: &str, value: &str) {
        self.0.push((tag.to_owned(), value.trim().to_owned()));
    }

    /// Appends a continuation line to the last value. One without a value before it is dropped.
    pub(crate) fn extend_last(&mut self, more: &str) {
        let more = more.trim();
        if let Some((_, value)) = self.0.last_mut() {
            if !value.is_empty() && !more.is_empty() {
                value.push(' ');
            }
            value.push_str(more);
        }
    }

    pub(crate) fn last_tag(&self) -> Option<&str> {
        self.0.last().map(|(tag, _)| tag.as_str())
    }

    /// Tags and values; empty values are passed over.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(tag, value)| (tag.as_str(), value.as_str()))
            .filter(|(_, value)| !value.is_empty())
    }

    /// All values of the tags, in the order of the record.
    pub(crate) fn all<'a>(&'a self, tags: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.iter().filter(|(tag, _)| tags.contains(tag)).map(|(_, value)| value)
    }

    /// The first value of the first of the tags that has one.
    pub(crate) fn first(&self, tags: &[&str]) -> Option<&str> {
        tags.iter().find_map(|wanted| self.iter().find(|(tag, _)| tag == wanted).map(|(_, value)| value))
    }
}
