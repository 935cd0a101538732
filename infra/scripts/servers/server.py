from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Start:
    """How a server is started: `environment` goes over that of the caller."""

    command: list[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Server:
    name: str
    # Installs it if need be. Takes the port and a folder for its data.
    start: Callable[[int, Path], Start]
    # Whether the server at this port does its work; it may also raise OSError, HTTPException or ValueError.
    ready: Callable[[int], bool]
    # The environment variables that clients look for it in.
    variables: tuple[str, ...]
    # A variable that clients take for any of those.
    instead: str | None = None
    # The address that the variables get.
    address: str = "http://127.0.0.1:{port}"

    def address_at(self, port: int) -> str:
        return self.address.format(port=port)

    def is_given(self, environment: Mapping[str, str]) -> bool:
        """Whether a server of the caller's stands in for this one."""
        if self.instead and environment.get(self.instead):
            return True
        return all(environment.get(variable) for variable in self.variables)
