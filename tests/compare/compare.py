#!/usr/bin/env python3
"""Compares this project's reading of reference files with readers of other projects.

    compare.py PROGRAM

PROGRAM is `dev`, built with --release. It writes the files that all of them read; the other readers are
installed by name below target/compare. Every reader gets a whole file in memory; what counts is the
time that it worked (not that by the clock), in the best of its runs.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

# The readers, at the versions the figures in the documentation are for.
PYTHON = ["rispy==0.10.0", "nbib==0.3.2"]
NODE = ["citation-js@0.7.22"]
RECORDS = (1_000, 10_000)
ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PLACE = ROOT / "target" / "compare"

# Which reader reads which format.
PEERS = [
    ("ris", "rispy", "python"),
    ("ris", "citation-js", "node"),
    ("nbib", "nbib", "python"),
    ("bib", "citation-js", "node"),
]


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def install():
    """The interpreter to read with in Python, and the folder of the Node packages."""
    python = PLACE / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(PLACE / "venv", with_pip=True)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PYTHON)
    node = PLACE / "node"
    node.mkdir(exist_ok=True)
    run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", node, *NODE)
    return python, node


def ours(program):
    command = [program, "bench", "parse", "--json", "--records", *RECORDS]
    # It exits with 1 when a bound is not kept; the figures are there all the same.
    answer = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=False)
    return {row["format"]: row for row in json.loads(answer.stdout)["formats"]}


def peer(reader, language, path, python, node):
    if language == "python":
        command = [python, HERE / "read.py", reader, path]
    else:
        command = ["node", HERE / "read.js", path]
    environment = {**os.environ, "NODE_PATH": str(node / "node_modules")}
    answer = run(*command, stdout=subprocess.PIPE, env=environment)
    return json.loads(answer.stdout)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve()
    PLACE.mkdir(parents=True, exist_ok=True)
    python, node = install()
    run(program, "bench", "parse", "--write", PLACE / "files", "--records", *RECORDS)
    rows = ours(program)
    print("| format | reader | records found | MB/s |")
    print("| --- | --- | --- | --- |")
    for form, row in rows.items():
        peers = [(reader, language) for known, reader, language in PEERS if known == form]
        if not peers:
            continue
        print(f"| {form} | search-import | {row['records']} | {row['megabytes_per_second']:.0f} |")
        for reader, language in peers:
            path = PLACE / "files" / f"{RECORDS[1]}.{form}"
            found = peer(reader, language, path, python, node)
            speed = path.stat().st_size / 1e6 / found["seconds"]
            print(f"| {form} | {reader} | {found['records']} | {speed:.1f} |", flush=True)


if __name__ == "__main__":
    main()
