#!/usr/bin/env python3
"""Lists the slowest tests of the last `make test`, with their seconds and the reason.

    slowest.py [NUMBER]

The default of NUMBER is 30. The times are from the report that cargo-nextest writes, the reasons
from infra/scripts/slowest.json: a pattern of names, and why such a test is slow. The first pattern
that matches applies.
"""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

from scripts import console
from scripts.errors import check
from scripts.paths import ROOT

REASONS = ROOT / "infra" / "scripts" / "slowest.json"
REPORT = ROOT / "target" / "nextest" / "default" / "junit.xml"


def slowest(report: Path, number: int) -> list[tuple[float, str]]:
    """Returns seconds and names, the slowest first."""
    check(report.exists(), f"{report} does not exist: run `make test` with cargo-nextest first")
    # The report is written by our own test run.
    cases = ElementTree.parse(report).iter("testcase")
    timed = ((float(case.get("time", 0)), f"{case.get('classname')} {case.get('name')}") for case in cases)
    return sorted(timed, reverse=True)[:number]


def reason(name: str, reasons: dict[str, str]) -> str:
    """Returns why a test is slow, or that the reason is missing."""
    known = (why for pattern, why in reasons.items() if re.search(pattern, name))
    return next(known, f"no reason is known: add one to {REASONS.relative_to(ROOT)}")


def main(arguments: list[str]) -> int:
    reasons = json.loads(REASONS.read_text())
    for seconds, name in slowest(REPORT, int(arguments[0]) if arguments else 30):
        print(f"{seconds:7.1f}  {name}\n         {reason(name, reasons)}")
    return 0


if __name__ == "__main__":
    console.start("slowest", main, __doc__)
