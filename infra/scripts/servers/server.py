"""The description of a server: the way to start it, and the variables with its address."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Start:
    """The command of a server; `environment` overrides variables of the caller."""

    command: list[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Server:
    name: str
    # Installs the server if necessary. Receives the port and a folder for its data.
    start: Callable[[int, Path], Start]
    # Returns whether the server at this port is ready. May raise OSError, HTTPException or ValueError.
    ready: Callable[[int], bool]
    # The environment variables in which clients expect its address.
    variables: tuple[str, ...]
    # A variable that clients use instead of any of these variables.
    instead: str | None = None
    # The value of these variables.
    address: str = "http://127.0.0.1:{port}"

    def address_at(self, port: int) -> str:
        return self.address.format(port=port)

    def is_given(self, environment: Mapping[str, str]) -> bool:
        """Returns whether the caller provides a server instead of this one."""
        if self.instead and environment.get(self.instead):
            return True
        return all(environment.get(variable) for variable in self.variables)
