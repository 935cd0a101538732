#!/usr/bin/env python3
"""Measures the recovery of unfinished imports after a restore, on the local servers (docs/backup.md).

    services.py run -- recovery.py PROGRAMS [IMPORTS]     PROGRAMS is the folder of `dev` and `search-import`

Imports are announced over HTTP, and their files do not arrive. Then `search-import after-restore` treats all
of them as after a restore of the database, first with --dry-run. The result is the time of each command.
"""

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from scripts import commands, console
from scripts.errors import Failure, check

IMPORTS = 500
PATIENCE_SECONDS = 60


def provision(programs: Path) -> dict[str, str]:
    """Returns the settings of a new installation on the servers."""
    name = f"recovery-{uuid.uuid4().hex[:8]}"
    printed = commands.output([programs / "dev", "provision", "--name", name])
    exported = (line.removeprefix("export ") for line in printed.splitlines() if "=" in line)
    made = {name: value.strip("'\"") for name, _, value in (line.partition("=") for line in exported)}
    return {**os.environ, **made, "MONGODB_DATABASE": name, "SEARCH_IMPORT_BACKEND": "aws"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving(programs: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Runs the HTTP API, and yields its address."""
    url = f"http://127.0.0.1:{free_port()}"
    command = [str(programs / "search-import"), "serve", "--listen", url.removeprefix("http://")]
    with subprocess.Popen(command, env=settings, stdout=subprocess.DEVNULL) as server:
        try:
            wait_for(url, server)
            yield url
        finally:
            server.terminate()


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        check(server.poll() is None, f"`search-import serve` ended with {server.returncode}")
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"{url}/health", timeout=PATIENCE_SECONDS).close()
            return
        time.sleep(0.1)
    raise Failure(f"{url} has not answered within {PATIENCE_SECONDS} s")


def announce(url: str, count: int) -> None:
    project = uuid.uuid4()
    body = json.dumps({"name": "recovery", "files": [{"name": "late.ris", "size_bytes": 700}]}).encode()
    for number in range(count):
        headers = {"content-type": "application/json", "idempotency-key": str(number)}
        request = urllib.request.Request(f"{url}/projects/{project}/searches", body, headers)
        urllib.request.urlopen(request, timeout=PATIENCE_SECONDS).close()


def recover(programs: Path, settings: Mapping[str, str], *options: str) -> float:
    """Returns the seconds that `after-restore` takes."""
    began = time.monotonic()
    commands.output([programs / "search-import", "after-restore", *options], settings)
    return time.monotonic() - began


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        return console.usage(__doc__)
    programs = Path(arguments[0]).resolve()
    count = int(arguments[1]) if len(arguments) > 1 else IMPORTS
    settings = provision(programs)
    with serving(programs, settings) as url:
        announce(url, count)
    listed = recover(programs, settings, "--dry-run")
    treated = recover(programs, settings)
    print(f"{count} unfinished imports: listed in {listed:.1f} s, treated in {treated:.1f} s")
    return 0


if __name__ == "__main__":
    console.start("recovery", main)
