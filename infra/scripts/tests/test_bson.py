import unittest

from scripts.servers import bson

# The first example of bsonspec.org, and its second.
HELLO = b"\x16\0\0\0\x02hello\0\x06\0\0\0world\0\0"
AWESOME = (
    b"\x31\0\0\0\x04BSON\0\x26\0\0\0"
    b"\x020\0\x08\0\0\0awesome\0"
    b"\x011\0\x33\x33\x33\x33\x33\x33\x14\x40"
    b"\x102\0\xc2\x07\0\0\0\0"
)


def document(*fields: bytes) -> bytes:
    body = b"".join(fields)
    return (len(body) + 5).to_bytes(4, "little") + body + b"\0"


class Encode(unittest.TestCase):
    def test_text_is_encoded(self) -> None:
        self.assertEqual(bson.encode({"hello": "world"}), HELLO)

    def test_null_is_encoded(self) -> None:
        self.assertEqual(bson.encode({}), b"\x05\0\0\0\0")

    def test_size_counts_bytes(self) -> None:
        self.assertEqual(bson.encode({"é": "ü"}), document(b"\x02\xc3\xa9\0\x03\0\0\0\xc3\xbc\0"))

    def test_boolean_is_not_a_number(self) -> None:
        self.assertEqual(bson.encode({"a": True, "b": 1}), document(b"\x08a\0\x01", b"\x10b\0\x01\0\0\0"))

    def test_replica_set_command_is_encoded(self) -> None:
        member = document(b"\x10_id\0\0\0\0\0", b"\x02host\0\x02\0\0\0h\0")
        members = b"\x04members\0" + document(b"\x030\0" + member)
        expected = document(b"\x03replSetInitiate\0" + document(b"\x02_id\0\x04\0\0\0rs0\0", members))
        command = {"replSetInitiate": {"_id": "rs0", "members": [{"_id": 0, "host": "h"}]}}
        self.assertEqual(bson.encode(command), expected)

    def test_oversized_number_is_refused(self) -> None:
        for value in (1 << 31, -(1 << 31) - 1):
            with self.subTest(value), self.assertRaises(ValueError):
                bson.encode({"a": value})
        with self.assertRaises(ValueError):
            bson.encode({"a\0b": 1})
        for unknown in (b"bytes", 1.5, None):
            with self.subTest(unknown), self.assertRaises(TypeError):
                bson.encode({"a": unknown})


class Decode(unittest.TestCase):
    def test_known_documents_are_decoded(self) -> None:
        self.assertEqual(bson.decode(HELLO), {"hello": "world"})
        self.assertEqual(bson.decode(AWESOME), {"BSON": ["awesome", 5.05, 1986]})

    def test_every_type_of_response_is_decoded(self) -> None:
        data = document(
            b"\x05hash\0\x02\0\0\0\0ab",
            b"\x07id\0" + bytes(range(12)),
            b"\x08no\0\0",
            b"\x09date\0" + bytes(8),
            b"\x0anull\0",
            b"\x11stamp\0" + bytes(8),
            b"\x12long\0\xff\xff\xff\xff\xff\xff\xff\xff",
        )
        expected = {
            "hash": b"ab",
            "id": bytes(range(12)),
            "no": False,
            "date": bytes(8),
            "null": None,
            "stamp": bytes(8),
            "long": -1,
        }
        self.assertEqual(bson.decode(data), expected)

    def test_encoded_document_round_trips(self) -> None:
        value = {"text": "", "number": -7, "yes": True, "list": ["a", {"b": []}], "inner": {"c": {}}}
        self.assertEqual(bson.decode(bson.encode(value)), value)

    def test_truncated_document_is_refused(self) -> None:
        for data in (HELLO, AWESOME):
            for size in range(len(data)):
                with self.subTest(size=size), self.assertRaises(ValueError):
                    bson.decode(data[:size])

    def test_malformed_document_is_refused(self) -> None:
        malformed = {
            "something follows": HELLO + b"\0",
            "unknown type": document(b"\x7fa\0"),
            "a text beyond the data": document(b"\x02a\0\xff\0\0\0a\0"),
            "a text of a negative size": document(b"\x02a\0\xff\xff\xff\xffa\0"),
            "a text without its end": document(b"\x02a\0\x01\0\0\0a\0"),
            "a number beyond its document": b"\x0a\0\0\0\x10a\0\x01\0\0\0\0",
            "too small": b"\x04\0\0\0",
        }
        for why, data in malformed.items():
            with self.subTest(why), self.assertRaises(ValueError):
                bson.decode(data)
