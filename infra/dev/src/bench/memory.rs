//! The memory of a process, if the system reports it (Linux, see proc(5)).

/// Resets the peak memory of this process.
pub(super) fn reset_peak() {
    // If the reset fails, the peak is unavailable or too high, but never too low.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the peak memory of this process since the reset, in MiB.
pub(super) fn peak_mib() -> Option<f64> {
    mib("VmHWM:")
}

/// Returns the peak memory of another process, in MiB.
pub(super) fn peak_mib_of(process: u32) -> Option<f64> {
    mib_of(&process.to_string(), "VmHWM:")
}

/// Returns the current memory of this process, in MiB.
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
