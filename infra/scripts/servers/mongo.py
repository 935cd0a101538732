"""Sends commands to a local mongod (https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol)."""

import socket
import struct

from scripts.servers import bson

# Size, request id, id of the answered request, and type of message.
HEADER = struct.Struct("<iiii")
OP_MSG = 2013
# The flags, all unset, and the type of the only section, a document.
SECTION = struct.Struct("<IB")
TIMEOUT_SECONDS = 5


def message(command: bson.Document) -> bytes:
    body = SECTION.pack(0, 0) + bson.encode(command)
    return HEADER.pack(HEADER.size + len(body), 1, 0, OP_MSG) + body


def answer(received: bytes) -> dict[str, object]:
    """Reads a response. Raises ValueError if it does not contain exactly one document."""
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
    """Runs a command on the admin database. The response to a refused command has `ok` 0."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(message({**command, "$db": "admin"}))
        received = b""
        while not is_whole(received):
            piece = connection.recv(65536)
            if not piece:
                raise ConnectionError("mongod closed the connection")
            received += piece
    return answer(received)
