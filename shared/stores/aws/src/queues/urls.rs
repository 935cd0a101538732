//! Where the queues are.

use std::collections::BTreeMap;

use messages::Queue;

const PREFIX: &str = "SEARCH_IMPORT_";
const SUFFIX: &str = "_QUEUE_URL";

/// The addresses of queues, by the setting that each is read from. A program needs only those that it uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queues(BTreeMap<String, String>);

impl Queues {
    /// The environment variable that a queue's address is read from, such as `SEARCH_IMPORT_SAGA_QUEUE_URL`.
    pub fn setting(queue: &Queue) -> String {
        format!("{PREFIX}{}{SUFFIX}", queue.name().replace('-', "_").to_uppercase())
    }

    /// Reads the addresses from pairs of name and value, such as the environment's; other names are passed over, and
    /// an empty address counts as not set.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let is_address =
            |name: &str, url: &str| name.starts_with(PREFIX) && name.ends_with(SUFFIX) && !url.is_empty();
        Self(pairs.into_iter().filter(|(name, url)| is_address(name, url)).collect())
    }

    /// A queue's address.
    pub fn url(&self, queue: &Queue) -> Option<&str> {
        self.0.get(&Self::setting(queue)).map(String::as_str)
    }
}

impl FromIterator<(Queue, String)> for Queues {
    fn from_iter<T: IntoIterator<Item = (Queue, String)>>(queues: T) -> Self {
        Self(queues.into_iter().map(|(queue, url)| (Self::setting(&queue), url)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAGA: Queue = Queue::named("saga");
    const SAGA_DEAD: Queue = Queue::named("saga-dead");

    #[test]
    fn each_queue_has_a_setting_of_its_own() {
        assert_eq!(Queues::setting(&SAGA), "SEARCH_IMPORT_SAGA_QUEUE_URL");
        let unreadable = Queue::named("parse-unreadable");
        assert_eq!(Queues::setting(&unreadable), "SEARCH_IMPORT_PARSE_UNREADABLE_QUEUE_URL");
        let pair = |queue, url: &str| (Queues::setting(queue), url.to_owned());
        let queues = Queues::from_pairs([
            pair(&SAGA, "http://saga"),
            pair(&SAGA_DEAD, ""),
            ("OTHER".to_owned(), "http://other".to_owned()),
        ]);
        assert_eq!(queues, [(SAGA, "http://saga".to_owned())].into_iter().collect());
        assert_eq!((queues.url(&SAGA), queues.url(&SAGA_DEAD)), (Some("http://saga"), None));
    }
}
