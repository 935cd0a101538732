//! The two levels of proof: one for every change, and one for `make prove`, which runs every night and before a
//! release.
//!
//! The level is the environment variable `PROOF`: `deep` for the second one, anything else for the first. Tests that
//! have no short form are in modules named `deep`, which `.config/nextest.toml` excludes from the first level.

use std::env;

/// Returns `true` if this run is a deep one.
pub fn is_deep() -> bool {
    env::var("PROOF").is_ok_and(|level| level == "deep")
}

/// Returns the size for the level of this run: `change` on every change, `deep` in a deep run.
pub fn size<T>(change: T, deep: T) -> T {
    if is_deep() { deep } else { change }
}

/// Returns the first seed of schedules that no earlier run has tried: `PROOF_SEED`, which the Makefile derives from the
/// date and prints. Without this variable, the seed is always the same.
///
/// # Panics
/// Panics if `PROOF_SEED` is not a number.
pub fn fresh_seed() -> u64 {
    match env::var("PROOF_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("PROOF_SEED={text} is not a number: {error}")),
        Err(_) => 1_000_000_000,
    }
}
