#!/usr/bin/env python3
"""Measures exports of a review in each format, and compares them with reading its file.

    export_speed.py PROGRAM [--records N] [--output FILE]    PROGRAM is `search-import`, built with --release

A generated RIS file with abstracts is imported into an empty data directory, and exported once in each
format. Reading is the whole import of the file: upload, reading, storing and marking. The output of each
export is deleted after it was measured.
"""

import argparse
import datetime
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from scripts import console
from scripts.console import say
from words import Text, records

FORMATS = ["jsonl", "ris", "endnote-xml", "csv", "rayyan", "asreview", "xlsx", "bibtex", "nbib", "csl-json"]
NAME = "exports"


def seconds(command: list[str | Path]) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def measure(program: Path, count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="exports-") as folder:
        home = Path(folder)
        file = home / "studies.ris"
        data: list[str | Path] = ["--data-dir", home / "data"]
        with file.open("w", encoding="utf-8") as to:
            to.writelines(records(Text(count), count))
        read = seconds([program, "import", file, "--search-name", NAME, *data])
        rows = []
        for name in FORMATS:
            out = home / f"export.{name}"
            took = seconds([program, "export", NAME, "--format", name, "--out", out, *data])
            rows.append(
                {
                    "format": name,
                    "seconds": round(took, 2),
                    "megabytes": round(out.stat().st_size / 1e6, 1),
                    "times_as_fast_as_reading": round(read / took, 2),
                }
            )
            out.unlink()
        return {
            "records": count,
            "file_megabytes": round(file.stat().st_size / 1e6, 1),
            "read_s": round(read, 2),
            "formats": rows,
        }


def main(arguments: list[str]) -> int:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("program", type=Path)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    measured = measure(options.program.resolve(), options.records)
    say(json.dumps(measured, indent=1))
    if options.output:
        figures = {"date": datetime.date.today().isoformat(), "cores": os.cpu_count(), **measured}
        options.output.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    console.start("export_speed", main)
