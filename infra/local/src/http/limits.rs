//! Limits on the time and the connections of clients.

use std::time::Duration;

/// The minimum rate of a request's body. Only the time during which no bytes are available counts, which excludes the
/// server's own work. The rule corresponds to Apache's `mod_reqtimeout`: an initial time, which every byte extends.
#[derive(Debug, Clone, Copy)]
pub struct MinRate {
    /// The maximum pause, and the initial total waiting time.
    pub pause: Duration,
    /// The number of bytes that extend the total waiting time by a second.
    pub bytes_per_second: u64,
}

impl MinRate {
    /// Returns the total waiting time of a body after this many bytes.
    pub(super) fn allowance(&self, received: u64) -> Duration {
        self.pause + Duration::from_secs(received / self.bytes_per_second.max(1))
    }
}

/// Limits on clients. The defaults suit users and their scripts. They tolerate slow connections, but an attacker gains
/// little from holding connections open.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of connections. A further one replaces the connection that has waited longest for a request.
    pub connections: usize,
    /// The maximum number of uploads that are stored concurrently. Others wait without being read. Each needs chunks of
    /// 256 KiB in memory.
    pub uploads: usize,
    /// The maximum time that an upload waits.
    pub upload_wait: Duration,
    /// The maximum time without a complete request head, idle or in the middle of one.
    pub head: Duration,
    /// The minimum rate of a request's body.
    pub body: MinRate,
    /// The maximum time that a client may leave a response unread.
    pub answer: Duration,
    /// The maximum time for which a client may continue sending after its response, so that it can read the response.
    pub linger: Duration,
    /// The maximum time for requests in progress after the server was asked to stop.
    pub stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            uploads: 32,
            upload_wait: Duration::from_secs(20),
            head: Duration::from_secs(20),
            body: MinRate { pause: Duration::from_secs(20), bytes_per_second: 8 * 1024 },
            answer: Duration::from_secs(20),
            linger: Duration::from_secs(2),
            stop: Duration::from_secs(6),
        }
    }
}

impl Limits {
    /// Returns the defaults, with connections limited to half of the file descriptors of this process. Files and the
    /// database need the rest.
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
    fn received_bytes_extend_the_allowance() {
        let min_rate = MinRate { pause: Duration::from_secs(20), bytes_per_second: 1_000 };
        assert_eq!(min_rate.allowance(0), Duration::from_secs(20));
        assert_eq!(min_rate.allowance(60_500), Duration::from_secs(80));
    }

    #[cfg(unix)]
    #[test]
    fn connections_are_limited_by_descriptors() {
        assert_eq!(Limits::default().within(256).connections, 128);
        assert_eq!(Limits::default().within(1).connections, 1);
        assert_eq!(Limits::default().within(1_000_000).connections, 512);
    }
}
