"""Runs other programs until they exit."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.errors import Failure, check
from scripts.paths import ROOT

Command = Sequence[str | Path]
Environment = Mapping[str, str] | None


def quietly(command: Command, what: str, cwd: Path | None = None, environment: Environment = None) -> None:
    """Runs a command, and shows the end of its output only if it fails."""
    result = completed(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(result.returncode == 0, f"{what} failed: {summary(result.stdout or '')}")


def summary(output: str) -> str:
    """Returns the last line, which usually is the error, and then the lines before it."""
    lines = [line for line in output.splitlines() if line.strip()]
    return "\n".join([lines[-1] if lines else "no output", *lines[-15:-1]])


def openly(command: Command, environment: Environment = None, cwd: Path | None = ROOT) -> None:
    """Runs a command that writes to the terminal."""
    check_ended(command, completed(command, cwd=cwd, env=environment))


def output(command: Command, environment: Environment = None, cwd: Path | None = ROOT) -> str:
    result = completed(command, cwd=cwd, env=environment, stdout=subprocess.PIPE)
    check_ended(command, result)
    return result.stdout


def check_ended(command: Command, result: subprocess.CompletedProcess[str]) -> None:
    what = " ".join(str(part) for part in command[:3])
    check(result.returncode == 0, f"{what} ended with {result.returncode}")


def completed(command: Command, **options: Any) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, text=True, check=False, **options)
    except OSError as error:
        raise Failure(f"{command[0]} could not be started: {error}") from error
