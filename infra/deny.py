#!/usr/bin/env python3
"""Checks all crates with deny.toml: licenses, sources, banned or duplicate crates, and vulnerabilities.

    tools.py run cargo-deny -- deny.py

All checks but the last depend only on this repository. The known vulnerabilities are those of the RustSec
database, which cargo-deny fetches. If it cannot be fetched, the script only prints a warning, so that a
developer without a network can still run the lint. With ADVISORIES=required, it fails instead, as in the
pipeline.
"""

import os
from collections.abc import Mapping

from scripts import commands, console
from scripts.console import say
from scripts.errors import Failure

# The crates for all platforms, which a build for one does not fetch. Needs no registry if they are present.
CRATES = ["cargo", "fetch", "--locked", "--quiet"]
CHECK = ["cargo", "deny", "--locked", "--offline", "check", "--hide-inclusion-graph"]
DATABASE = ["cargo", "deny", "fetch", "db"]


def deny(environment: Mapping[str, str]) -> None:
    commands.openly(CRATES)
    # Reads all of deny.toml, so that later failures are not caused by the configuration.
    commands.openly([*CHECK, "bans", "licenses", "sources"])
    try:
        commands.quietly(DATABASE, "fetching the RustSec database")
    except Failure as failure:
        if environment.get("ADVISORIES") == "required":
            raise Failure(f"known vulnerabilities cannot be checked: {failure}") from failure
        say(f"KNOWN VULNERABILITIES WERE NOT CHECKED (with ADVISORIES=required this fails): {failure}")
        return
    commands.openly([*CHECK, "advisories"])


def main(arguments: list[str]) -> int:
    if arguments:
        return console.usage(__doc__)
    deny(os.environ)
    return 0


if __name__ == "__main__":
    console.start("deny", main, __doc__)
