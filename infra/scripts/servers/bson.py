"""Encodes and decodes BSON (https://bsonspec.org): the types of commands, and most types of responses."""

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum

Value = object
Document = Mapping[str, Value]


class Kind(IntEnum):
    DOUBLE = 0x01
    STRING = 0x02
    DOCUMENT = 0x03
    ARRAY = 0x04
    BINARY = 0x05
    OBJECT_ID = 0x07
    BOOLEAN = 0x08
    DATE = 0x09
    NULL = 0x0A
    INT32 = 0x10
    TIMESTAMP = 0x11
    INT64 = 0x12


SCALARS = {
    Kind.DOUBLE: struct.Struct("<d"),
    Kind.BOOLEAN: struct.Struct("<?"),
    Kind.INT32: struct.Struct("<i"),
    Kind.INT64: struct.Struct("<q"),
}
# The content of these types is not needed, so it remains bytes.
OPAQUE_SIZES = {Kind.OBJECT_ID: 12, Kind.DATE: 8, Kind.TIMESTAMP: 8}
# A size and the zero at the end.
SMALLEST = 5


def encode(document: Document) -> bytes:
    body = b"".join(encode_field(name, value) for name, value in document.items())
    return struct.pack("<i", len(body) + SMALLEST) + body + b"\0"


def encode_field(name: str, value: Value) -> bytes:
    if "\0" in name:
        raise ValueError(f"a field's name has a zero byte: {name!r}")
    kind, content = encode_value(value)
    return bytes([kind]) + name.encode() + b"\0" + content


def encode_value(value: Value) -> tuple[Kind, bytes]:
    match value:
        # Before int: True is one.
        case bool():
            return Kind.BOOLEAN, bytes([value])
        case int():
            try:
                return Kind.INT32, struct.pack("<i", value)
            except struct.error:
                raise ValueError(f"{value} does not fit into 32 bits") from None
        case str():
            text = value.encode() + b"\0"
            return Kind.STRING, struct.pack("<i", len(text)) + text
        case Mapping():
            return Kind.DOCUMENT, encode(value)
        case Sequence() if not isinstance(value, bytes):
            return Kind.ARRAY, encode({str(index): item for index, item in enumerate(value)})
    raise TypeError(f"cannot be encoded: {type(value).__name__}")


def decode(data: bytes) -> dict[str, Value]:
    """Raises ValueError for bytes that are not exactly one document."""
    try:
        document, end = decode_document(data, 0)
    except (struct.error, IndexError):
        raise ValueError("a document is cut off") from None
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes follow the document")
    return document


def decode_document(data: bytes, begin: int) -> tuple[dict[str, Value], int]:
    """Returns the document and its end, like all functions below."""
    size = size_at(data, begin)
    end = begin + size
    if size < SMALLEST or data[end - 1] != 0:
        raise ValueError("a document does not end where it says")
    fields, at = {}, begin + 4
    while at < end - 1:
        kind = kind_of(data[at])
        name, at = decode_name(data, at + 1)
        fields[name], at = decode_value(kind, data, at)
    if at != end - 1:
        raise ValueError("a field reaches beyond its document")
    return fields, end


def kind_of(number: int) -> Kind:
    try:
        return Kind(number)
    except ValueError:
        raise ValueError(f"a field has the unknown type {number:#04x}") from None


def decode_name(data: bytes, begin: int) -> tuple[str, int]:
    end = data.index(b"\0", begin)
    return data[begin:end].decode(), end + 1


def decode_value(kind: Kind, data: bytes, at: int) -> tuple[Value, int]:
    match kind:
        case Kind.STRING:
            return decode_string(data, at)
        case Kind.DOCUMENT:
            return decode_document(data, at)
        case Kind.ARRAY:
            items, end = decode_document(data, at)
            return list(items.values()), end
        case Kind.BINARY:
            # The size, a byte with the subtype, and the content.
            return take(data, at + 5, size_at(data, at))
    if kind in SCALARS:
        return SCALARS[kind].unpack_from(data, at)[0], at + SCALARS[kind].size
    return take(data, at, OPAQUE_SIZES[kind]) if kind in OPAQUE_SIZES else (None, at)


def decode_string(data: bytes, at: int) -> tuple[str, int]:
    content, end = take(data, at + 4, size_at(data, at))
    if not content.endswith(b"\0"):
        raise ValueError("a string does not end where it says")
    return content[:-1].decode(), end


def size_at(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<i", data, at)[0])


def take(data: bytes, begin: int, size: int) -> tuple[bytes, int]:
    end = begin + size
    if size < 0 or end > len(data):
        raise ValueError("a field reaches beyond the data")
    return data[begin:end], end
