//! How much time, and how many connections, clients may take.

use std::time::Duration;

/// How slowly a body may come. Time counts only while nothing is there to be read: how long the server takes is not
/// the client's fault. The rule of Apache's `mod_reqtimeout`: some time, and more for each byte.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long nothing may come, and how much waiting every body is allowed altogether.
    pub pause: Duration,
    /// Each so many bytes allow another second of waiting.
    pub bytes_per_second: u64,
}

impl Pace {
    /// The waiting that a body is allowed altogether once so many of its bytes have come.
    pub(super) fn allowance(&self, received: u64) -> Duration {
        self.pause + Duration::from_secs(received / self.bytes_per_second.max(1))
    }
}

/// What clients may take. The defaults are for people and their scripts: generous to a slow line, and none is worth
/// much to somebody who holds connections open.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many connections there are at most. When one more comes, the one goes that has waited longest for a request.
    pub connections: usize,
    /// How many uploads are stored at the same time; others wait, unread. Each has pieces of 256 KiB in memory.
    pub uploads: usize,
    /// How long an upload waits for that.
    pub upload_wait: Duration,
    /// How long a connection may be without a whole request head: idle, or in the middle of one.
    pub head: Duration,
    /// How slowly a request's body may come.
    pub body: Pace,
    /// How long a client may leave an answer unread.
    pub answer: Duration,
    /// How long a client that has been answered may go on sending, so that it gets to read the answer.
    pub linger: Duration,
    /// How long requests under way may take after the server was asked to stop.
    pub stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            uploads: 32,
            upload_wait: Duration::from_secs(20),
            head: Duration::from_secs(20),
            body: Pace { pause: Duration::from_secs(20), bytes_per_second: 8 * 1024 },
            answer: Duration::from_secs(20),
            linger: Duration::from_secs(2),
            stop: Duration::from_secs(6),
        }
    }
}

impl Limits {
    /// The defaults, with no more connections than half of the descriptors that this process may have: files and the
    /// database need theirs.
    pub fn of_this_process() -> Self {
        let limits = Self::default();
        #[cfg(unix)]
        let limits = match rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
            Some(descriptors) => limits.within(descriptors),
            None => limits,
        };
        limits
    }

    #[cfg(unix)]
    fn within(self, descriptors: u64) -> Self {
        let half = usize::try_from(descriptors / 2).unwrap_or(usize::MAX);
        Self { connections: self.connections.min(half.max(1)), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_buy_time() {
        let pace = Pace { pause: Duration::from_secs(20), bytes_per_second: 1_000 };
        assert_eq!(pace.allowance(0), Duration::from_secs(20));
        assert_eq!(pace.allowance(60_500), Duration::from_secs(80));
    }

    #[cfg(unix)]
    #[test]
    fn few_descriptors_mean_few_connections() {
        assert_eq!(Limits::default().within(256).connections, 128);
        assert_eq!(Limits::default().within(1).connections, 1);
        assert_eq!(Limits::default().within(1_000_000).connections, 512);
    }
}
