#!/usr/bin/env python3
"""Measures a server that reads hostile files next to a good one (docs/security.md).

    hostile.py PROGRAM [MEBIBYTES [FILE ...]]

PROGRAM is `search-import`. Each generated file has one MiB by default. Other hostile files, such as
workbooks, may follow.

Each hostile file is uploaded to a server with a new data directory, together with a good file of another
import. The result is a line for each: the slowest response of /health while both are read, the time until
the good import ends, the time until the hostile one ends, its outcome, the largest resident memory of the
server, and the time that the server takes to stop. The last line is for all files at once.
"""

import os
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from scripts import console
from scripts.errors import check
from scripts.paths import ROOT
from scripts.serving import Server, serving

MIB = 1 << 20
GOOD = ROOT / "tests" / "samples" / "psycinfo.ris"
# The names of the states in which an import has ended, the successful one first.
ENDED = ("Completed", "Error")
PAUSE_SECONDS = 0.05
PATIENCE_SECONDS = 300
RIS, END = "TY  - JOUR\nTI  - A title\n", "ER  - \n"
XML = "<xml><records><record><titles><title>A title</title></titles>"
# The parts of each file: the beginning, the repeated part, and the end.
SHAPES = {
    "braces.bib": ("@article{a,\n", "a={\n", "}\n"),
    "escaped-braces.bib": ("@article{a,\n", "a={\\},\n", "}\n"),
    "cross-references.bib": ("", "@b{z,crossref=z\n", ""),
    "aliases.bib": ("@article{a, crossref={none}, title={A title},\n", "ids={\n", "}\n"),
    "missing-parents.bib": ("@article{a, title={A title}}\n", "@b{z,crossref={q}}\n", ""),
    "parents-in-round.bib": ("@article(a, title={A title},\n", "crossref={", ")\n"),
    "aliases-of-missing.bib": ("@b{z,crossref={q}}\n", "ids={a,\n", ""),
    "fractions.bib": ("@article{a, title={", "\\frac{", "}}\n"),
    "accents.bib": ("@article{a, title={", '{\\"', "}}\n"),
    "brackets.ris": (f"{RIS}AB  - ", "((((", f"\n{END}"),
    "title.ris": ("TY  - JOUR\nTI  - ", "((((", f"\n{END}"),
    "conjunctions.ris": (f"{RIS}AU  - ", "A y ", f"\n{END}"),
    "authors.ris": (RIS, "AU  - xy\n", END),
    "records.ris": ("", "TY  - JOUR\nER  - \n", ""),
    "quotes.csv": ("Title,Authors\n", '"a""', '"\n'),
    "authors.csv": ("Item Title,Item DOI,Content Type,Authors\na,10.5555/a,Article,", "a.", "\n"),
    "columns.csv": ("Title,Authors", ",a", "\nA title,b\n"),
    "frame.csv": ('Title,Authors\nA title,"list(a=c(', "12345678901,", '1))"\n'),
    "named-frame.csv": (
        'Title,Authors\nA title,"list(',
        "a",
        f'=c({"1," * 9_999}1))"\n',
    ),
    "words.json": (
        '{"results":[{"id":"https://openalex.org/W1","title":"A title","publication_year":2020,\n'
        f'"abstract_inverted_index":{{"{"x" * 30_000}":[{",".join(map(str, range(20_000)))}]',
        " ",
        "}}]}",
    ),
    "sources.txt": ("<1>\nTitle\n  A title\nSource\n  ", " (x", ")\n"),
    "tags.xml": (XML, "<a>", "</record></records></xml>"),
    "attributes.xml": (f"{XML}<a ", 'b="c" ', "/></record></records></xml>"),
    "arrays.json": ('[{"title": "A title", "x": ', "[", "]}]"),
    "pmids.nbib": ("PMID- 1\nTI  - A title\n", "PMID- 1\n", "\n"),
}


@dataclass(frozen=True)
class Measured:
    name: str
    slowest_ms: float
    good_seconds: float
    seconds: float
    outcome: str
    peak_mib: float
    stop_seconds: float

    def __str__(self) -> str:
        return (
            f"| {self.name} | {self.slowest_ms:.0f} | {self.good_seconds:.1f} | {self.seconds:.1f} "
            f"| {self.outcome} | {self.peak_mib:.0f} | {self.stop_seconds:.1f} |"
        )


def content(shape: tuple[str, str, str], size: int) -> bytes:
    begin, repeated, end = shape
    count = (size - len(begin) - len(end)) // len(repeated)
    return (begin + repeated * count + end).encode()


def begin(server: Server, name: str, file: bytes) -> str:
    """Announces and uploads a file, and returns the path of its import."""
    announced = server.announce(name, [(name, len(file))], name)
    server.upload(announced["files"][0]["upload"], file)
    return f"/projects/{server.project}/searches/{announced['search_id']}"


def measure(program: Path, name: str, files: dict[str, bytes]) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        settings = {**os.environ, "SEARCH_IMPORT_DATA_DIR": folder, "SEARCH_IMPORT_BACKEND": "embedded"}
        with serving(program, settings) as server:
            began = time.monotonic()
            hostile = [begin(server, *file) for file in files.items()]
            good = begin(server, GOOD.name, GOOD.read_bytes())
            imports = dict.fromkeys((*hostile, good), 0.0)
            slowest, found = 0.0, {}
            while not all(imports.values()):
                is_late = time.monotonic() - began > PATIENCE_SECONDS
                check(not is_late, f"{name} is not read in {PATIENCE_SECONDS} s")
                asked = time.monotonic()
                server.get("/health")
                slowest = max(slowest, time.monotonic() - asked)
                for path in [path for path, ended in imports.items() if not ended]:
                    found[path] = server.get(path)
                    if found[path]["state"] in ENDED:
                        imports[path] = time.monotonic() - began
                time.sleep(PAUSE_SECONDS)
            check(found[good]["state"] == ENDED[0], f"next to {name}, the good import ended as {found[good]}")
            outcomes = Counter(found[path]["files"][0]["outcome"]["outcome"] for path in hostile)
            outcome = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
            last, peak = max(imports[path] for path in hostile), server.peak_mib()
            return Measured(name, 1_000 * slowest, imports[good], last, outcome, peak, server.stop())


def main(arguments: list[str]) -> int:
    if not arguments:
        return console.usage(__doc__)
    program, *others = arguments
    size = int(float(others[0]) * MIB) if others else MIB
    files = {name: content(shape, size) for name, shape in SHAPES.items()}
    files |= {Path(path).name: Path(path).read_bytes() for path in others[1:]}
    print("| file | slowest /health, ms | good import, s | import, s | outcome | memory, MiB | stop, s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, file in files.items():
        print(measure(Path(program).resolve(), name, {name: file}), flush=True)
    print(measure(Path(program).resolve(), "all at once", files), flush=True)
    return 0


if __name__ == "__main__":
    console.start("hostile", main, __doc__)
