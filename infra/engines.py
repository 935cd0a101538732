#!/usr/bin/env python3
"""Compares our engine with others, on one workload, side by side on one machine.

    tools.py run engines -- python engines.py PROGRAM [--peers NAME...] [--sagas N...] [--clients N...]
        [--rounds N] [--seconds N] [--output FILE]

PROGRAM is `dev`, built with --release: it sends the events (`dev bench events`), the same way to every
engine, and is our engine (`dev bench event-server`). Each engine starts with empty stores on the disk, is
warmed up, and runs with every number of clients and sagas; the order of the engines changes in each round. A
cell is omitted, and reported as such, if the runs with fewer sagas predict more than --seconds for it.

The peer ours-aws, our engine on the servers of services.py, is compared only if it is named, under
`services.py run`; the durations of its calls are printed as well.

The Node and Python packages are installed below target/engines and target/tools, with versions from lock
files.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts import commands, console
from scripts.console import say
from scripts.engines import figures, peers
from scripts.engines.peers import NOTHING, OURS, PEERS, Home, Peer
from scripts.errors import Failure, check
from scripts.paths import ROOT
from scripts.servers import processes

HOME = ROOT / "target" / "engines"
# The arguments that are recorded with the results.
ASKED = ("peers", "sagas", "clients", "rounds", "seconds")
WARM_UP = ("--sagas", "100", "--clients", "8")


class Run:
    def __init__(self, options: argparse.Namespace, node: Path) -> None:
        self.options, self.node = options, node
        self.program: Path = options.program.resolve()
        self.found: list[dict[str, Any]] = []
        self.left_out: list[str] = []
        self.hops: list[dict[str, Any]] = []

    def round(self, number: int) -> None:
        names: list[str] = self.options.peers
        turned = names[number % len(names) :] + names[: number % len(names)]
        for name in turned:
            folder = HOME / f"data-{os.getpid()}"
            try:
                with peers.running(PEERS[name], folder, self.node, self.program) as (url, home):
                    self.engine(PEERS[name], url, home)
            except Failure as failure:
                self.left_out.append(f"{name}, round {number + 1}: {failure}")
                say(self.left_out[-1])

    def engine(self, peer: Peer, url: str, home: Home) -> None:
        self.send(peer, url, *WARM_UP)
        for clients in self.options.clients:
            for sagas in sorted(self.options.sagas):
                expected = self.expected_seconds(peer, clients, sagas)
                if expected > self.options.seconds:
                    left_out = f"{peer.name}, {clients} clients, {sagas} sagas: some {expected:.0f} s"
                    say(f"left out: {left_out}")
                    if left_out not in self.left_out:
                        self.left_out.append(left_out)
                    continue
                load = os.getloadavg()[0]
                found = self.send(peer, url, "--sagas", str(sagas), "--clients", str(clients))
                found |= {"engine": peer.name, "memory_mib": peers.memory_mib(home), "load_before": load}
                self.found.append(found)
                say(
                    f"{peer.name}, {clients} clients, {sagas} sagas: "
                    f"{found['per_second']:.0f} messages a second, "
                    f"p50 {found['p50_ms']:.1f} ms, p99 {found['p99_ms']:.1f} ms, {found['lost']} lost, "
                    f"{found['doubled']} doubled, {found['memory_mib']:.0f} MiB; "
                    f"clients took {found['cores']:.2f} cores, load was {load:.1f}"
                )

        if peer.on_services:
            # Only the calls of the last start are reported.
            self.hops = peers.hops(url)

    def expected_seconds(self, peer: Peer, clients: int, sagas: int) -> float:
        """Estimates the duration from earlier cells with as many clients, or with fewer."""
        known = [
            found for found in self.found if found["engine"] == peer.name and found["clients"] <= clients
        ]
        if not known:
            return 0.0
        nearest = max(known, key=lambda found: (found["clients"], found["sagas"]))
        return float(nearest["seconds"]) * sagas / float(nearest["sagas"])

    def send(self, peer: Peer, url: str, *arguments: str) -> dict[str, Any]:
        command = [str(self.program), "bench", "events", "--url", url, *peer.options, *arguments]
        # It exits with 1 if events were lost or duplicated; its output has the numbers.
        result = subprocess.run(command, text=True, capture_output=True, check=False)
        if not result.stdout:
            raise Failure(f"sending failed: {commands.summary(result.stderr)}")
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer


def machine() -> str:
    model = "an unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        named = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = named[0].partition(":")[2].strip() if named else platform.machine()
    return f"{os.cpu_count()} cores of {model}, {platform.system()} {platform.release()}"


def write(run: Run, path: Path) -> None:
    head = commands.output(["git", "rev-parse", "--short=8", "HEAD"]).strip()
    report = {
        "date": datetime.date.today().isoformat(),
        "commit": head,
        "machine": machine(),
        "asked": {name: getattr(run.options, name) for name in ASKED},
        "left_out": run.left_out,
        "durable": {name: PEERS[name].durable for name in run.options.peers},
        "answered": {name: PEERS[name].answered for name in run.options.peers},
        "hops": run.hops,
        "rounds": run.found,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="engines.py", description="Compares engines on one workload.")
    parser.add_argument("program", type=Path, help="dev, built with --release")
    alone = [name for name, peer in PEERS.items() if not peer.on_services]
    parser.add_argument("--peers", nargs="+", default=alone, choices=list(PEERS), metavar="NAME")
    parser.add_argument("--sagas", nargs="+", type=int, default=[2_000, 20_000], metavar="N")
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 32, 64], metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=float, default=300, metavar="N", help="the longest cell")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the rounds are kept, as JSON")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    processes.leave_on_signals()
    options = parse(arguments)
    check(options.program.is_file(), f"{options.program} is not there: build it with --release")
    HOME.mkdir(parents=True, exist_ok=True)
    run = Run(options, peers.install(HOME))
    for number in range(options.rounds):
        run.round(number)
        if options.output:
            write(run, options.output)
    print("\n".join(figures.table(figures.summaries(run.found), OURS)))
    if run.hops:
        print("\n".join(figures.hops(run.hops)))
    for left_out in run.left_out:
        print(f"left out: {left_out}")
    return 1 if any(is_wrong(found) for found in run.found) else 0


def is_wrong(found: dict[str, Any]) -> bool:
    """Returns whether our engine, or the sending itself, has lost or repeated events."""
    return found["engine"] in (OURS, NOTHING) and bool(found["lost"] or found["doubled"])


if __name__ == "__main__":
    console.start("engines", main)
