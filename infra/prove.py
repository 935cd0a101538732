#!/usr/bin/env python3
"""Runs the long proofs, and records their results in docs/measured/proof.json.

    prove.py [STEP ...]            all steps, or the named ones

    simulation    100,000 schedules for each mode and workload, and every planted defect with fresh seeds
    model         every configuration of the models
    tests         all other tests with PROOF=deep: 200 searches for each fault, the replica set, the full
                  disk, an hour without a database
    deployment    the functions of `make build`, deployed to the substitute for AWS, with a rotated secret
    api           the HTTP API against its description, with generated requests
    any_bytes, each_format, packed, stored
                  the fuzz targets, each for FUZZ_SECONDS (one hour)

Missing tools of a step are reported before the first step. A step that fails is recorded as failed, the
others still run, and the exit code is 1.
"""

import datetime
import json
import os
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scripts import commands, console
from scripts.console import say
from scripts.errors import check
from scripts.paths import ROOT

RECORD = ROOT / "docs" / "measured" / "proof.json"
FUZZ_SECONDS = "3600"
# The line with the totals that nextest, libFuzzer and the rehearsal print.
TOTALS = re.compile(
    r"^.*(?:tests run:|^Done \d+ runs|\d+ generated,|deployed, compared and used).*$", re.MULTILINE
)


@dataclass(frozen=True)
class Step:
    command: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)


def fuzz(target: str) -> Step:
    """Returns the command of a fuzz target. The address sanitizer requires a nightly compiler."""
    folder = "tests/fuzz"
    found = f"target/fuzz/{target}"
    seconds = f"-max_total_time={os.environ.get('FUZZ_SECONDS', FUZZ_SECONDS)}"
    corpora = [found, f"{folder}/seeds/{target}"]
    run = ["cargo", "fuzz", "run", "--fuzz-dir", folder, target, *corpora, "--", seconds]
    return Step(run, {"RUSTC_BOOTSTRAP": "1"})


SIMULATION = "binary(simulation)"
MODEL = "binary(model) | package(model)"


def tests(chosen: str) -> Step:
    return Step(["make", "test", "PROFILE=deep", f"TESTS={chosen}"], {"PROOF": "deep"})


def steps() -> dict[str, Step]:
    return {
        "simulation": tests(SIMULATION),
        "model": tests(MODEL),
        "tests": tests(f"not ({SIMULATION} | {MODEL})"),
        "deployment": Step(["make", "test-deploy"], {"FUNCTIONS": "sam", "PROOF": "deep"}),
        "api": Step(["make", "test-api"]),
        "any_bytes": fuzz("any_bytes"),
        "each_format": fuzz("each_format"),
        "packed": fuzz("packed"),
        "stored": fuzz("stored"),
    }


def totals(output: str) -> str:
    """Returns the last line with totals, or the last line of all if there is none."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    found = TOTALS.findall(plain)
    return found[-1].strip() if found else commands.summary(plain).splitlines()[0]


def prepare(step: Step) -> None:
    """Checks for the tools of a step, and creates its folder."""
    if "PROFILE=deep" in step.command:
        commands.quietly(["cargo", "nextest", "--version"], "tests need cargo-nextest of crates.io")
    if "fuzz" in step.command:
        commands.quietly(["cargo", "fuzz", "--version"], "fuzzing needs cargo-fuzz of crates.io")
        (ROOT / step.command[6]).mkdir(parents=True, exist_ok=True)


def run(name: str, step: Step) -> dict[str, object]:
    """Runs a step, shows its output, and returns its record."""
    say(f"== {name}: {' '.join(step.command)}")
    began = time.monotonic()
    lines = []
    with subprocess.Popen(
        step.command,
        cwd=ROOT,
        env={**os.environ, **step.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commands.output(["git", "rev-parse", "--short=12", "HEAD"]).strip(),
        "passed": process.returncode == 0,
        "seconds": round(time.monotonic() - began),
        "seed": os.environ.get("PROOF_SEED", ""),
        "totals": totals("".join(lines)),
    }


def record(path: Path, name: str, result: dict[str, object]) -> None:
    """Replaces the step's last result, and keeps those of other steps."""
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**known, name: result}, indent=2) + "\n", "utf-8")


def main(arguments: list[str]) -> int:
    all_steps = steps()
    unknown = [name for name in arguments if name not in all_steps]
    check(not unknown, f"unknown step {', '.join(unknown)}: use {', '.join(all_steps)}")
    chosen = arguments or list(all_steps)
    for name in chosen:
        prepare(all_steps[name])
    failed = []
    for name in chosen:
        result = run(name, all_steps[name])
        record(RECORD, name, result)
        if not result["passed"]:
            failed.append(name)
    check(not failed, f"these proofs failed: {', '.join(failed)}")
    return 0


if __name__ == "__main__":
    console.start("prove", main, __doc__)
