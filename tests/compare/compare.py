#!/usr/bin/env python3
"""Compares this project's reading of reference files with readers of other projects.

    tools.py run readers -- python compare.py PROGRAM

PROGRAM is `dev`, built with --release. It writes the files for all readers. The Python readers are installed
for the interpreter that runs this script; the JavaScript readers are installed below target/compare, as
package-lock.json pins them. Every reader gets a whole file in memory. The result is the processor time of its
best run.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

RECORDS = (1_000, 10_000)
ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PLACE = ROOT / "target" / "compare"

Part = str | int | Path


@dataclass(frozen=True)
class Peer:
    form: str
    reader: str
    language: Literal["python", "node"]


PEERS = (
    Peer("ris", "rispy", "python"),
    Peer("ris", "citation-js", "node"),
    Peer("nbib", "nbib", "python"),
    Peer("bib", "citation-js", "node"),
)


def run(*command: Part) -> None:
    subprocess.run([str(part) for part in command], check=True)


def output(command: Sequence[Part], *, check: bool = True, **variables: str) -> Any:
    """Runs a program and parses its output as JSON."""
    text = [str(part) for part in command]
    answer = subprocess.run(text, stdout=subprocess.PIPE, check=check, env={**os.environ, **variables})
    return json.loads(answer.stdout)


def install() -> Path:
    """Installs the Node packages, whose hashes npm checks, and returns their folder."""
    node = PLACE / "node"
    node.mkdir(exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, node)
    run("npm", "ci", "--ignore-scripts", "--silent", "--no-audit", "--no-fund", "--prefix", node)
    return node


def ours(program: Path) -> dict[str, Any]:
    """Measures this project and returns the figures by format."""
    # The program exits with 1 if a limit is exceeded, but still prints the figures.
    answer = output([program, "bench", "parse", "--json", "--records", *RECORDS], check=False)
    return {row["format"]: row for row in answer["formats"]}


def command(peer: Peer, file: Path) -> list[Part]:
    if peer.language == "python":
        return [sys.executable, HERE / "read.py", peer.reader, file]
    return ["node", HERE / "read.js", file]


def measured(peer: Peer, file: Path, node: Path) -> str:
    found = output(command(peer, file), NODE_PATH=str(node / "node_modules"))
    speed = file.stat().st_size / 1e6 / found["seconds"]
    return row(peer.form, peer.reader, found["records"], f"{speed:.1f}")


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main(program: Path) -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    node = install()
    run(program, "bench", "parse", "--write", PLACE / "files", "--records", *RECORDS)
    figures = ours(program)
    print(row("format", "reader", "records found", "MB/s"))
    print(row("---", "---", "---", "---"))
    for form, our in figures.items():
        peers = [peer for peer in PEERS if peer.form == form]
        if peers:
            print(row(form, "search-import", our["records"], f"{our['megabytes_per_second']:.0f}"))
        for peer in peers:
            file = PLACE / "files" / f"{RECORDS[-1]}.{form}"
            print(measured(peer, file, node), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
