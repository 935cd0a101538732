"""All of the servers, and which of them are missing."""

from collections.abc import Mapping

from scripts.servers import dynamodb, launch, ministack, mongod
from scripts.servers.server import Server
from scripts.servers.state import Running

SERVERS = (mongod.SERVER, dynamodb.SERVER, ministack.SERVER)
Fleet = dict[str, Running]


def healthy(running: Mapping[str, Running]) -> Fleet:
    """Those that live and answer."""
    known = [(server, running[server.name]) for server in SERVERS if server.name in running]
    return {server.name: each for server, each in known if each.is_alive() and launch.is_ready(server, each)}


def needed(given: Mapping[str, str]) -> list[Server]:
    """Those in whose place the caller has none."""
    return [server for server in SERVERS if not server.is_given(given)]


def start_missing(running: Fleet, given: Mapping[str, str], started: Fleet, *, with_us: bool) -> None:
    """Starts what is needed and does not run, all at once; `started` knows each from the moment it exists."""
    missing = [server for server in needed(given) if server.name not in running]
    for server in missing:
        started[server.name] = launch.launch(server, with_us=with_us)
    for server in missing:
        launch.wait_until_ready(server, started[server.name])


def stop(running: Mapping[str, Running]) -> None:
    for each in running.values():
        launch.stop(each)
