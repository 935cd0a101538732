"""Installing once, into virtual environments below target/."""

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from scripts import commands
from scripts.console import say


def once(mark: Path, what: str, install: Callable[[], None]) -> None:
    """The mark is made last, so that an interrupted installation begins anew."""
    if mark.exists():
        return
    say(f"installing {what} (once)")
    install()
    mark.touch()


def create_venv(folder: Path) -> None:
    """Replaces what an interrupted installation has left there."""
    commands.quietly(
        [sys.executable, "-m", "venv", "--clear", folder],
        "python3 -m venv (on Debian: apt install python3-venv)",
    )


def python_of(venv: Path) -> Path:
    return venv / "bin" / "python"


def pip(venv: Path, what: str, arguments: Sequence[str]) -> None:
    options = ["--quiet", "--disable-pip-version-check"]
    commands.quietly(
        [python_of(venv), "-m", "pip", "install", *options, *arguments], f"pip install of {what}"
    )


def pip_hashed(venv: Path, what: str, package: str, hashes: Sequence[str]) -> None:
    """Installs exactly one wheel, by its hash; `package` is name==version, with a hash for each platform."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(requirement(package, hashes))
        file.flush()
        exact = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", file.name]
        pip(venv, what, exact)


def requirement(package: str, hashes: Sequence[str]) -> str:
    return " ".join([package, *(f"--hash=sha256:{each}" for each in hashes)]) + "\n"
