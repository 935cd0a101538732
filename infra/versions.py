#!/usr/bin/env python3
"""Compares this program with an earlier version of it, in turns on one machine.

    versions.py PROGRAM [--base REVISION] [--rounds N] [--slower PERCENT] [--only NAME...]

PROGRAM is `dev` of the work tree, built with --release. The earlier program is built from REVISION, by
default the last tag, in a separate work tree below target/versions. Both run the same benchmarks alternately
(A B, B A, ...), so that other work on the machine affects both.

Exits with 1 if a figure is more than 15 % worse (--slower) by the ratio of the medians, and names it.
Benchmarks that the earlier program does not have are named and omitted.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from scripts import commands, console
from scripts.console import say
from scripts.errors import Failure, check
from scripts.paths import ROOT

HOME = ROOT / "target" / "versions"
# The exit code of clap for an unknown benchmark or option.
UNKNOWN = 2
# The sizes are chosen so that all rounds of all benchmarks take about ten minutes.
BENCHES: dict[str, list[str]] = {
    "saga": ["saga", "--sagas", "2000", "--clients", "32"],
    "saga, one client": ["saga", "--sagas", "300", "--clients", "1"],
    "saga, optimistic": ["saga", "--sagas", "2000", "--clients", "32", "--mode", "optimistic"],
    "parse": ["parse", "--records", "1000", "10000"],
    "sweep": ["sweep", "--settled", "20000"],
    "duplicates": ["duplicates", "--studies", "5000"],
    "calls": ["calls"],
}
# The benchmarks that need a folder for their stores.
IN_FOLDER = frozenset(BENCHES) - {"parse"}


@dataclass(frozen=True)
class Figure:
    value: float
    larger_is_better: bool


@dataclass(frozen=True)
class Verdict:
    name: str
    before: float
    after: float
    # The factor by which the figure is worse: 1.0 is equal, and 2.0 takes twice as long.
    worse: float

    def is_slower(self, percent: float) -> bool:
        return self.worse > 1 + percent / 100

    def line(self, percent: float) -> str:
        word = "SLOWER" if self.is_slower(percent) else "holds"
        return f"| {self.name} | {self.before:,.4g} | {self.after:,.4g} | {self.worse:.2f} | {word} |"


def figures(name: str, report: Any) -> dict[str, Figure]:
    """The figures of a benchmark, by the names used in a verdict."""
    if name.startswith("saga"):
        return {
            f"{name}: messages a second": Figure(report["per_second"], True),
            f"{name}: p50 ms": Figure(report["p50_ms"], False),
        }
    if name == "parse":
        return {
            f"parse {row['format']}: MB/s": Figure(row["megabytes_per_second"], True)
            for row in report["formats"]
        }
    if name == "sweep":
        last = report["rows"][-1]
        return {f"sweep: {what}": Figure(last[what], False) for what in ("idle_us", "due_us")}
    if name == "duplicates":
        return {f"duplicates: {what}": Figure(report[what], False) for what in ("storing_s", "marking_s")}
    return {
        f"calls, {row['mode']}, {row['situation']}: {service}": Figure(row[service] / row["messages"], False)
        for row in report
        for service in ("dynamodb", "mongodb", "sends")
    }


def verdicts(before: Sequence[dict[str, Figure]], after: Sequence[dict[str, Figure]]) -> list[Verdict]:
    """Returns a verdict for each figure that both programs have."""
    names = [name for name in before[0] if name in after[0]] if before and after else []
    return [verdict(name, [each[name] for each in before], [each[name] for each in after]) for name in names]


def verdict(name: str, before: Sequence[Figure], after: Sequence[Figure]) -> Verdict:
    old, new = (median(figure.value for figure in figures) for figures in (before, after))
    better, worse = (old, new) if not before[0].larger_is_better else (new, old)
    # From zero, any increase is infinitely worse, and zero is equal.
    return Verdict(name, old, new, worse / better if better else (1.0 if not worse else float("inf")))


@dataclass
class Program:
    path: Path
    unknown: set[str]

    def measure(self, name: str) -> dict[str, Figure] | None:
        """Runs a benchmark. Returns None if this version does not have it."""
        if name in self.unknown:
            return None
        command = [str(self.path), "bench", *BENCHES[name], "--json"]
        if name in IN_FOLDER:
            command += ["--dir", str(HOME / "data")]
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HOME)
        if result.returncode == UNKNOWN:
            self.unknown.add(name)
            return None
        # The exit code reports an exceeded bound; the figures are printed anyway.
        check(bool(result.stdout), f"{self.path} {name} failed: {commands.summary(result.stderr)}")
        try:
            return figures(name, json.loads(result.stdout))
        except (KeyError, TypeError, ValueError):
            # The output differs from the output of the current version.
            self.unknown.add(name)
            return None


def compare(before: Program, after: Program, names: Sequence[str], rounds: int) -> list[Verdict]:
    found: list[Verdict] = []
    for name in names:
        measured: dict[str, list[dict[str, Figure]]] = {"before": [], "after": []}
        for number in range(rounds):
            turn = [("before", before), ("after", after)]
            for which, program in turn if number % 2 == 0 else reversed(turn):
                figure = program.measure(name)
                if figure is not None:
                    measured[which].append(figure)
        if before.unknown & {name}:
            say(f"{name}: left out, the earlier program has no such benchmark")
            continue
        check(name not in after.unknown, f"{name}: this program has no such benchmark any more")
        found += verdicts(measured["before"], measured["after"])
        say(f"{name}: measured")
    return found


def base(given: str | None) -> str:
    """Returns the given revision, or the latest tag that is an ancestor."""
    if given:
        return commands.output(["git", "rev-parse", "--verify", f"{given}^{{commit}}"]).strip()
    tags = commands.output(["git", "tag", "--merged", "HEAD", "--sort=-creatordate"]).split()
    check(bool(tags), "no tag exists: name the earlier version, such as BASE=HEAD~20")
    return base(tags[0])


def build(revision: str) -> Path:
    """Builds the earlier program in its own work tree. Both share a target folder, so that only this
    project's crates are compiled again; the program under test is moved aside and put back.
    """
    tree, program = HOME / "tree", HOME / f"dev-{revision[:12]}"
    if program.exists():
        return program
    if tree.exists():
        commands.openly(["git", "-C", tree, "checkout", "--quiet", "--detach", "--force", revision])
    else:
        commands.openly(["git", "worktree", "prune"])
        commands.openly(["git", "worktree", "add", "--quiet", "--detach", "--force", tree, revision])
    say(f"building {revision[:12]}")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    cargo = os.environ.get("CARGO", "cargo")
    built = target / "release" / "dev"
    with tempfile.TemporaryDirectory(dir=HOME) as kept:
        present = built.exists()
        if present:
            shutil.copy2(built, kept)
        try:
            command = [cargo, "build", "--package", "dev", "--release", "--locked"]
            commands.openly(command, environment, tree)
            shutil.copy2(built, program)
        finally:
            if present:
                built.unlink(missing_ok=True)
                shutil.move(Path(kept, "dev"), built)
    return program


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="versions.py", description="Compares two versions of dev.")
    parser.add_argument("program", type=Path, help="dev, built with --release")
    parser.add_argument("--base", metavar="REVISION", help="the earlier version [default: the last tag]")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--slower", type=float, default=15, metavar="PERCENT")
    parser.add_argument("--only", nargs="+", default=list(BENCHES), choices=list(BENCHES), metavar="NAME")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    check(options.program.is_file(), f"{options.program} is not there: build it with --release")
    (HOME / "data").mkdir(parents=True, exist_ok=True)
    revision = base(options.base)
    before, after = Program(build(revision), set()), Program(options.program.resolve(), set())
    found = compare(before, after, options.only, options.rounds)
    print(f"| figure | {revision[:8]} | now | times as slow | |\n| --- | --- | --- | --- | --- |")
    for each in found:
        print(each.line(options.slower))
    slower = [each.name for each in found if each.is_slower(options.slower)]
    if slower:
        raise Failure(f"more than {options.slower:g} % slower than {revision[:8]}: {'; '.join(slower)}")
    check(bool(found), "nothing could be compared")
    return 0


if __name__ == "__main__":
    console.start("versions", main)
