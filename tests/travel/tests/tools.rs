//! The tools of the travel booking, as a program.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use std::process::Command;

use rstest::rstest;

#[rstest]
fn both_variants_are_simulated(#[values("machine", "steps")] variant: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_travel-tools"));
    if variant == "steps" {
        command.arg("--steps");
    }
    let output = command.args(["simulate", "--schedules", "20", "--mode", "ledger"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("20 schedules from seed 0 on"), "{text}");
}
