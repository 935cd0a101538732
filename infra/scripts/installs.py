"""Installs packages below target/, once, and only files whose hashes are in a lock file of this repository.

infra/requirements/NAME.in lists the required packages. `tools.py lock` generates the lock NAME.txt from it,
with these packages and their dependencies on every platform, each with its version and the hashes of its
files. For npm, the lock is package-lock.json.
"""

import hashlib
import json
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from scripts import commands, paths
from scripts.console import say
from scripts.errors import Failure


def once(mark: Path, what: str, install: Callable[[], None]) -> None:
    """Creates the marker last, so that an interrupted installation is repeated."""
    if mark.exists():
        return
    say(f"installing {what} (once)")
    install()
    mark.touch()


def lock(name: str) -> Path:
    return paths.REQUIREMENTS / f"{name}.txt"


def folder(home: Path, name: str) -> Path:
    """Returns a folder for this lock and this version of Python, which a virtual environment depends on."""
    return home / f"{name}-{fingerprint(lock(name))}-py{platform.python_version()}"


def fingerprint(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()[:12]


def environment(home: Path, name: str, finish: Callable[[Path], None] = lambda _venv: None) -> Path:
    """Returns the virtual environment of the lock `name`; `finish` adds files that no package contains."""
    venv = folder(home, name)

    def missing() -> None:
        create_venv(venv)
        pip(venv, name)
        finish(venv)

    once(venv / "installed", f"{name} into target/{home.name}/", missing)
    return venv


def create_venv(venv: Path) -> None:
    """Creates a virtual environment, replacing one from an interrupted installation."""
    commands.quietly(
        [sys.executable, "-m", "venv", "--clear", venv],
        "python3 -m venv (on Debian: apt install python3-venv)",
    )


def python_of(venv: Path) -> Path:
    return venv / "bin" / "python"


def pip(venv: Path, name: str) -> None:
    """Installs exactly the packages of a lock, and refuses a lock that lacks a dependency.

    Only wheels are installed, because a build from source would download build tools that no lock contains.
    """
    call: list[str | Path] = [python_of(venv), "-m", "pip", "--disable-pip-version-check"]
    exact: list[str | Path] = [
        "--require-hashes",
        "--no-deps",
        "--only-binary=:all:",
        "--requirement",
        lock(name),
    ]
    commands.quietly([*call, "install", "--quiet", *exact], f"pip install of {name}")
    commands.quietly([*call, "check"], f"{name} lacks what its packages need: pip check")


def npm(home: Path, lock: Path, what: str) -> None:
    """Installs exactly the packages of a package-lock.json into `home`, and checks their hashes.

    Installation scripts of packages are not run.
    """
    program = shutil.which("npm")
    if not program or not shutil.which("node"):
        raise Failure(f"{what} needs npm: install Node.js")
    home.mkdir(parents=True, exist_ok=True)
    text = lock.read_text("utf-8")
    (home / "package.json").write_text(json.dumps(json.loads(text)["packages"][""]))
    (home / "package-lock.json").write_text(text)
    options = ["--ignore-scripts", "--no-audit", "--no-fund"]
    commands.quietly([program, "ci", *options], f"npm ci of {what}", cwd=home)
