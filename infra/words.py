#!/usr/bin/env python3
"""Measures the search for words: building its index, its size, and the time of queries.

    words.py PROGRAM [--records N...] [--output FILE]    PROGRAM is `search-import`, built with --release

For each number of records, a generated file is imported by `search-import serve`, with words as frequent as
in texts (Zipf's law over 30,000 words), into an empty data directory. Each query is sent until its first page
is complete. The times are those of a client on the same machine.
"""

import argparse
import contextlib
import datetime
import json
import os
import random
import sqlite3
import statistics
import tempfile
import time
import urllib.parse
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts import console
from scripts.console import say
from scripts.serving import Server, serving

VOCABULARY = 30_000
ABSTRACT_WORDS = 170
TITLE_WORDS = 12
TIMES = 15
FIRST_PAGE = 100
# The value that the store contains for a file whose words are all indexed.
END = 2**63 - 1


class Text:
    """Makes words up, the first ones frequent and the last ones rare."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        letters = "aeiouy", "bcdfghklmnprstvwz"
        syllables = [c + v for v in letters[0] for c in letters[1]]
        made: set[str] = set()
        while len(made) < VOCABULARY:
            made.add("".join(self.random.choices(syllables, k=self.random.randint(1, 5))))
        self.words = sorted(made, key=lambda word: (len(word), word))
        total, self.weights = 0.0, []
        for rank in range(1, VOCABULARY + 1):
            total += 1 / rank
            self.weights.append(total)

    def of(self, count: int) -> str:
        return " ".join(self.random.choices(self.words, cum_weights=self.weights, k=count))


def records(text: Text, count: int) -> Iterator[str]:
    for number in range(count):
        rare = " raregene rare protein" if number % 9_000 == 4_500 else ""
        yield (
            f"TY  - JOUR\nTI  - {text.of(TITLE_WORDS)}{rare}\n"
            f"AU  - {text.of(1).title()}, {text.of(1).title()}\n"
            f"PY  - {1990 + number % 35}\nJO  - {text.of(3)}\nVL  - {number % 97}\nSP  - {number}\n"
            f"DO  - 10.5555/{number}\nAB  - {text.of(ABSTRACT_WORDS)}\nER  - \n\n"
        )


def settled(server: Server, path: str) -> None:
    while server.get(path)["state"] not in ("Completed", "Error"):
        time.sleep(0.05)


def index_bytes(folder: Path) -> tuple[bool, int, int]:
    """Returns whether all words are indexed, the bytes of the index, and those of the whole database."""
    database = folder / "search-import.sqlite"
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        (missing,) = db.execute("SELECT count(*) FROM parsed_file WHERE words < ?", (END,)).fetchone()
        row = "length(words) + length(bucket) + 12"
        (size,) = db.execute(f"SELECT ifnull(sum({row}), 0) FROM word").fetchone()
        whole = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        (pages,) = db.execute(whole).fetchone()
    return missing == 0, size, pages


def first_page(server: Server, text: str) -> tuple[int, int]:
    """Returns the number of studies of the first complete page, and of the requests that it took."""
    query: dict[str, str | int] = {"text": text, "limit": FIRST_PAGE}
    found, requests = 0, 0
    while True:
        page = server.get(f"/projects/{server.project}/studies?{urllib.parse.urlencode(query)}")
        found, requests = found + len(page["items"]), requests + 1
        if found >= FIRST_PAGE or page["next"] is None:
            return found, requests
        query["after"] = page["next"]


def timed(server: Server, text: str, times: int) -> dict[str, Any]:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        found, requests = first_page(server, text)
        took.append(1_000 * (time.perf_counter() - began))
    return {
        "text": text,
        "found": found,
        "requests": requests,
        "p50_ms": round(statistics.median(took), 1),
        "max_ms": round(max(took), 1),
    }


def measure(program: Path, count: int) -> dict[str, Any]:
    text = Text(count)
    content = "".join(records(text, count)).encode()
    with tempfile.TemporaryDirectory(prefix="words-") as folder:
        home = Path(folder)
        with serving(program, {"SEARCH_IMPORT_DATA_DIR": folder}) as server:
            announced = server.announce("words", [("words.ris", len(content))], str(uuid.uuid4()))
            began = time.monotonic()
            server.upload(announced["files"][0]["upload"], content)
            path = f"/projects/{server.project}/searches/{announced['search_id']}"
            settled(server, path)
            imported = time.monotonic()
            while not (state := index_bytes(home))[0]:
                time.sleep(0.05)
            indexed = time.monotonic()
            queries = [
                "raregene",
                "rareg",
                '"rare protein"',
                f'"{text.words[3]} {text.words[40]}"',
                f"{text.words[200]} {text.words[300]}",
                text.words[0] + " ",
                "r",
                "absentword",
            ]
            found = {
                "records": count,
                "file_bytes": len(content),
                "import_s": round(imported - began, 2),
                "index_s": round(indexed - imported, 2),
                "index_bytes": state[1],
                "database_bytes": state[2],
                "peak_mib": round(server.peak_mib(), 1),
                "queries": [timed(server, query, TIMES) for query in queries],
            }
            server.stop()
    return found


def main(arguments: list[str]) -> int:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("program", type=Path)
    parser.add_argument("--records", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    runs = []
    for count in options.records:
        runs.append(measure(options.program.resolve(), count))
        say(json.dumps(runs[-1], indent=1))
    if options.output:
        figures = {"date": datetime.date.today().isoformat(), "cores": os.cpu_count(), "runs": runs}
        options.output.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    console.start("words", main)
