"""One command at a time to a mongod on this machine (https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol)."""

import socket
import struct

from scripts.servers import bson

# Size, request, request that is answered, kind of message.
HEADER = struct.Struct("<iiii")
OP_MSG = 2013
# The flags, all unset, and the type of the only section: a document.
SECTION = struct.Struct("<IB")
TIMEOUT_SECONDS = 5


def message(command: bson.Document) -> bytes:
    body = SECTION.pack(0, 0) + bson.encode(command)
    return HEADER.pack(HEADER.size + len(body), 1, 0, OP_MSG) + body


def answer(received: bytes) -> dict[str, object]:
    """Raises ValueError for what is not an answer with one document, as any command here gets it."""
    if len(received) < HEADER.size + SECTION.size:
        raise ValueError("an answer is cut off")
    _, _, _, operation = HEADER.unpack_from(received)
    flags, kind = SECTION.unpack_from(received, HEADER.size)
    if (operation, flags, kind) != (OP_MSG, 0, 0):
        raise ValueError(f"an answer of operation {operation}, flags {flags}, section {kind}")
    return bson.decode(received[HEADER.size + SECTION.size :])


def is_whole(received: bytes) -> bool:
    return len(received) >= HEADER.size and len(received) >= HEADER.unpack_from(received)[0]


def run(port: int, command: bson.Document) -> dict[str, object]:
    """Runs a command on the admin database. One that is refused is answered too, with `ok` 0."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(message({**command, "$db": "admin"}))
        received = b""
        while not is_whole(received):
            piece = connection.recv(65536)
            if not piece:
                raise ConnectionError("mongod closed the connection")
            received += piece
    return answer(received)
