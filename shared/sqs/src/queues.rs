//! Where the queues are.

use std::collections::BTreeMap;

use outbox::Queue;

/// The addresses of queues, by queue. A program needs only those that it uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queues(BTreeMap<Queue, String>);

impl Queues {
    /// The environment variable that a queue's address is read from, such as `SEARCH_IMPORT_SAGA_QUEUE_URL`.
    pub fn setting(queue: Queue) -> String {
        format!("SEARCH_IMPORT_{}_QUEUE_URL", queue.name().replace('-', "_").to_uppercase())
    }

    /// Reads the addresses from pairs of name and value, such as the environment's; other names are passed over, and
    /// an empty address is none.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let pairs: BTreeMap<String, String> = pairs.into_iter().collect();
        let url = |queue| pairs.get(&Self::setting(queue)).filter(|url| !url.is_empty()).cloned();
        Queue::ALL.into_iter().filter_map(|queue| Some((queue, url(queue)?))).collect()
    }

    /// A queue's address.
    pub fn url(&self, queue: Queue) -> Option<&str> {
        self.0.get(&queue).map(String::as_str)
    }
}

impl FromIterator<(Queue, String)> for Queues {
    fn from_iter<T: IntoIterator<Item = (Queue, String)>>(queues: T) -> Self {
        Self(queues.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_a_setting_of_its_own() {
        assert_eq!(Queues::setting(Queue::Saga), "SEARCH_IMPORT_SAGA_QUEUE_URL");
        assert_eq!(Queues::setting(Queue::ParseUnreadable), "SEARCH_IMPORT_PARSE_UNREADABLE_QUEUE_URL");
        let pair = |queue, url: &str| (Queues::setting(queue), url.to_owned());
        let queues = Queues::from_pairs([
            pair(Queue::Saga, "http://saga"),
            pair(Queue::SagaDead, ""),
            ("OTHER".to_owned(), "http://other".to_owned()),
        ]);
        assert_eq!(queues, [(Queue::Saga, "http://saga".to_owned())].into_iter().collect());
    }
}
