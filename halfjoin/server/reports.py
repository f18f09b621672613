"""What a client is told of an error: SQLSTATE, message, hint, the place in the text, and the names at fault."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from halfjoin.engine.statements.evaluating import QUERY_NAME
from halfjoin.errors import Conflict, DataError, HalfjoinError, InvalidRow, UnknownName, UnsupportedSQL
from halfjoin.server.messages import report
from halfjoin.sql.parse.locate import PUBLIC

_log = logging.getLogger("halfjoin.server")


def error(problem: BaseException, text: str = "", start: int = 0, severity: str = "ERROR") -> bytes:
    """ErrorResponse of an exception. `text`: what the client sent; the statement at fault begins there at `start`."""
    return report(b"E", {"S": severity, "V": severity} | fields(problem, text, start))


def notice(message: str, code: str = "00000", severity: str = "NOTICE") -> bytes:
    """NoticeResponse."""
    return report(b"N", {"S": severity, "V": severity, "C": code, "M": message})


def fields(problem: BaseException, text: str, start: int) -> dict[str, str]:
    """The fields of an error, without its severity."""
    match problem:
        case HalfjoinError():
            found = {"C": problem.sqlstate, "M": _message(problem)}
            if problem.remedy:
                found["H"] = problem.remedy
            return found | _names(problem) | _position(problem, text, start) | _violation(problem, found["M"])
        case MemoryError():
            return {"C": "53200", "M": "out of memory", "H": "ask for fewer rows, or give the engine more memory"}
        case RecursionError():
            return {"C": "54001", "M": "the statement is nested too deep"}
    _log.error("a statement failed unexpectedly", exc_info=problem)
    return {"C": "XX000", "M": f"internal error: {type(problem).__name__}: {problem}"}


def _message(problem: HalfjoinError) -> str:
    """The text without its remedy and without the line that it underlines, which clients show by themselves."""
    changes: dict[str, Any] = {"remedy": None}
    if isinstance(problem, DataError) and problem.view == QUERY_NAME:
        changes["time"] = None
    if isinstance(problem, UnknownName):
        return problem.reason
    if isinstance(problem, UnsupportedSQL):
        changes |= {"sql": None, "line": None, "column": None}
    return str(replace(problem, **changes))


def _names(problem: HalfjoinError) -> dict[str, str]:
    match problem:
        case InvalidRow(column=column, constraint=constraint):
            schema, table = _table(problem)
            named = {"s": schema, "t": table, "c": column, "n": constraint}
            return {key: value for key, value in named.items() if value}
        case DataError(view=view):
            return {"t": view} if view and view != QUERY_NAME else {}
        case Conflict(holder=holder):
            return {"D": f"It is held by {holder}."} if holder else {}
    return {}


def _table(problem: InvalidRow) -> tuple[str, str]:
    """The table at fault and its schema; empty if no table is."""
    schema, _, table = (problem.table or "").rpartition(".")
    return (schema or PUBLIC) if table else "", table


def _violation(problem: HalfjoinError, message: str) -> dict[str, str]:
    """PostgreSQL's words for a row that violates a constraint, which programs look for; the engine's are the DETAIL."""
    if not isinstance(problem, InvalidRow) or not problem.table or not (problem.constraint or problem.column):
        return {}
    table, name = _table(problem)[1], problem.constraint
    foreign = f'violates foreign key constraint "{name}"'
    match problem.sqlstate:
        case "23505":
            words = f'duplicate key value violates unique constraint "{name}"'
        case "23503" if "is still referenced from" in problem.reason:
            other = problem.reason.rpartition(" ")[2].rpartition(".")[2]
            words = f'update or delete on table "{table}" {foreign} on table "{other}"'
        case "23503":
            words = f'insert or update on table "{table}" {foreign}'
        case "23514" if problem.column is None:
            words = f'new row for relation "{table}" violates check constraint "{name}"'
        case "23502":
            words = f'null value in column "{problem.column}" of relation "{table}" violates not-null constraint'
        case _:
            return {}
    found = {"M": words, "D": message}
    return found | {"H": "ON CONFLICT says what to do with such a row"} if problem.sqlstate == "23505" else found


def _position(problem: HalfjoinError, text: str, start: int) -> dict[str, str]:
    """The place in what the client sent, counted in characters from 1."""
    if not isinstance(problem, UnsupportedSQL | UnknownName) or problem.line is None or problem.sql is None:
        return {}
    lines = problem.sql.splitlines(keepends=True)
    place = sum(map(len, lines[: problem.line - 1])) + (problem.column or 1)
    if text[start : start + len(problem.sql)] != problem.sql:
        return {}  # a place in the text of a view
    return {"P": str(start + place)}
