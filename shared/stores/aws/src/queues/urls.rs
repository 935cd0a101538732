//! The URLs of the queues.

use std::collections::BTreeMap;

use messages::{Queue, naming};

const SUFFIX: &str = "_QUEUE_URL";

/// The addresses of the queues of a system, by the environment variable that each is read from. A program requires only
/// the URLs of its own queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queues {
    system: String,
    urls: BTreeMap<String, String>,
}

impl Queues {
    /// Returns the environment variable with the address of a queue, such as `ORDERS_SAGA_QUEUE_URL` for the queue
    /// `saga` of `orders`.
    pub fn setting(system: &str, queue: &Queue) -> String {
        let queue = queue.name().replace('-', "_").to_uppercase();
        naming::setting(system, &(queue + SUFFIX))
    }

    /// Reads the addresses from pairs of name and value, such as the environment's. Other names are ignored, and an
    /// empty address counts as not set.
    pub fn from_pairs(system: &str, pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let prefix = naming::setting(system, "");
        let is_address =
            |name: &str, url: &str| name.starts_with(&prefix) && name.ends_with(SUFFIX) && !url.is_empty();
        let urls = pairs.into_iter().filter(|(name, url)| is_address(name, url)).collect();
        Self { system: system.to_owned(), urls }
    }

    /// Returns the addresses of these queues of a system.
    pub fn of(system: &str, queues: impl IntoIterator<Item = (Queue, String)>) -> Self {
        let urls = queues.into_iter().map(|(queue, url)| (Self::setting(system, &queue), url)).collect();
        Self { system: system.to_owned(), urls }
    }

    /// Returns the address of a queue.
    pub fn url(&self, queue: &Queue) -> Option<&str> {
        self.urls.get(&self.setting_of(queue)).map(String::as_str)
    }

    /// Returns the environment variable with the address of a queue of this system.
    pub fn setting_of(&self, queue: &Queue) -> String {
        Self::setting(&self.system, queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAGA: Queue = Queue::named("saga");
    const SAGA_DEAD: Queue = Queue::named("saga-dead");

    #[test]
    fn each_queue_has_its_own_setting() {
        assert_eq!(Queues::setting("search-import", &SAGA), "SEARCH_IMPORT_SAGA_QUEUE_URL");
        let unreadable = Queue::named("parse-unreadable");
        let setting = Queues::setting("search-import", &unreadable);
        assert_eq!(setting, "SEARCH_IMPORT_PARSE_UNREADABLE_QUEUE_URL");
        let pair = |queue, url: &str| (Queues::setting("search-import", queue), url.to_owned());
        let queues = Queues::from_pairs(
            "search-import",
            [
                pair(&SAGA, "http://saga"),
                pair(&SAGA_DEAD, ""),
                ("OTHER".to_owned(), "http://other".to_owned()),
                (Queues::setting("orders", &SAGA), "http://orders".to_owned()),
            ],
        );
        assert_eq!(queues, Queues::of("search-import", [(SAGA, "http://saga".to_owned())]));
        assert_eq!((queues.url(&SAGA), queues.url(&SAGA_DEAD)), (Some("http://saga"), None));
    }
}
