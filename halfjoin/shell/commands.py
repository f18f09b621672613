"""The shell's commands that begin with a backslash. They are psql's, as far as they mean something here."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

from halfjoin.shell.shell import Command, Quit, Shell
from halfjoin.shell.targets import Answer, ShellError
from halfjoin.sql.functions.docs import documented

_NAME = re.compile(r'[\w."]+')
_COPY = re.compile(r"(?P<what>.+?)\s+(?P<way>from|to)\s+'?(?P<file>[^'\s]+)'?\s*(?P<how>.*)", re.IGNORECASE | re.DOTALL)
_OWN = "nspname NOT IN ('pg_catalog', 'information_schema')"
_SCHEMAS = f"SELECT nspname AS name FROM pg_namespace WHERE {_OWN} ORDER BY 1"
_TYPES = (f"SELECT nspname AS schema, format_type(t.oid, NULL) AS name FROM pg_type t JOIN pg_namespace n "
          f"ON n.oid = t.typnamespace WHERE {_OWN} AND typtype IN ('e', 'd') ORDER BY 1, 2")


def _describe(shell: Shell, name: str) -> None:
    if not name:
        _list(shell, "", ("table", "materialized view", "view"))
        return
    if not _NAME.fullmatch(name):
        raise ShellError(f"{name} is not the name of a table or view")
    shell.run(f"SHOW COLUMNS FROM {name}")
    indexes = shell.target.run(f"SHOW INDEXES FROM {name}")
    if indexes.rows:
        shell.output.show(indexes)
    made = shell.target.run(f"SHOW CREATE {name}")
    for row in made.rows:
        shell.output.say(f"{row[-1]};")


def _list(shell: Shell, pattern: str, kinds: tuple[str, ...]) -> None:
    """Show the tables and views of some kinds whose names match a pattern such as `order*`."""
    shown = [(str(row[0]), "table") for row in shell.target.run("SHOW TABLES").rows]
    shown += [(str(row[0]), "materialized view" if row[1] == "t" else "view")
              for row in shell.target.run("SHOW VIEWS").rows]  # fmt: skip
    found = sorted(one for one in shown if one[1] in kinds and fnmatchcase(one[0], pattern or "*"))
    shell.output.show(Answer(("name", "kind"), ("text", "text"), found))


def _listing(kind: str) -> Callable[[Shell, str], None]:
    return lambda shell, pattern: _list(shell, pattern, (kind,))


def _asking(statement: str) -> Callable[[Shell, str], None]:
    return lambda shell, _: shell.run(statement)


def _expanded(shell: Shell, word: str) -> None:
    shell.output.expanded = None if word == "auto" else _switched(word, bool(shell.output.expanded))
    shell.output.say(f"Expanded display is {word or ('on' if shell.output.expanded else 'off')}.")


def _timing(shell: Shell, word: str) -> None:
    shell.output.timing = _switched(word, shell.output.timing)
    shell.output.say(f"Timing is {'on' if shell.output.timing else 'off'}.")


def _switched(word: str, now: bool) -> bool:
    if word not in ("", "on", "off"):
        raise ShellError(f"{word!r}: write on or off")
    return not now if not word else word == "on"


def _again(shell: Shell, _: str) -> None:
    shell.run(_last(shell))


def _again_expanded(shell: Shell, _: str) -> None:
    before, shell.output.expanded = shell.output.expanded, True
    try:
        shell.run(_last(shell))
    finally:
        shell.output.expanded = before


def _watch(shell: Shell, words: str) -> None:
    try:
        seconds = float(words or 2)
    except ValueError:
        raise ShellError(f"{words!r}: write \\watch SECONDS") from None
    if not 0 < seconds < 1e6:
        raise ShellError(f"{words}: write a number of seconds above 0")
    while True:
        shell.output.say(f"{time.strftime('%H:%M:%S')}  every {seconds:g} s, until Ctrl-C")
        shell.run(_last(shell))
        time.sleep(seconds)


def _explain(shell: Shell, what: str) -> None:
    what = what or _last(shell)
    named = _NAME.fullmatch(what) is not None
    plan = shell.target.run(f"EXPLAIN MATERIALIZED VIEW {what}" if named else f"EXPLAIN {what}")
    shell.output.write("".join(f"{row[0]}\n" for row in plan.rows))


def _last(shell: Shell) -> str:
    if not shell.last:
        raise ShellError("there is no statement to repeat yet")
    return shell.last


def _to(shell: Shell, path: str) -> None:
    try:
        shell.output.to(path)
    except OSError as error:
        raise ShellError(f"{path}: {error.strerror}") from error


def _copy(shell: Shell, words: str) -> None:
    found = _COPY.fullmatch(words)
    if found is None:
        raise ShellError("write \\copy TABLE FROM FILE [WITH (FORMAT csv, HEADER)], or \\copy (QUERY) TO FILE ...")
    path = Path(found["file"]).expanduser()
    incoming = found["way"].lower() == "from"
    statement = f"COPY {found['what']} {'FROM STDIN' if incoming else 'TO STDOUT'} {found['how']}"
    try:
        if incoming:
            shell.output.say(shell.target.copy_in(statement, path.read_bytes()))
        else:
            data = shell.target.copy_out(statement)
            path.write_bytes(data)
            shell.output.say(f"{len(data):,} bytes to {path}")
    except OSError as error:
        raise ShellError(f"{path}: {error.strerror}") from error


def _help(shell: Shell, _: str) -> None:
    lines = [f"  {one.form:<28}{one.help}" for one in COMMANDS.values()]
    shell.output.write("\n".join(["A statement ends with a semicolon. Commands:", *lines, ""]))


def _functions(shell: Shell, pattern: str) -> None:
    found = sorted({one.name for one in documented() if fnmatchcase(one.name, pattern or "*")})
    shell.output.show(Answer(("name",), ("text",), [(name,) for name in found]))


def _quit(_: Shell, __: str) -> None:
    raise Quit


def _echo(shell: Shell, words: str) -> None:
    shell.output.write(f"{words}\n")


def _include(shell: Shell, path: str) -> None:
    shell.include(path)


def _follow(shell: Shell, view: str) -> None:
    if not _NAME.fullmatch(view):
        raise ShellError("write \\subscribe VIEW")
    shell.follow(view)


COMMANDS = {
    "?": Command(_help, "\\?", "this list"),
    "q": Command(_quit, "\\q", "leave; so does Ctrl-D"),
    "d": Command(_describe, "\\d [NAME]", "tables and views; the columns, indexes and text of one"),
    "dt": Command(_listing("table"), "\\dt [PATTERN]", "tables"),
    "dv": Command(_listing("view"), "\\dv [PATTERN]", "plain views"),
    "dm": Command(_listing("materialized view"), "\\dm [PATTERN]", "materialized views"),
    "di": Command(_asking("SHOW INDEXES"), "\\di", "indexes"),
    "ds": Command(_asking("SHOW SINKS"), "\\ds", "sinks"),
    "dn": Command(_asking(_SCHEMAS), "\\dn", "schemas"),
    "dT": Command(_asking(_TYPES), "\\dT", "enums and domains"),
    "df": Command(_functions, "\\df [PATTERN]", "functions"),
    "x": Command(_expanded, "\\x [on | off | auto]", "each row as lines of column and value"),
    "timing": Command(_timing, "\\timing [on | off]", "how long each statement takes"),
    "g": Command(_again, "\\g", "run the last statement again"),
    "gx": Command(_again_expanded, "\\gx", "the same, each row as lines"),
    "watch": Command(_watch, "\\watch [SECONDS]", "run the last statement again and again"),
    "explain": Command(_explain, "\\explain [VIEW | QUERY]", "the plan of a view, or of the last statement"),
    "subscribe": Command(_follow, "\\subscribe VIEW", "a view's contents, then its changes as they come"),
    "i": Command(_include, "\\i FILE", "run a script"),
    "o": Command(_to, "\\o [FILE]", "send answers to a file; without one, here"),
    "copy": Command(_copy, "\\copy TABLE FROM | TO FILE", "COPY from or to a file of this machine"),
    "echo": Command(_echo, "\\echo TEXT", "print a text"),
}
