import os
import platform
from pathlib import Path

from scripts import installs, paths
from scripts.errors import Failure
from scripts.servers import mongo, packages
from scripts.servers.server import Server, Start

REPLICA_SET = "rs0"


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
    if mongo.run(port, {"hello": 1}).get("isWritablePrimary") is True:
        return True
    member = {"_id": 0, "host": f"127.0.0.1:{port}"}
    # Refused if the replica set is already initiated; only the election remains to be awaited.
    mongo.run(port, {"replSetInitiate": {"_id": REPLICA_SET, "members": [member]}})
    return False


SERVER = Server(
    "mongod",
    start,
    ready,
    ("MONGODB_URI",),
    address=f"mongodb://127.0.0.1:{{port}}/?replicaSet={REPLICA_SET}",
)
