"""Find the deletion vectors of a version of a Delta table, as its log says them: the newest checkpoint and the commits
after it. The package `deltalake` tells none of a table that has other features as well, such as type widening."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from halfjoin.engine.storage.commits import commit_file
from halfjoin.engine.storage.place import LOG, Place

Vector: TypeAlias = Mapping[str, Any]  # what the log says of a deletion vector

# In one file, in some number of parts, or with sidecars.
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)")
_SIDECARS = "_sidecars"


def vectors(place: Place, version: int) -> dict[str, Vector]:
    """The deletion vectors of a version's files, by the paths that the log has for these.

    Raises:
        OSError, pa.ArrowException: the log cannot be read.
    """
    log = place / LOG
    start, names = _checkpoint(log, version)
    found = dict[str, Vector]()
    for name in names:
        found.update(_kept(log, name))
    for number in range(start + 1, version + 1):
        actions = lines(place, commit_file(number))
        for path in (action[kind]["path"] for action in actions for kind in ("remove", "add") if kind in action):
            found.pop(path, None)
        found.update(_added(actions))
    return found


def lines(place: Place, name: str) -> list[Mapping[str, Any]]:
    """The actions in a file of the log that has JSON."""
    return [json.loads(line) for line in place.read(name).to_pybytes().splitlines()]


def _checkpoint(log: Place, version: int) -> tuple[int, list[str]]:
    """The newest whole checkpoint up to a version, and its files; -1 and none if there is none."""
    whole: dict[int, list[str]] = {-1: []}
    parts: dict[tuple[int, int], list[str]] = {}
    for name in log.names():
        match = _CHECKPOINT.fullmatch(name)
        if match is not None and int(match[1]) <= version:
            at, count = int(match[1]), int(match[2] or 1)
            parts.setdefault((at, count), []).append(name)
            if len(parts[at, count]) >= count:
                whole[at] = parts[at, count][-count:]
    newest = max(whole)
    return newest, whole[newest]


def _kept(log: Place, name: str) -> dict[str, Vector]:
    """The deletion vectors that a file of a checkpoint has, and its sidecars."""
    if name.endswith(".json"):
        actions = lines(log, name)
    else:
        with log.open(name) as file:
            rows = pq.ParquetFile(file).read(["add.path", "add.deletionVector", "sidecar.path"])
        actions = list(_actions(rows))
    found = _added(actions)
    for action in actions:
        if action.get("sidecar") is not None:
            found.update(_kept(log / _SIDECARS, action["sidecar"]["path"]))
    return found


def _actions(rows: pa.Table) -> Iterator[Mapping[str, Any]]:
    """The rows of a checkpoint that have a deletion vector or name a sidecar."""
    fields = {"add": "deletionVector", "sidecar": "path"}
    for kind, field in fields.items():
        if kind in rows.column_names and rows.schema.field(kind).type.get_field_index(field) >= 0:
            for value in rows[kind].filter(pc.struct_field(rows[kind], field).is_valid()).to_pylist():
                yield {kind: value}


def _added(actions: Iterable[Mapping[str, Any]]) -> dict[str, Vector]:
    added = [action["add"] for action in actions if action.get("add") is not None]
    return {add["path"]: add["deletionVector"] for add in added if add.get("deletionVector") is not None}
