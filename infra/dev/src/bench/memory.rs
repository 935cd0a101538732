//! How much memory a process has, where the system tells (Linux; see proc(5)).

/// Forgets the most memory that this process had so far.
pub(super) fn reset_peak() {
    // Where it cannot be reset there is no peak to be read either, or one that is too high and never too low.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that this process had since, in MiB.
pub(super) fn peak_mib() -> Option<f64> {
    mib("VmHWM:")
}

/// The most memory that another process had so far, in MiB.
pub(super) fn peak_mib_of(process: u32) -> Option<f64> {
    mib_of(&process.to_string(), "VmHWM:")
}

/// What this one has now, in MiB.
pub(super) fn resident_mib() -> Option<f64> {
    mib("VmRSS:")
}

fn mib(name: &str) -> Option<f64> {
    mib_of("self", name)
}

fn mib_of(process: &str, name: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
