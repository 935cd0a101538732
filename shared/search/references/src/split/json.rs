//! Splits JSON files into the objects of their outermost array, or into consecutive objects.

use memchr::{memchr2, memchr3};

use super::{Splitter, Step};

/// Splits JSON files.
#[derive(Debug)]
pub(crate) struct Json {
    limit: usize,
    at: usize,
    open: Option<OpenObject>,
}

/// An object whose end has not been found.
#[derive(Debug, Clone, Copy)]
struct OpenObject {
    start: usize,
    /// The number of open objects, including this one.
    depth: usize,
    /// `true` if a string is open.
    quoted: bool,
}

impl Json {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, at: 0, open: None }
    }

    fn found(&mut self, open: OpenObject, stop: usize, fault: Option<&'static str>) -> Step {
        (self.open, self.at) = (None, 0);
        if stop - open.start > self.limit {
            return Step::TooLarge { start: open.start };
        }
        Step::Found { record: open.start..stop, consumed: stop, fault }
    }

    /// Handles a tail in which nothing more can be found.
    fn rest(&mut self, tail: &[u8], open: OpenObject, end: bool) -> Step {
        if self.at - open.start > self.limit {
            return Step::TooLarge { start: open.start };
        }
        if end { self.found(open, tail.len(), Some("its JSON is not closed")) } else { Step::More }
    }
}

impl Splitter for Json {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        loop {
            let Some(mut open) = self.open else {
                let Some(start) = memchr::memchr(b'{', tail) else {
                    return if tail.is_empty() { Step::More } else { Step::Skip { consumed: tail.len() } };
                };
                self.open = Some(OpenObject { start, depth: 1, quoted: false });
                self.at = start + 1;
                continue;
            };
            let rest = &tail[self.at..];
            let found =
                if open.quoted { memchr2(b'"', b'\\', rest) } else { memchr3(b'"', b'{', b'}', rest) };
            let Some(found) = found else {
                self.at = tail.len();
                return self.rest(tail, open, end);
            };
            let at = self.at + found;
            self.at = at + 1;
            match tail[at] {
                b'"' => open.quoted = !open.quoted,
                b'\\' if at + 1 == tail.len() => {
                    // The escaped character has not arrived yet.
                    self.at = at;
                    return self.rest(tail, open, end);
                }
                b'\\' => self.at = at + 2,
                b'{' => open.depth += 1,
                _ => open.depth -= 1,
            }
            if open.depth == 0 {
                return self.found(open, at + 1, None);
            }
            self.open = Some(open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn json_objects_are_found_in_arrays_and_lines() {
        let (one, two) = (r#"{"a": "}\\\" {", "b": [{"c": {}}]}"#, r#"{"d": 1}"#);
        for text in [format!("[{one},\n {two}]\n"), format!("{one}\n{two}\n"), format!("[[{one}], 5, {two}")]
        {
            assert_eq!(cut(&mut Json::new(1000), &text), [one, two]);
        }
        assert_eq!(cut(&mut Json::new(1000), "[{\"a\": \"b}]"), ["!its JSON is not closed"]);
    }
}
