//! Traces for developers.

use crate::world::World;

impl World {
    /// Writes a line for the current worker, if a trace was requested.
    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        if !self.config.trace {
            return;
        }
        let who = self.acting.and_then(|process| self.names.get(process)).map_or("", String::as_str);
        let line = format!("t={}  {who:<14}  {}", clock(self.now), what());
        self.trace.push(line);
    }
}

/// Formats milliseconds as a clock time, preceded by the number of days if it is not zero.
fn clock(ms: u64) -> String {
    let (seconds, tenths) = (ms / 1_000, ms % 1_000);
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let time = format!("{hours:02}:{:02}:{:02}.{tenths:03}", seconds / 60 % 60, seconds % 60);
    if days == 0 { time } else { format!("{days}d {time}") }
}

#[cfg(test)]
mod tests {
    use super::clock;

    #[test]
    fn clock_shows_days_after_the_first() {
        assert_eq!(clock(12_345), "00:00:12.345");
        assert_eq!(clock(8 * 86_400_000 + 3_600_000), "8d 01:00:00.000");
    }
}
