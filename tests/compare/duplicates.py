#!/usr/bin/env python3
"""Compares this project's marking of duplicates with bib-dedupe.

    tools.py run duplicates -- python duplicates.py PROGRAM [--records N] [--output FILE]

PROGRAM is `search-import`, built with --release. Both get the same generated records: of a hundred, 12 repeat
an earlier one as another database writes it, and 6 resemble an earlier one that they do not repeat. The time
of this project is that of the whole import, with reading and storing; that of bib-dedupe begins with the
records in memory. Both use all cores.
"""

import argparse
import datetime
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas
from bib_dedupe.bib_dedupe import block, match, prep

Record = dict[str, str]
Pairs = set[tuple[int, int]]

SYLLABLES = [c + v for c in "bcdfghklmnprstvwz" for v in "aeiou"]
PER_HUNDRED = 100
COPIES = 12
RESEMBLING = 6
TIERS = ("certain", "likely")


class Maker:
    """Makes records up, with the same result for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.words = ["".join(self.random.choices(SYLLABLES, k=1 + rank % 4)) for rank in range(8_000)]
        self.weights = [1 / (1 + rank) for rank in range(len(self.words))]
        self.journals = [f"Journal of {self.some(3).title()}" for _ in range(400)]

    def some(self, count: int) -> str:
        return " ".join(self.random.choices(self.words, self.weights, k=count))

    def original(self, number: int) -> Record:
        first = self.random.randrange(1, 2_000)
        names = [
            f"{self.some(1).title()}, {self.some(1).title()}" for _ in range(self.random.randrange(1, 6))
        ]
        return {
            "title": self.some(self.random.randrange(7, 16)).capitalize(),
            "author": " and ".join(names),
            "year": str(self.random.randrange(1990, 2025)),
            "journal": self.random.choice(self.journals),
            "volume": str(self.random.randrange(1, 90)),
            "number": str(self.random.randrange(1, 13)),
            "pages": f"{first}-{first + self.random.randrange(3, 15)}",
            "doi": f"10.5555/{number}",
            "abstract": self.some(120),
        }

    def copy(self, record: Record) -> Record:
        """Returns the record as another database writes it."""
        copy = dict(record)
        form = self.random.randrange(4)
        if form == 0:
            copy |= {"title": record["title"] + ".", "doi": "", "abstract": ""}
            copy["author"] = " and ".join(
                name.split(",")[0] + ", " + name.split(", ")[1][0] + "."
                for name in record["author"].split(" and ")
            )
        elif form == 1:
            copy["title"] = record["title"].upper()
            copy["journal"] = "J. " + " ".join(word[:4] + "." for word in record["journal"].split()[2:])
        elif form == 2:
            copy |= {"volume": "", "number": "", "pages": "", "abstract": ""}
        else:
            copy |= {
                "doi": "",
                "pages": record["pages"].split("-")[0],
                "author": record["author"].split(" and ")[0],
            }
        return copy

    def resembling(self, record: Record, number: int) -> Record:
        """Returns another work in the same issue of the journal."""
        other = self.original(number)
        other |= {name: record[name] for name in ("author", "year", "journal", "volume", "number")}
        if self.random.randrange(2):
            other["title"] = record["title"] + " in " + self.some(4)
        return other


def generate(count: int) -> tuple[list[Record], Pairs]:
    """Returns the records, and the pairs of positions of an original and its copy."""
    maker = Maker(count)
    records: list[Record] = []
    originals: list[int] = []
    pairs: Pairs = set()
    for number in range(count):
        place = number % PER_HUNDRED
        if place < PER_HUNDRED - COPIES - RESEMBLING:
            originals.append(number)
            records.append(maker.original(number))
            continue
        # Each original has at most one copy, so that the pairs are all pairs.
        original = originals.pop(maker.random.randrange(len(originals)))
        if place < PER_HUNDRED - RESEMBLING:
            pairs.add((original, number))
            records.append(maker.copy(records[original]))
        else:
            records.append(maker.resembling(records[original], number))
    return records, pairs


def ris(record: Record) -> str:
    first, _, last = record["pages"].partition("-")
    tags = [
        ("TI", record["title"]),
        *(("AU", name) for name in record["author"].split(" and ")),
        ("PY", record["year"]),
        ("JO", record["journal"]),
        ("VL", record["volume"]),
        ("IS", record["number"]),
        ("SP", first),
        ("EP", last),
        ("DO", record["doi"]),
        ("AB", record["abstract"]),
    ]
    return "\n".join(["TY  - JOUR", *(f"{tag}  - {value}" for tag, value in tags if value), "ER  - \n\n"])


# The peak memory of a process includes that of its parent before it was started, so a small one starts it.
STARTER = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_mib(command: list[str | Path]) -> float:
    """Runs a program, and returns its peak memory."""
    run = subprocess.run([sys.executable, "-c", STARTER, *command], check=True, stdout=subprocess.PIPE)
    return int(run.stdout) / 1024


def ours(program: Path, records: list[Record], truth: Pairs) -> dict[str, Any]:
    """Imports the records. Pairs that are certain or likely count."""
    with tempfile.TemporaryDirectory(prefix="duplicates-") as folder:
        file = Path(folder) / "a.ris"
        data: list[str | Path] = ["--data-dir", f"{folder}/data"]
        file.write_text("".join(map(ris, records)), "utf-8")
        began = time.monotonic()
        memory = peak_mib([program, "import", file, "--search-name", "a", *data])
        took = time.monotonic() - began
        listing = subprocess.run(
            [program, "studies", "a", "--json", *data], check=True, stdout=subprocess.PIPE
        )
        pairs: Pairs = set()
        for line in listing.stdout.splitlines():
            study = json.loads(line)
            mark = study.get("duplicate")
            if mark and mark["tier"] in TIERS:
                pairs.add((mark["record"] - 1, study["source"]["record"] - 1))
        return row("search-import", pairs, truth, took, memory)


def peer(count: int) -> dict[str, Any]:
    """Runs bib-dedupe in this process."""
    records, _ = generate(count)
    frame = pandas.DataFrame(
        [
            {"ID": str(at), "ENTRYTYPE": "article", "search_set": "", **record}
            for at, record in enumerate(records)
        ]
    )
    began = time.monotonic()
    matched = match(block(prep(frame, verbosity_level=0)))
    took = time.monotonic() - began
    found = matched[matched["duplicate_label"] == "duplicate"]
    pairs = [sorted((int(one), int(other))) for one, other in zip(found["ID_1"], found["ID_2"], strict=True)]
    memory = max(
        resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {"pairs": pairs, "seconds": took, "peak_mib": memory / 1024}


def row(name: str, found: Pairs, truth: Pairs, seconds: float, memory: float) -> dict[str, Any]:
    return {
        "name": name,
        "seconds": round(seconds, 1),
        "peak_mib": round(memory),
        "found": len(found & truth),
        "missed": len(truth - found),
        "false": len(found - truth),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=Path)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        print(json.dumps(peer(options.records)))
        return
    records, truth = generate(options.records)
    rows = [ours(options.program.resolve(), records, truth)]
    command = [sys.executable, __file__, str(options.program), "--records", str(options.records), "--peer"]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    other = json.loads(answer.stdout.splitlines()[-1])
    pairs = {(one, two) for one, two in other["pairs"]}
    rows.append(row("bib-dedupe", pairs, truth, other["seconds"], other["peak_mib"]))
    result = {"records": options.records, "pairs": len(truth), "rows": rows}
    print(json.dumps(result, indent=1))
    if options.output:
        figures = {"date": datetime.date.today().isoformat(), "cores": os.cpu_count(), **result}
        options.output.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
