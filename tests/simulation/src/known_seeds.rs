//! The seeds that are known to find planted defects, so that the tests of every change can plant all of them quickly.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use crate::options::{Mode, Mutant};
use crate::runner::{Range, hunt, planted};
use crate::workload::Workload;

/// The result of planting all defects.
#[derive(Debug, Clone, Default)]
pub struct Hunt {
    /// The defects that no schedule found.
    pub survivors: Vec<(Mutant, Mode)>,
    /// The defects without a known seed that finds them, but found by another seed.
    pub outdated: Vec<(Mutant, Mode)>,
    /// The seeds that found the other defects, in the format of [`hunt_all`].
    pub seeds: String,
}

impl Hunt {
    /// Writes the seeds into a file if a defect has a new seed and the environment variable `UPDATE` is set. After
    /// that, no defect is outdated.
    pub fn update(&mut self, file: &Path) -> io::Result<()> {
        if !self.outdated.is_empty() && std::env::var_os("UPDATE").is_some() {
            fs::write(file, &self.seeds)?;
            self.outdated.clear();
        }
        Ok(())
    }

    /// Checks that every defect was found, after an [update](Self::update) of the file with the known seeds.
    ///
    /// # Panics
    /// Panics if a defect was not found or has no known seed, or if the file cannot be written.
    #[allow(clippy::expect_used, reason = "a file that cannot be written fails the test")]
    pub fn assert_complete(mut self, file: impl AsRef<Path>) {
        self.update(file.as_ref()).expect("a file to write");
        assert_eq!(self.survivors, []);
        assert_eq!(self.outdated, [], "their seeds find them no more: run `make seeds`");
    }
}

/// Plants every defect of the engine and of the workload separately. For each defect, its seed in `known` is tried
/// first. If this seed does not find the defect, `schedules` schedules from seed 0 on are tried.
///
/// `known` has a line for each defect and mode: the defect, the mode and the seed, with a space in between. Lines of
/// any other form are ignored.
pub fn hunt_all<W: Workload>(workload: &W, known: &str, schedules: u64) -> Hunt {
    let known: BTreeMap<&str, u64> = known.lines().filter_map(entry).collect();
    let range = Range { first_seed: 0, count: schedules, threads: 2, stop_at_first: true };
    let mut result = Hunt::default();
    for defect in planted(workload) {
        let (mutant, mode) = defect;
        let name = format!("{mutant:?} {mode:?}");
        let at_seed = |seed: &u64| {
            let alone = Range { first_seed: *seed, count: 1, threads: 1, ..range };
            hunt(workload, mutant, mode, &alone).is_some()
        };
        let seed = known.get(name.as_str()).copied().filter(at_seed).or_else(|| {
            eprintln!("{name}: no recorded seed finds it, so up to {schedules} schedules are tried");
            let (seed, violation) = hunt(workload, mutant, mode, &range)?;
            eprintln!("{name}: seed {seed} finds it: {violation}");
            result.outdated.push(defect);
            Some(seed)
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
