#!/usr/bin/env python3
"""Counts the lines of code of the travel booking, which docs/steps.md compares.

lines.py            prints the table
lines.py DOCUMENT   writes it into the document, between the markers of this program
"""

from collections.abc import Sequence
from pathlib import Path

from scripts import console, tables
from scripts.paths import ROOT

PROGRAM = "infra/lines.py"
SOURCES = ROOT / "tests" / "travel" / "src"
# The files of each variant, and its content other than the saga.
VARIANTS = {
    "state machine": ("machine.rs", "messages, saga, handlers, client, table"),
    "list of steps": ("list.rs", "steps, activities, client, table"),
    "shared by both": ("lib.rs", "request, queues, budget"),
    "suppliers for tests, shared by both": ("api.rs", "API and books"),
}


def count(path: Path) -> int:
    """Returns the number of lines that are neither empty nor comments."""
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    return sum(1 for line in lines if line and not line.startswith("//"))


def table() -> str:
    """Returns the table of the variants."""
    rows = ["| part | content | lines of code |", "| --- " * 2 + "| ---: |"]
    for name, (file, content) in VARIANTS.items():
        rows.append(f"| {name} (`tests/travel/src/{file}`) | {content} | {count(SOURCES / file)} |")
    return "\n".join(rows)


def written(document: str) -> str:
    """Returns a document with the current table between its markers."""
    return tables.written(document, PROGRAM, {"lines": table()})


def main(arguments: Sequence[str]) -> int:
    return tables.run(arguments, __doc__, PROGRAM, {"lines": table()})


if __name__ == "__main__":
    console.start("lines", main, __doc__)
