"""Reads a file with a Python reader, and prints how many records it found and how long that took, as JSON."""

import json
import sys
import time
from collections.abc import Callable, Sized
from pathlib import Path

RUNS = 3


def reader(name: str) -> Callable[[str], Sized]:
    # Only the one that is measured.
    if name == "rispy":
        import rispy  # noqa: PLC0415

        parse: Callable[[str], Sized] = rispy.loads
    else:
        import nbib  # noqa: PLC0415

        parse = nbib.read
    return parse


def measure(read: Callable[[str], Sized], text: str) -> tuple[int, float]:
    """How many records there are, and the seconds of processor time in the best of the runs."""
    records, best = 0, float("inf")
    for _ in range(RUNS):
        began = time.process_time()
        records = len(read(text))
        best = min(best, time.process_time() - began)
    return records, best


def main(name: str, file: str) -> None:
    records, seconds = measure(reader(name), Path(file).read_text("utf-8"))
    print(json.dumps({"records": records, "seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
