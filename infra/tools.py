#!/usr/bin/env python3
"""The tools that check, build and deploy the template, each in a virtual environment of its own.

    tools.py path TOOL...          install what is missing, and print a PATH that finds all of them
    tools.py run TOOL... -- COMMAND...   run a command that finds them

    cfn-lint        checks the template as CloudFormation reads it
    checkov         checks it for what security reviews ask
    sam             builds and deploys it; it stands alone, because its versions of libraries are its own
    cargo-lambda    builds the functions, with Zig as the linker, for either processor

They are installed once, through pip, into target/tools, by the versions below.
"""

import os
import shutil
import sys
from pathlib import Path

from services import Failure, call, say

HOME = Path(__file__).resolve().parent.parent / "target" / "tools"

TOOLS = {
    "cfn-lint": ["cfn-lint==1.58.0"],
    "checkov": ["checkov==3.3.30"],
    "sam": ["aws-sam-cli==1.170.0"],
    "cargo-lambda": ["cargo-lambda==1.9.2", "ziglang==0.17.0"],
}


def folder(tool):
    """Where a tool is. Its version is in the name, and Python's, which a virtual environment does not outlive."""
    version = TOOLS[tool][0].partition("==")[2]
    return HOME / f"{tool}-{version}-py{sys.version_info.major}.{sys.version_info.minor}"


def install(tool):
    """Installs once. What was interrupted begins anew: the folder gets its name last of all."""
    if (folder(tool) / "installed").exists():
        return
    say(f"installing {tool} into target/tools/ (once)")
    shutil.rmtree(folder(tool), ignore_errors=True)
    call([sys.executable, "-m", "venv", str(folder(tool))], "python3 -m venv (on Debian: apt install python3-venv)")
    python = str(folder(tool) / "bin" / "python")
    options = ["--quiet", "--disable-pip-version-check"]
    call([python, "-m", "pip", "install", *options, *TOOLS[tool]], f"pip install of {tool}")
    if tool == "cargo-lambda":
        # It looks for `zig`, or for the package in whichever Python comes first in the path, which may be another tool's.
        zig = folder(tool) / "bin" / "zig"
        zig.write_text(f'#!/bin/sh\nexec "{python}" -m ziglang "$@"\n')
        zig.chmod(0o755)
    (folder(tool) / "installed").touch()


def path(tools):
    for tool in tools:
        if tool not in TOOLS:
            raise Failure(f"there is no tool {tool}, only {', '.join(TOOLS)}")
        install(tool)
    return os.pathsep.join([*(str(folder(tool) / "bin") for tool in tools), os.environ.get("PATH", os.defpath)])


def main(arguments):
    match arguments:
        case ["path", _, *_]:
            print(path(arguments[1:]))
        case ["run", *rest] if "--" in rest[1:-1]:
            split = rest.index("--")
            os.environ["PATH"] = path(rest[:split])
            command = rest[split + 1 :]
            try:
                os.execvp(command[0], command)
            except OSError as error:
                raise Failure(f"{command[0]} could not be started: {error}") from error
        case _:
            say(__doc__.strip())
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        say(f"tools: {failure}")
        sys.exit(1)
