"""The files of the servers' packages below target/services."""

from pathlib import Path

from scripts import paths
from scripts.errors import Failure


def program(venv: Path, pattern: str, what: str) -> str:
    """Returns the program of a package, after making it executable, which not all wheels do."""
    found = only(venv, f"lib/python*/site-packages/{pattern}", what)
    found.chmod(found.stat().st_mode | 0o111)
    return str(found)


def only(folder: Path, pattern: str, what: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise Failure(f"{what} is not where its package had it: remove {paths.SERVICES} and try again")
    return found[0]
