#!/usr/bin/env python3
"""Measures workers on the local servers, for a comparison with the model of scripts/queueing.py.

    services.py run -- scale.py PROGRAM [FILE]     PROGRAM is `dev`; FILE keeps the figures, as JSON

One, two and four workers are clients of one `dev bench event-server --backend aws`: each sends an event,
waits until it has taken effect, and sends the next. The processor time is that of all programs below
services.py, including the servers, which excludes other work on the machine.
"""

import datetime
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from scripts import commands, console
from scripts.engines import peers
from scripts.errors import Failure

WORKERS = (1, 2, 4)
SAGAS = 80


def processor_seconds(root: int) -> float:
    """Returns the processor time of a process and its running descendants."""
    parents: dict[int, int] = {}
    took: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # It has ended.
            continue
        pid = int(stat.parent.name)
        parents[pid], took[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    below = {root}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(took.get(pid, 0) for pid in below) / os.sysconf("SC_CLK_TCK")


def send(program: str, url: str, workers: int) -> dict[str, float]:
    began = processor_seconds(os.getppid())
    command = [program, "bench", "events", "--url", url, "--sagas", str(SAGAS), "--clients", str(workers)]
    result = subprocess.run([*command, "--begin"], text=True, capture_output=True, check=False)
    if not result.stdout:
        raise Failure(f"sending failed: {commands.summary(result.stderr)}")
    found = json.loads(result.stdout)
    if found["lost"] or found["doubled"]:
        raise Failure(f"events were lost or took effect twice: {result.stdout}")
    used = processor_seconds(os.getppid()) - began
    return {
        "workers": workers,
        "messages": found["messages"],
        "per_second": found["per_second"],
        "p50_ms": found["p50_ms"],
        "p99_ms": found["p99_ms"],
        "processor_ms": 1_000 * used / found["messages"],
        "load": os.getloadavg()[0],
    }


def measure(program: str) -> dict[str, object]:
    command = [program, "bench", "event-server", "--backend", "aws"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as server:
        try:
            line = server.stdout.readline() if server.stdout else ""
            if not line:
                raise Failure("the server of events did not start")
            url = json.loads(line)["url"]
            send(program, url, WORKERS[-1])  # the first events are slow and not counted
            rounds = [send(program, url, workers) for workers in WORKERS]
            peers.post(f"{url}/stop")  # so that it leaves nothing behind
            server.wait(timeout=10)
        finally:
            server.terminate()
    return {"date": datetime.date.today().isoformat(), "cores": os.cpu_count(), "rounds": rounds}


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case [program, *file] if len(file) <= 1:
            text = json.dumps(measure(program), indent=1) + "\n"
            print(text, end="")
            for path in file:
                Path(path).write_text(text, "utf-8")
        case _:
            return console.usage(__doc__)
    return 0


if __name__ == "__main__":
    console.start("scale", main)
