//! The speed and the memory of reading reference files.
//!
//! - [`measure`]: files of two sizes for each format, on one core and on all, and the memory for large files;
//! - [`files`]: the generated files, which can be written to disk for a comparison with other readers.

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

/// The maximum ratio of the time for a record in the larger file to the time in the smaller file.
pub const GROWTH_BOUND: f64 = 1.15;

/// The maximum memory for reading a file of any size, in MiB.
pub const PEAK_BOUND: f64 = 64.0;

/// The sizes of the files for measuring memory, in megabytes.
const LARGE: [(&str, usize); 2] = [("ris", 257), ("endnote.xml", 300)];

/// The size of the chunks that `parse-references` passes to the reader.
const PUSH_BYTES: usize = 1 << 20;

/// The number of records that the parser reads at a time.
const BATCH: usize = 1_024;

/// The number of runs. The best one counts, because the others were disturbed.
const RUNS: usize = 5;

/// The result of the benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The number of cores.
    pub cores: usize,
    /// The results for each format.
    pub formats: Vec<Row>,
    /// The results for each large file.
    pub large: Vec<Large>,
}

/// The result for one format, with the larger file unless stated otherwise.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The format's file extension.
    pub format: &'static str,
    /// The number of records in the file.
    pub records: usize,
    /// The size of the file.
    pub megabytes: f64,
    /// The rate on one core, by CPU time.
    pub megabytes_per_second: f64,
    /// The number of records per second on one core, by CPU time.
    pub records_per_second: f64,
    /// The speedup on all cores, by elapsed time.
    pub speedup: f64,
    /// The speedup if each core reads its own file, which is the maximum for this machine. Virtual cores that share a
    /// physical core give less than their number.
    pub ceiling: f64,
    /// The minimum rate on one core, if there is a bound.
    pub bound: Option<f64>,
    /// The ratio of the time for a record to the time for a record in the smaller file.
    pub growth: f64,
    /// The peak memory of the process; `None` if the system does not report it.
    pub peak_mib: Option<f64>,
}

/// The result for a large file.
#[derive(Debug, Clone, Serialize)]
pub struct Large {
    /// The format's file extension.
    pub format: &'static str,
    /// The size of the file.
    pub megabytes: f64,
    /// The peak memory of the process, including the program itself.
    pub peak_mib: Option<f64>,
}

impl Row {
    /// Returns `true` if all bounds hold.
    pub fn holds(&self) -> bool {
        self.growth <= GROWTH_BOUND
            && self.bound.is_none_or(|bound| self.megabytes_per_second >= bound)
            && self.peak_mib.is_none_or(|peak| peak <= PEAK_BOUND)
    }
}

impl Large {
    /// Returns `true` if the bound holds.
    pub fn holds(&self) -> bool {
        self.peak_mib.is_none_or(|peak| peak <= PEAK_BOUND)
    }
}

/// Runs the benchmark with files of `sizes` records.
///
/// # Errors
/// Returns an error if a read file differs from the generated one.
pub fn measure(sizes: [usize; 2]) -> anyhow::Result<Report> {
    // Metric memory first, because the allocator may keep memory once it was allocated.
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
    // The measurements alternate, so that disturbances affect all of them.
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

/// Returns the CPU time, which excludes other programs on the machine.
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

/// Returns the time until each core has read its own copy of the file, all concurrently.
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

/// Reads a file that is generated during reading.
fn in_little_memory(kind: Kind, records: usize) -> anyhow::Result<Large> {
    reset_peak();
    let mut bytes = 0;
    let pieces = kind.pieces(records, PUSH_BYTES).inspect(|piece| bytes += piece.len());
    read(pieces, records, NonZeroUsize::MIN)?;
    Ok(Large { format: kind.name, megabytes: bytes as f64 / 1e6, peak_mib: peak_mib() })
}

/// Reads a file like `parse-references`: the thread that reads a record also creates and drops its derived data.
///
/// # Errors
/// Returns an error if it does not have this number of readable records.
pub fn read(
    pieces: impl Iterator<Item = impl AsRef<[u8]>>,
    records: usize,
    threads: NonZeroUsize,
) -> anyhow::Result<()> {
    let mut reader = Reader::new(Limits::default()).with_threads(threads);
    let all = |reader: &mut Reader| {
        let made = |outcome| drop(std::hint::black_box(outcome));
        while reader.read_as(BATCH, &made)?.len() == BATCH {}
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
