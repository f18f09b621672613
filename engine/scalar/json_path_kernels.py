"""Kernels of the functions of SQL/JSON paths: jsonb_path_query and its kin, `@?` and `@@`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from halfjoin.engine.scalar.bounds import LONG
from halfjoin.engine.scalar.each import Bad
from halfjoin.engine.scalar.json_parts import of_json
from halfjoin.engine.scalar.json_path_numbers import PathError
from halfjoin.engine.scalar.json_paths import Evaluation
from halfjoin.engine.scalar.values import Kernel
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.json_path import path
from halfjoin.sql.functions.json_text import Json, value_of, written
from halfjoin.sql.types import VALUE_BYTES


def _of_path(compute: Callable[[Evaluation, bool], Any], type: Any) -> Callable[[Call], Kernel]:
    """The builder of a kernel of a jsonb, a path, the variables, and whether errors are silent. `unset`: as for an
    operator, each variable is null."""

    def run(text: str, given: str, variables: str, silent: bool, unset: bool = False) -> Any:
        known = value_of(variables)
        if not isinstance(known, dict):
            raise Bad('"vars" argument is not an object')
        try:
            read = path(given)
        except UnsupportedSQL as error:
            raise Bad(error.reason) from None
        return compute(Evaluation(read, value_of(text), None if unset else known), silent)

    return of_json(run, type)


def _exists(run: Evaluation, silent: bool) -> bool | None:
    try:
        return run.any()
    except PathError as error:
        if silent:
            return None
        raise Bad(str(error)) from None


def _found(run: Evaluation, silent: bool) -> list[Json]:
    """The items of a path. Those before an error that is silent stay."""
    found: list[Json] = []
    try:
        for item in run.all():
            found.append(item)  # noqa: PERF402  what came before an error stays
    except PathError as error:
        if not silent:
            raise Bad(str(error)) from None
    return found


def _match(run: Evaluation, silent: bool) -> bool | None:
    found = _found(run, silent)
    if len(found) == 1 and (found[0] is None or isinstance(found[0], bool)):
        return found[0]
    if silent:
        return None
    raise Bad("single boolean result is expected")


def _texts(run: Evaluation, silent: bool) -> list[str]:
    size, texts = 0, list[str]()
    for item in _found(run, silent):
        texts.append(written(item))
        size += len(texts[-1])
        if size > VALUE_BYTES:  # items may contain each other
            raise Bad(LONG)
    return texts


def _first(run: Evaluation, silent: bool) -> str | None:
    found = _found(run, silent)
    return written(found[0]) if found else None


JSON_PATHS: dict[str, Callable[[Call], Kernel]] = {
    "jsonb_path_exists": _of_path(_exists, pa.bool_()),
    "jsonb_path_match": _of_path(_match, pa.bool_()),
    "jsonb_path_query_array": _of_path(lambda run, silent: f"[{', '.join(_texts(run, silent))}]", pa.string()),
    "jsonb_path_query_first": _of_path(_first, pa.string()),
    "jsonb path items": _of_path(_texts, pa.list_(pa.string())),
}
