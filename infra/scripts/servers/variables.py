"""The environment variables with the addresses of the servers."""

import contextlib
import shlex
from collections.abc import Mapping

from scripts.errors import Failure
from scripts.servers import mongod
from scripts.servers.fleet import needed
from scripts.servers.state import Running

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


def variables(running: Mapping[str, Running], given: Mapping[str, str]) -> dict[str, str]:
    """Variables set by the caller are kept."""
    found = addresses(running, given)
    # Some tests start a separate mongod, even if the other tests use the caller's database. These tests fail
    # with a message if no mongod is installed.
    with contextlib.suppress(Failure):
        found["MONGOD"] = running["mongod"].program if "mongod" in running else mongod.program()
    return {name: given.get(name) or value for name, value in {**found, **CREDENTIALS}.items()}


def addresses(running: Mapping[str, Running], given: Mapping[str, str]) -> dict[str, str]:
    return {
        variable: server.address_at(running[server.name].port)
        for server in needed(given)
        if server.name in running
        for variable in server.variables
    }


def exports(found: Mapping[str, str]) -> str:
    """Returns the variables as shell commands."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in found.items())
