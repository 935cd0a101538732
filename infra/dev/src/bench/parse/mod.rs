//! How fast reference files are read, and in how much memory.
//!
//! - [`measure`]: files of two sizes for each format, on one core and on all; large files in little memory;
//! - [`files`]: the files, which can be written out for other readers to be compared with.

pub mod files;

use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use files::{KINDS, Kind};
use references::{Limits, Reader};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::memory::{peak_mib, reset_peak};

/// The two sizes of files, in records.
pub const RECORDS: [usize; 2] = [10_000, 80_000];

/// By how much a record of the larger file may take longer than one of the smaller.
pub const GROWTH_BOUND: f64 = 1.15;

/// The most memory that reading may take, whatever the size of the file, in MiB.
pub const PEAK_BOUND: f64 = 64.0;

/// The files that memory is measured with, in megabytes.
const LARGE: [(&str, usize); 2] = [("ris", 257), ("endnote.xml", 300)];

/// As much as `parse-references` hands over before it reads records.
const PUSH_BYTES: usize = 1 << 20;

/// How many records it has read at a time.
const AT_ONCE: usize = 1_024;

/// How many runs there are. The best counts: the others were disturbed.
const RUNS: usize = 5;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// How many cores there are.
    pub cores: usize,
    /// One for each format.
    pub formats: Vec<Row>,
    /// One for each large file.
    pub large: Vec<Large>,
}

/// What was measured of one format, with the larger file unless something else is said.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The format's file extension.
    pub format: &'static str,
    /// Records in the file.
    pub records: usize,
    /// Its size.
    pub megabytes: f64,
    /// On one core, by the time that it worked.
    pub megabytes_per_second: f64,
    /// The same in records.
    pub records_per_second: f64,
    /// How many times as fast it is on all cores, by the clock.
    pub speedup: f64,
    /// How many times as much is read when each core reads a file of its own: what the machine has to give. Cores that
    /// share the parts of one are fewer than they look.
    pub ceiling: f64,
    /// The least that one core has to reach, where that is settled.
    pub bound: Option<f64>,
    /// The time for a record, divided by that in the smaller file.
    pub growth: f64,
    /// The most memory that the process had meanwhile; none where the system does not tell.
    pub peak_mib: Option<f64>,
}

/// What reading a large file took.
#[derive(Debug, Clone, Serialize)]
pub struct Large {
    /// The format's file extension.
    pub format: &'static str,
    /// Its size.
    pub megabytes: f64,
    /// The most memory that the process had meanwhile, the program itself included.
    pub peak_mib: Option<f64>,
}

impl Row {
    /// Whether every bound is kept.
    pub fn holds(&self) -> bool {
        self.growth <= GROWTH_BOUND
            && self.bound.is_none_or(|bound| self.megabytes_per_second >= bound)
            && self.peak_mib.is_none_or(|peak| peak <= PEAK_BOUND)
    }
}

impl Large {
    /// Whether the bound is kept.
    pub fn holds(&self) -> bool {
        self.peak_mib.is_none_or(|peak| peak <= PEAK_BOUND)
    }
}

/// Runs the benchmark with files of `sizes` records.
///
/// # Errors
/// When a file is not read as it was made.
pub fn measure(sizes: [usize; 2]) -> anyhow::Result<Report> {
    // Memory first: what a process has once had, its allocator may keep.
    let large = KINDS.iter().filter_map(|kind| {
        let (_, megabytes) = LARGE.into_iter().find(|(name, _)| *name == kind.name)?;
        Some(in_little_memory(*kind, kind.records_for(megabytes * 1_000_000)))
    });
    let large = large.collect::<anyhow::Result<Vec<_>>>()?;
    let peaks = KINDS.iter().map(|kind| in_little_memory(*kind, sizes[1]));
    let peaks = peaks.collect::<anyhow::Result<Vec<_>>>()?;
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let rows = KINDS.iter().zip(peaks).map(|(kind, peak)| row(*kind, sizes, cores, peak.peak_mib));
    Ok(Report { cores: cores.get(), formats: rows.collect::<anyhow::Result<_>>()?, large })
}

/// Writes the files into a folder, as `RECORDS.EXTENSION`.
///
/// # Errors
/// When they cannot be written.
pub fn write(folder: &Path, sizes: [usize; 2]) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("creating {} failed", folder.display()))?;
    for kind in KINDS {
        for records in sizes {
            let path = folder.join(format!("{records}.{}", kind.name));
            let written = File::create(&path).and_then(|mut file| {
                kind.pieces(records, PUSH_BYTES).try_for_each(|piece| file.write_all(piece.as_bytes()))
            });
            written.with_context(|| format!("writing {} failed", path.display()))?;
        }
    }
    Ok(())
}

