"""Reads a file with a Python reader, and prints the number of records and the time as JSON."""

import json
import sys
import time
from collections.abc import Callable, Sized
from pathlib import Path

RUNS = 3


def reader(name: str) -> Callable[[str], Sized]:
    # Import only the measured reader.
    if name == "rispy":
        import rispy  # noqa: PLC0415

        parse: Callable[[str], Sized] = rispy.loads
    else:
        import nbib  # noqa: PLC0415

        parse = nbib.read
    return parse


def measure(read: Callable[[str], Sized], text: str) -> tuple[int, float]:
    """Returns the number of records, and the processor time of the best run in seconds."""
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
