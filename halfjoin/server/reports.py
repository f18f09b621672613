"""What a client is told of an error: SQLSTATE, message, hint, the place in the text, and the names at fault."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from halfjoin.engine.statements.evaluating import QUERY_NAME
from halfjoin.errors import Conflict, DataError, HalfjoinError, InvalidRow, UnknownName, UnsupportedSQL
from halfjoin.server.messages import report
from halfjoin.server.violations import table_at_fault, violation

# What is missing in PostgreSQL's words, by which programs know it.
_MISSING = {"42P01": "relation", "42703": "column", "3B001": "savepoint"}
OTHER_COLUMNS = "cached plan must not change result type"
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
            if found["M"] == OTHER_COLUMNS:  # JDBC and asyncpg, which prepare anew then, look for the routine
                found["R"] = "RevalidateCachedQuery"
            return found | _names(problem) | _position(problem, text, start) | violation(problem, found["M"])
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
        kind = _MISSING.get(problem.sqlstate)
        return problem.reason if kind is None else f'{kind} "{problem.name}" does not exist'
    if isinstance(problem, UnsupportedSQL):
        changes |= {"sql": None, "line": None, "column": None}
    return str(replace(problem, **changes))


def _names(problem: HalfjoinError) -> dict[str, str]:
    match problem:
        case InvalidRow(column=column, constraint=constraint):
            schema, table = table_at_fault(problem)
            named = {"s": schema, "t": table, "c": column, "n": constraint}
            return {key: value for key, value in named.items() if value}
        case DataError(view=view):
            return {"t": view} if view and view != QUERY_NAME else {}
        case Conflict(holder=holder):
            return {"D": f"It is held by {holder}."} if holder else {}
    return {}


def _position(problem: HalfjoinError, text: str, start: int) -> dict[str, str]:
    """The place in what the client sent, counted in characters from 1."""
    if not isinstance(problem, UnsupportedSQL | UnknownName) or problem.line is None or problem.sql is None:
        return {}
    lines = problem.sql.splitlines(keepends=True)
    place = sum(map(len, lines[: problem.line - 1])) + (problem.column or 1)
    if text[start : start + len(problem.sql)] != problem.sql:
        return {}  # a place in the text of a view
    return {"P": str(start + place)}
