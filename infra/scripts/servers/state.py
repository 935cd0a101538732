"""What runs, as files say it: each server's beside its data, and one of all that `up` has started."""

import contextlib
import dataclasses
import fcntl
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.servers import processes


@dataclass(frozen=True)
class Running:
    pid: int
    # With the number, what names the process (see processes.born).
    born: str | None
    port: int
    data: str
    program: str

    def is_alive(self) -> bool:
        return processes.is_alive(self.pid, self.born)


def to_json(running: Running) -> dict[str, Any]:
    return dataclasses.asdict(running)


def from_json(value: object) -> Running:
    """Raises ValueError for anything but what `to_json` returns."""
    match value:
        case {
            "pid": int(pid),
            "born": str() | None as born,
            "port": int(port),
            "data": str(data),
            "program": str(program),
        }:
            return Running(pid, born, port, data, program)
    raise ValueError(f"not a server: {value!r}")


class State:
    """The file of those that `up` has started."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "state.json"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One at a time, so that two do not install or start the same."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def read(self) -> dict[str, Running]:
        """Nothing when there is no file, or none that can be read."""
        try:
            return {name: from_json(value) for name, value in json.loads(self.file.read_text()).items()}
        except (OSError, ValueError, AttributeError):
            return {}

    def write(self, running: Mapping[str, Running]) -> None:
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps({name: to_json(each) for name, each in running.items()}, indent=1))
        partial.replace(self.file)

    def clear(self) -> None:
        self.file.unlink(missing_ok=True)