fn row(
    kind: Kind,
    [few, many]: [usize; 2],
    cores: NonZeroUsize,
    peak_mib: Option<f64>,
) -> anyhow::Result<Row> {
    let file = |records| kind.pieces(records, PUSH_BYTES).collect::<String>().into_bytes();
    let (small, large) = (file(few), file(many));
    let [mut short, mut long, mut alone, mut on_all, mut apart] = [f64::MAX; 5];
    // In turns, so that what disturbs one of them disturbs the others too.
    for _ in 0..RUNS {
        short = short.min(seconds_of_one_core(&small, few)?);
        long = long.min(seconds_of_one_core(&large, many)?);
        alone = alone.min(seconds(&large, many, NonZeroUsize::MIN)?);
        on_all = on_all.min(seconds(&large, many, cores)?);
        apart = apart.min(seconds_of_a_file_each(&large, many, cores)?);
    }
    let megabytes = large.len() as f64 / 1e6;
    Ok(Row {
        format: kind.name,
        records: many,
        megabytes,
        megabytes_per_second: megabytes / long,
        records_per_second: many as f64 / long,
        speedup: alone / on_all,
        ceiling: cores.get() as f64 * alone / apart,
        bound: kind.bound,
        growth: (long / many as f64) / (short / few as f64),
        peak_mib,
    })
}

/// The time that a core worked on it, which other programs on the machine do not add to.
fn seconds_of_one_core(file: &[u8], records: usize) -> anyhow::Result<f64> {
    let worked = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime));
    let began = worked()?;
    read(file.chunks(PUSH_BYTES), records, NonZeroUsize::MIN)?;
    Ok(worked()?.saturating_sub(began).as_secs_f64())
}

fn seconds(file: &[u8], records: usize, threads: NonZeroUsize) -> anyhow::Result<f64> {
    let began = Instant::now();
    read(file.chunks(PUSH_BYTES), records, threads)?;
    Ok(began.elapsed().as_secs_f64())
}

/// Until each core has read the file by itself, all at the same time.
fn seconds_of_a_file_each(file: &[u8], records: usize, cores: NonZeroUsize) -> anyhow::Result<f64> {
    let began = Instant::now();
    std::thread::scope(|scope| {
        let one = || read(file.chunks(PUSH_BYTES), records, NonZeroUsize::MIN);
        let all: Vec<_> = (0..cores.get()).map(|_| scope.spawn(one)).collect();
        all.into_iter().try_for_each(|thread| match thread.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok(began.elapsed().as_secs_f64())
}

/// Reads a file that is made while it is read.
fn in_little_memory(kind: Kind, records: usize) -> anyhow::Result<Large> {
    reset_peak();
    let mut bytes = 0;
    let pieces = kind.pieces(records, PUSH_BYTES).inspect(|piece| bytes += piece.len());
    read(pieces, records, NonZeroUsize::MIN)?;
    Ok(Large { format: kind.name, megabytes: bytes as f64 / 1e6, peak_mib: peak_mib() })
}

/// Reads a file as `parse-references` does: what it makes of a record is made, and given back, by the thread that has read it.
fn read(
    pieces: impl Iterator<Item = impl AsRef<[u8]>>,
    records: usize,
    threads: NonZeroUsize,
) -> anyhow::Result<()> {
    let mut reader = Reader::new(Limits::default()).with_threads(threads);
    let all = |reader: &mut Reader| {
        let made = |outcome| drop(std::hint::black_box(outcome));
        while reader.read_as(AT_ONCE, &made)?.len() == AT_ONCE {}
        Ok::<_, references::Error>(())
    };
    for piece in pieces {
        reader.feed(piece.as_ref());
        all(&mut reader)?;
    }
    reader.end();
    all(&mut reader)?;
    let report = reader.report()?;
    ensure!((report.records, report.quarantined) == (records as u64, 0), "read {report:?} of {records}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_records_however_it_is_cut() {
        for kind in KINDS {
            for piece in [1, 5_000, usize::MAX] {
                read(kind.pieces(30, piece), 30, NonZeroUsize::MIN).unwrap();
            }
        }
    }

    #[test]
    fn a_row_is_held_to_its_bounds() {
        let row = Row {
            format: "ris",
            records: 1,
            megabytes: 1.0,
            megabytes_per_second: 100.0,
            records_per_second: 1.0,
            speedup: 1.0,
            ceiling: 1.0,
            bound: Some(100.0),
            growth: 1.15,
            peak_mib: Some(64.0),
        };
        assert!(row.holds());
        assert!(!Row { megabytes_per_second: 99.0, ..row.clone() }.holds());
        assert!(!Row { growth: 1.16, ..row.clone() }.holds());
        assert!(!Row { peak_mib: Some(65.0), ..row }.holds());
    }
}
