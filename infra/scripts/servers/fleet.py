"""All servers: which of them are missing, and starting them."""

from collections.abc import Mapping

from scripts.servers import dynamodb, launch, ministack, mongod
from scripts.servers.server import Server
from scripts.servers.state import Running

SERVERS = (mongod.SERVER, dynamodb.SERVER, ministack.SERVER)
Fleet = dict[str, Running]


def healthy(running: Mapping[str, Running]) -> Fleet:
    """Returns the servers that run and respond."""
    known = [(server, running[server.name]) for server in SERVERS if server.name in running]
    return {server.name: each for server, each in known if each.is_alive() and launch.is_ready(server, each)}


def needed(given: Mapping[str, str]) -> list[Server]:
    """Returns the servers that the caller does not replace."""
    return [server for server in SERVERS if not server.is_given(given)]


def start_missing(running: Fleet, given: Mapping[str, str], started: Fleet, *, with_us: bool) -> None:
    """Starts the missing servers concurrently; each is in `started` as soon as its process exists."""
    missing = [server for server in needed(given) if server.name not in running]
    for server in missing:
        started[server.name] = launch.launch(server, with_us=with_us)
    for server in missing:
        launch.wait_until_ready(server, started[server.name])


def stop(running: Mapping[str, Running]) -> None:
    for each in running.values():
        launch.stop(each)
