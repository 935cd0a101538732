//! The seeds that are known to find planted defects, so that every change can plant all of them in little time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use crate::many::{Range, hunt, planted};
use crate::options::{Mode, Mutant};
use crate::workload::Workload;

/// The result of planting every defect.
#[derive(Debug, Clone, Default)]
pub struct Hunt {
    /// The defects that no schedule found.
    pub survivors: Vec<(Mutant, Mode)>,
    /// The defects that their known seed did not find, or that have none, and that another seed found.
    pub outdated: Vec<(Mutant, Mode)>,
    /// The seeds that found the others, as [`hunt_all`] reads them.
    pub seeds: String,
}

impl Hunt {
    /// Writes the seeds into a file if there is a newer one for some defect and the environment variable `UPDATE` is
    /// set. Then no defect is outdated any more.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn update(&mut self, file: &Path) -> io::Result<()> {
        if !self.outdated.is_empty() && std::env::var_os("UPDATE").is_some() {
            fs::write(file, &self.seeds)?;
            self.outdated.clear();
        }
        Ok(())
    }
}

/// Plants every defect of the engine and of the workload, each by itself. Tries the seed that `known` has for it, and
/// this many schedules from seed 0 on if that one does not find it.
///
/// `known` has a line for each defect and mode: the defect, the mode and the seed, with a space in between. Lines of
/// any other form are ignored.
pub fn hunt_all<W: Workload>(workload: &W, known: &str, schedules: u64) -> Hunt {
    let known: BTreeMap<&str, u64> = known.lines().filter_map(entry).collect();
    let range = Range { first_seed: 0, count: schedules, threads: 2, stop_at_first: true };
    let mut result = Hunt::default();
    for defect in planted(workload) {
        let name = format!("{:?} {:?}", defect.0, defect.1);
        let at_seed = |seed: &u64| {
            let alone = Range { first_seed: *seed, count: 1, threads: 1, ..range };
            hunt(workload, defect, &alone).is_some()
        };
        let seed = known.get(name.as_str()).copied().filter(at_seed).or_else(|| {
            let found = hunt(workload, defect, &range)?;
            result.outdated.push(defect);
            Some(found.0)
        });
        match seed {
            // Writing to a string cannot fail.
            Some(seed) => drop(writeln!(result.seeds, "{name} {seed}")),
            None => result.survivors.push(defect),
        }
    }
    result
}

fn entry(line: &str) -> Option<(&str, u64)> {
    let (name, seed) = line.rsplit_once(' ')?;
    Some((name, seed.parse().ok()?))
}
