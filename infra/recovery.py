#!/usr/bin/env python3
"""Measures the recovery of unfinished imports after a restore, on the local servers (docs/backup.md).

    services.py run -- recovery.py PROGRAMS [IMPORTS]     PROGRAMS is the folder of `dev` and `search-import`

Imports are announced over HTTP, and their files do not arrive. Then `search-import after-restore` treats all
of them as after a restore of the database, first with --dry-run. The result is the time of each command.
"""

import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from scripts import commands, console
from scripts.serving import serving

IMPORTS = 500
FILES = [("late.ris", 700)]


def provision(programs: Path) -> dict[str, str]:
    """Returns the settings of a new installation on the servers."""
    name = f"recovery-{uuid.uuid4().hex[:8]}"
    printed = commands.output([programs / "dev", "provision", "--name", name])
    exported = (line.removeprefix("export ") for line in printed.splitlines() if "=" in line)
    made = {name: value.strip("'\"") for name, _, value in (line.partition("=") for line in exported)}
    return {**os.environ, **made, "MONGODB_DATABASE": name, "SEARCH_IMPORT_BACKEND": "aws"}


def recover(program: Path, settings: Mapping[str, str], *options: str) -> float:
    """Returns the seconds that `after-restore` takes."""
    began = time.monotonic()
    commands.output([program, "after-restore", *options], settings)
    return time.monotonic() - began


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        return console.usage(__doc__)
    programs = Path(arguments[0]).resolve()
    count = int(arguments[1]) if len(arguments) > 1 else IMPORTS
    settings = provision(programs)
    program = programs / "search-import"
    with serving(program, settings) as server:
        for number in range(count):
            server.announce("recovery", FILES, str(number))
    listed = recover(program, settings, "--dry-run")
    treated = recover(program, settings)
    print(f"{count} unfinished imports: listed in {listed:.1f} s, treated in {treated:.1f} s")
    return 0


if __name__ == "__main__":
    console.start("recovery", main, __doc__)
