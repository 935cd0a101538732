#!/usr/bin/env python3
"""The tools that check, build and deploy, each in a virtual environment of its own.

    tools.py path TOOL...          install what is missing, and print a PATH that finds all of them
    tools.py run TOOL... -- COMMAND...   run a command that finds them

    cfn-lint        checks the template as CloudFormation reads it
    checkov         checks it for what security reviews ask
    sam             builds and deploys it; it stands alone, because its versions of libraries are its own
    cargo-lambda    builds the functions, with Zig as the linker, for either processor
    ruff            formats and lints the Python of this repository
    mypy            checks its types

They are installed once, through pip, into target/tools, by the versions below.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from scripts import console, installs, paths
from scripts.errors import Failure, check

TOOLS = {
    "cfn-lint": ["cfn-lint==1.58.0"],
    "checkov": ["checkov==3.3.30"],
    "sam": ["aws-sam-cli==1.170.0"],
    "cargo-lambda": ["cargo-lambda==1.9.2", "ziglang==0.17.0"],
    "ruff": ["ruff==0.17.6"],
    "mypy": ["mypy==2.4.1"],
}


def folder(tool: str) -> Path:
    """Its version is in the name, and Python's, which a virtual environment does not outlive."""
    version = TOOLS[tool][0].partition("==")[2]
    return paths.TOOLS / f"{tool}-{version}-py{sys.version_info.major}.{sys.version_info.minor}"


def install(tool: str) -> None:
    def missing() -> None:
        installs.create_venv(folder(tool))
        installs.pip(folder(tool), tool, TOOLS[tool])
        if tool == "cargo-lambda":
            offer_zig(folder(tool))

    installs.once(folder(tool) / "installed", f"{tool} into target/tools/", missing)


def offer_zig(venv: Path) -> None:
    """cargo-lambda looks for `zig`, else in the first Python of the path, which may be another tool's."""
    zig = venv / "bin" / "zig"
    zig.write_text(f'#!/bin/sh\nexec "{installs.python_of(venv)}" -m ziglang "$@"\n')
    zig.chmod(0o755)


def path(tools: Sequence[str]) -> str:
    for tool in tools:
        check(tool in TOOLS, f"there is no tool {tool}, only {', '.join(TOOLS)}")
    for tool in tools:
        install(tool)
    return os.pathsep.join(
        [*(str(folder(tool) / "bin") for tool in tools), os.environ.get("PATH", os.defpath)]
    )


def run(tools: Sequence[str], command: list[str]) -> NoReturn:
    os.environ["PATH"] = path(tools)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise Failure(f"{command[0]} could not be started: {error}") from error


def main(arguments: list[str]) -> int:
    match arguments:
        case ["path", _, *_]:
            print(path(arguments[1:]))
        case ["run", *rest] if "--" in rest[1:-1]:
            split = rest.index("--")
            run(rest[:split], rest[split + 1 :])
        case _:
            return console.usage(__doc__)
    return 0


if __name__ == "__main__":
    console.start("tools", main)
