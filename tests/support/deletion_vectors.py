"""Write deletion vectors of Delta tables: sets of row numbers as RoaringBitmapArrays, in the log or in files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4
from zlib import crc32

import numpy as np
from deltalake import DeltaTable

PROTOCOL = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors"]}  # fmt: skip
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def delete(table: Path, file: dict[str, Any], rows: Sequence[int], *, runs: bool, kept: bool) -> dict[str, Any]:
    """Add a version that leaves these rows of a file as the deleted ones. Returns the new description of the file."""
    new = {**file, "deletionVector": vector(table, rows, runs=runs, kept=kept)}
    gone = {name: value for name, value in file.items() if name not in ("stats", "modificationTime")}
    actions = [{"remove": {**gone, "deletionTimestamp": 1, "dataChange": True}}, {"add": {**new, "dataChange": True}}]
    log = table / "_delta_log" / f"{DeltaTable(table.as_uri()).version() + 1:020}.json"
    log.write_text("\n".join(map(json.dumps, actions)))
    return new


def vector(table: Path, rows: Sequence[int], *, runs: bool, kept: bool) -> dict[str, Any]:
    """What the log says of a vector, which is `kept` in a file, or else in the log itself."""
    data = _array(sorted(rows), runs)
    said = {"sizeInBytes": len(data), "cardinality": len(rows)}
    if not kept:
        return {**said, "storageType": "i", "pathOrInlineDv": _z85(data + bytes(-len(data) % 4))}
    id, before = uuid4(), b"another one"
    framed = len(data).to_bytes(4, "big") + data + crc32(data).to_bytes(4, "big")
    (table / f"deletion_vector_{id}.bin").write_bytes(b"\1" + before + framed)
    return {**said, "storageType": "u", "pathOrInlineDv": _z85(id.bytes), "offset": 1 + len(before)}


def _z85(data: bytes) -> str:
    found = ""
    for start in range(0, len(data), 4):
        number, text = int.from_bytes(data[start : start + 4], "big"), ""
        for _ in range(5):
            number, digit = divmod(number, 85)
            text = _Z85[digit] + text
        found += text
    return found


def _array(rows: Sequence[int], runs: bool) -> bytes:
    bitmaps = {upper: [row & 0xFFFFFFFF for row in some] for upper, some in groupby(rows, lambda row: row >> 32)}
    data = (1681511377).to_bytes(4, "little") + len(bitmaps).to_bytes(8, "little")
    return data + b"".join(upper.to_bytes(4, "little") + _bitmap(some, runs) for upper, some in bitmaps.items())


def _bitmap(rows: Iterable[int], runs: bool) -> bytes:
    parts = groupby(rows, lambda row: row >> 16)
    containers = {upper: np.array([row & 0xFFFF for row in some]) for upper, some in parts}
    count, bodies = len(containers), [_container(some, runs) for some in containers.values()]
    heads = np.array([[upper, len(some) - 1] for upper, some in containers.items()], "<u2").tobytes()
    if runs:  # of all containers
        begin = (12347 | count - 1 << 16).to_bytes(4, "little")
        begin += np.packbits([True] * count, bitorder="little").tobytes()
    else:
        begin = (12346).to_bytes(4, "little") + count.to_bytes(4, "little")
    begin += heads
    places = [len(begin) + 4 * count + sum(map(len, bodies[:number])) for number in range(count)]
    return begin + (np.array(places, "<u4").tobytes() if not runs or count >= 4 else b"") + b"".join(bodies)


def _container(rows: np.ndarray[Any, Any], runs: bool) -> bytes:
    if runs:
        starts = rows[np.append(True, np.diff(rows) > 1)]
        ends = rows[np.append(np.diff(rows) > 1, True)]
        return len(starts).to_bytes(2, "little") + np.stack([starts, ends - starts], 1).astype("<u2").tobytes()
    if len(rows) <= 4096:
        return rows.astype("<u2").tobytes()
    bits = np.zeros(1 << 16, np.bool_)
    bits[rows] = True
    return np.packbits(bits, bitorder="little").tobytes()
