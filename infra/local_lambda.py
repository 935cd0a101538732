#!/usr/bin/env python3
"""Runs the commands of docs/local-lambda.md, and compares their output with the page.

    services.py run -- local_lambda.py

`make watch` and `make pump` run in the background, like in separate terminals. Their output is compared when
the page shows it. A free port replaces the one of the page. Requests whose result takes time are repeated for
up to a minute.
"""

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from scripts import console, walk
from scripts.console import say
from scripts.errors import check
from scripts.paths import ROOT
from scripts.servers import processes
from scripts.servers.launch import free_port

PAGE = ROOT / "docs" / "local-lambda.md"
PORT = "9000"
# The section of the page that uses no servers.
WITHOUT_SERVERS = "Without servers"
SERVERS = (
    "MONGODB_URI",
    *(f"AWS_ENDPOINT_URL{service}" for service in ("", "_DYNAMODB", "_SQS", "_S3")),
)
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
# The maximum time to wait for a result, which includes the start of a function.
PATIENCE_SECONDS = 60
# Requests that may be repeated, because they change nothing.
READING = "/searches/$SEARCH"
ASSIGNMENT = re.compile(r"[A-Z]+=.+$")
# Commands that run until they are stopped.
BACKGROUND = ("make watch", "make pump")


class BackgroundCommand:
    """A command that runs in the background."""

    def __init__(self, command: str, environment: dict[str, str], folder: Path) -> None:
        self.command = command
        self.log = folder / (command.replace(" ", "-") + ".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.birth = processes.born(self.process.pid)

    def shown(self) -> str:
        return self.log.read_text("utf-8")

    def stop(self) -> None:
        """Stops the command like Ctrl-C, and kills it if it does not react."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(processes.STOP_SECONDS)
        processes.end(self.process.pid, self.birth)


class Walk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = str(free_port())
        self.background: dict[str, BackgroundCommand] = {}
        # Assignments of variables are repeated before every later command.
        self.assignments: list[str] = []

    def environment(self, heading: str) -> dict[str, str]:
        # As in a terminal, without the variables of a `make` that started this program.
        environment = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
        environment |= {"WATCH_PORT": self.port, "SEARCH_IMPORT_DATA_DIR": str(self.folder / "data")}
        if heading == WITHOUT_SERVERS:
            environment = {name: value for name, value in environment.items() if name not in SERVERS}
            # Servers may still be running.
            environment["BACKEND"] = "embedded"
        return environment

    def go(self, page: walk.Step) -> None:
        step = walk.Step(
            page.heading, page.command.replace(PORT, self.port), page.output.replace(PORT, self.port)
        )
        command = step.command
        began = time.monotonic()
        name = next((name for name in BACKGROUND if command.partition("#")[0].strip().endswith(name)), None)
        if name is not None:
            self.start(name, step)
        elif command.endswith(READING):
            self.ask(step)
        else:
            self.compare(step, self.run(step))
        say(f"{time.monotonic() - began:5.1f} s  $ {command.splitlines()[0]}")

    def ask(self, step: walk.Step) -> None:
        """Repeats a request until the response is the expected one."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not walk.matches(step.output, shown := self.run(step)) and time.monotonic() < give_up:
            time.sleep(0.5)
        self.compare(step, shown)

    def compare(self, step: walk.Step, shown: str) -> None:
        pump = "\n".join(each.shown() for name, each in self.background.items() if name == "make pump")
        what = f"$ {step.command}\n{shown}\n-- the page shows:\n{step.output}\n-- the pump shows:\n{pump}"
        check(walk.matches(step.output, shown), what)

    def start(self, name: str, step: walk.Step) -> None:
        if name == "make watch":
            self.stop()
        running = self.background.get(name)
        if running is None:
            running = BackgroundCommand(step.command, self.environment(step.heading), self.folder)
            self.background[name] = running
        until(
            lambda: walk.matches(step.output, running.shown()),
            f"$ {name} did not show {step.output}",
            running,
        )
        if name == "make watch":
            until(lambda: listens(self.port), "nothing listens there", running)

    def run(self, step: walk.Step) -> str:
        command = step.command
        if ASSIGNMENT.match(command):
            self.assignments.append(command)
        result = subprocess.run(
            ["bash", "-c", "\n".join([*self.assignments, command])],
            cwd=ROOT,
            env=self.environment(step.heading),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        check(result.returncode == 0, f"$ {command}\n{result.stdout}\n-- ended with {result.returncode}")
        return result.stdout

    def stop(self) -> None:
        while self.background:
            self.background.popitem()[1].stop()


def listens(port: str) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", int(port)), timeout=1):
        return True
    return False


def until(holds: Callable[[], bool], what: str, command: BackgroundCommand | None = None) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        log = f"; its output:\n{command.shown()}" if command else ""
        check(time.monotonic() < give_up, f"{what} within {PATIENCE_SECONDS} s{log}")
        check(command is None or command.process.poll() is None, f"{what}, and ended{log}")
        time.sleep(0.2)


def main(arguments: list[str]) -> int:
    if arguments:
        return console.usage(__doc__)
    processes.leave_on_signals()
    steps = walk.steps(PAGE.read_text("utf-8"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        through = Walk(Path(folder))
        try:
            for step in steps:
                through.go(step)
        finally:
            through.stop()
    took = time.monotonic() - began
    say(f"{len(steps)} commands of {PAGE.relative_to(ROOT)} match the page, in {took:.0f} s")
    return 0


if __name__ == "__main__":
    console.start("local-lambda", main, __doc__)
