import socket
import unittest
from unittest import mock

from scripts.servers import bson, mongo, mongod


def answer(document: bson.Document, operation: int = mongo.OP_MSG, section: int = 0) -> bytes:
    body = mongo.SECTION.pack(0, section) + bson.encode(document)
    return mongo.HEADER.pack(16 + len(body), 7, 1, operation) + body


class Messages(unittest.TestCase):
    def test_command_is_framed(self) -> None:
        document = b"\x10\0\0\0\x10hello\0\x01\0\0\0\0"
        header = b"\x25\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0"
        self.assertEqual(mongo.message({"hello": 1}), header + b"\0\0\0\0\0" + document)

    def test_response_is_read(self) -> None:
        self.assertEqual(mongo.answer(answer({"ok": 1})), {"ok": 1})

    def test_other_messages_are_refused(self) -> None:
        for data in (
            b"",
            answer({})[:20],
            answer({}, operation=1),
            answer({}, section=1),
            answer({}) + b"\0",
        ):
            with self.subTest(data), self.assertRaises(ValueError):
                mongo.answer(data)

    def test_response_is_complete_with_all_bytes(self) -> None:
        data = answer({"ok": 1})
        self.assertEqual([mongo.is_whole(data[:size]) for size in (0, 15, 16, len(data) - 1)], [False] * 4)
        self.assertTrue(mongo.is_whole(data))


class Connections(unittest.TestCase):
    def run_against(self, *pieces: bytes) -> mock.Mock:
        connection = mock.MagicMock(spec=socket.socket)
        connection.__enter__.return_value = connection
        connection.recv.side_effect = pieces
        self.enterContext(mock.patch.object(socket, "create_connection", return_value=connection))
        return connection

    def test_response_may_arrive_in_pieces(self) -> None:
        data = answer({"ok": 1})
        connection = self.run_against(data[:3], data[3:20], data[20:])
        self.assertEqual(mongo.run(1, {"hello": 1}), {"ok": 1})
        connection.sendall.assert_called_once_with(mongo.message({"hello": 1, "$db": "admin"}))

    def test_closed_connection_is_an_error(self) -> None:
        self.run_against(answer({})[:5], b"")
        with self.assertRaises(ConnectionError):
            mongo.run(1, {"hello": 1})


class Readiness(unittest.TestCase):
    def test_primary_is_ready(self) -> None:
        with mock.patch.object(mongo, "run", return_value={"isWritablePrimary": True}) as run:
            self.assertTrue(mongod.ready(5))
        run.assert_called_once_with(5, {"hello": 1})

    def test_other_server_becomes_replica_set(self) -> None:
        with mock.patch.object(mongo, "run", return_value={"isWritablePrimary": False}) as run:
            self.assertFalse(mongod.ready(5))
        members = [{"_id": 0, "host": "127.0.0.1:5"}]
        run.assert_called_with(5, {"replSetInitiate": {"_id": "rs0", "members": members}})
