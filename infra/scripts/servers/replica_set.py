"""Makes a mongod the only member of a replica set. Exits with 0 once it is the primary.

    replica_set.py PORT NAME

mongod.py runs it with the Python of the lock `pymongo`.
"""

import contextlib
import sys

import pymongo
from pymongo.errors import OperationFailure, PyMongoError


def is_primary(port: int, name: str) -> bool:
    with pymongo.MongoClient("127.0.0.1", port, directConnection=True) as client:
        if client.admin.command("hello")["isWritablePrimary"]:
            return True
        member = {"_id": 0, "host": f"127.0.0.1:{port}"}
        # Refused if the replica set is already initiated; only the election remains to be awaited.
        with contextlib.suppress(OperationFailure):
            client.admin.command("replSetInitiate", {"_id": name, "members": [member]})
        return False


if __name__ == "__main__":
    try:
        sys.exit(not is_primary(int(sys.argv[1]), sys.argv[2]))
    except PyMongoError as error:
        sys.exit(str(error))
