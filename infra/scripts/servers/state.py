"""State files of running servers: one in each server's data folder, and one for all servers of `up`."""

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
    # Identifies the process together with its number (see processes.born).
    born: str | None
    port: int
    data: str
    program: str

    def is_alive(self) -> bool:
        return processes.is_alive(self.pid, self.born)


def to_json(running: Running) -> dict[str, Any]:
    return dataclasses.asdict(running)


def from_json(value: object) -> Running:
    """Reads the output of `to_json`. Raises ValueError for anything else."""
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
    """The file of the servers that `up` has started."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "state.json"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the file, so that two programs do not install or start the same server."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def read(self) -> dict[str, Running]:
        """Returns the servers, or none if the file is missing or unreadable."""
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
