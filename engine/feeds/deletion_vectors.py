"""Read a deletion vector of a Delta table: the rows of a data file that are deleted, though the file still has them.

The protocol of Delta keeps them as a RoaringBitmapArray: for each upper half of the 64-bit row numbers a bitmap of
Roaring's portable format, which has a container for each upper half of the 32 bits that are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID
from zlib import crc32

import numpy as np

from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import StorageError

_MAGIC = 1681511377  # of the portable format, which is the only one that files have
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_NO_OFFSETS = 4  # fewer containers, some of which are runs, are written without their places
_FEW = 4096  # a container of more rows is a bitmap
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def deleted(place: Place, vector: Mapping[str, Any]) -> Ints:
    """The numbers of the deleted rows, in order, by what the log of the table at a place says of their vector.

    Raises:
        StorageError: it cannot be read.
    """
    try:
        data = _data(place, vector)
        if int.from_bytes(data[:4], "little") != _MAGIC:
            raise ValueError("it is of an unknown format")
        rows = _array(data)
    except (ValueError, IndexError, OverflowError) as problem:
        raise StorageError(f"a deletion vector of {place} cannot be read: {problem}", path=str(place)) from None
    if len(rows) != vector["cardinality"]:
        raise StorageError(f"a deletion vector of {place} has {len(rows)} rows, not {vector['cardinality']}",
                           path=str(place))  # fmt: skip
    return rows


def _data(place: Place, vector: Mapping[str, Any]) -> bytes:
    text, size = vector["pathOrInlineDv"], vector["sizeInBytes"]
    match vector["storageType"]:
        case "i":
            return _unpacked(text)[:size]
        case "u":
            folder, id = text[:-20], UUID(bytes=_unpacked(text[-20:]))
            name = f"{folder}/deletion_vector_{id}.bin" if folder else f"deletion_vector_{id}.bin"
        case _:
            raise ValueError("its file is in the folder of another table")
    with place.open(name) as file:
        file.seek(vector.get("offset") or 0)
        found: bytes = file.read(size + 8)  # between its length and its checksum
    data = found[4:-4]
    if len(data) != size or crc32(data) != int.from_bytes(found[-4:], "big"):
        raise ValueError(f"{name} is damaged")
    return data


def _unpacked(text: str) -> bytes:
    """The bytes of a text of base 85, as ZeroMQ writes it.

    >>> _unpacked("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    found = bytearray()
    for start in range(0, len(text), 5):
        number = 0
        for character in text[start : start + 5]:
            number = number * 85 + _Z85.index(character)
        found += number.to_bytes(4, "big")
    return bytes(found)


def _array(data: bytes) -> Ints:
    parts, at = [np.zeros(0, np.int64)], 12
    for _ in range(int.from_bytes(data[4:12], "little")):
        upper = int.from_bytes(data[at : at + 4], "little")
        rows, at = _bitmap(data, at + 4)
        parts.append(rows + (upper << 32))
    return np.concatenate(parts)


def _bitmap(data: bytes, at: int) -> tuple[Ints, int]:
    """The numbers of a bitmap at a place, and the place after it."""
    cookie = int.from_bytes(data[at : at + 4], "little")
    at += 4
    runs = np.zeros(0, np.uint8)
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        runs = np.unpackbits(_numbers(data, at, (count + 7) // 8, "u1"), bitorder="little")
        at += (count + 7) // 8
    elif cookie == _WITHOUT_RUNS:
        count = int.from_bytes(data[at : at + 4], "little")
        at += 4
    else:
        raise ValueError("it is of an unknown format")
    heads = _numbers(data, at, 2 * count, "<u2").reshape(-1, 2).astype(np.int64)
    at += 4 * count
    at += 4 * count if not len(runs) or count >= _NO_OFFSETS else 0
    parts = [np.zeros(0, np.int64)]
    for number, (upper, less) in enumerate(heads):
        if len(runs) and runs[number]:
            pairs = _numbers(data, at + 2, 2 * int.from_bytes(data[at : at + 2], "little"), "<u2").astype(np.int64)
            at += 2 + 2 * len(pairs)
            starts, lengths = pairs[::2], pairs[1::2] + 1
            ends = np.cumsum(lengths)
            rows = np.arange(int(ends[-1])) + np.repeat(starts - (ends - lengths), lengths)
        elif less < _FEW:
            rows = _numbers(data, at, int(less) + 1, "<u2").astype(np.int64)
            at += 2 * len(rows)
        else:
            rows = np.flatnonzero(np.unpackbits(_numbers(data, at, 8192, "u1"), bitorder="little"))
            at += 8192
        parts.append(rows + (int(upper) << 16))
    return np.concatenate(parts), at


def _numbers(data: bytes, at: int, count: int, kind: str) -> np.ndarray[Any, np.dtype[Any]]:
    return np.frombuffer(data, kind, count, at)
