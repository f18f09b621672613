"""Completes names while a user types: tables, views, columns with their types, functions, words, commands, files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from halfjoin.shell.commands import COMMANDS
from halfjoin.shell.targets import ShellError, Target
from halfjoin.sql.functions.docs import documented

# What statements are made of.
_TEXT = """
    ADD ALL ALTER AND ANY AS ASC BEGIN BETWEEN BY CASE CAST CHECK COLUMN COMMIT CONFLICT CONSTRAINT COPY CREATE
    CROSS DEFAULT DELETE DESC DISTINCT DO DOMAIN DROP ELSE END EXCEPT EXECUTE EXISTS EXPLAIN FALSE FETCH FILTER
    FOREIGN FROM FULL GENERATED GROUP GROUPING HAVING HISTORY IF ILIKE IN INDEX INNER INSERT INTERSECT INTERVAL
    INTO IS JOIN KEY LATERAL LEFT LIKE LIMIT MATERIALIZED MERGE MUTUALLY NATURAL NOT NOTHING NULL NULLS OF
    OFFSET ON OR ORDER OUTER OVER PARTITION PLAN PREPARE PRIMARY RECURSIVE REFERENCES REFRESH RELEASE RENAME
    REPLACE RETAIN RETURNING RIGHT ROLLBACK ROLLUP ROW ROWS SAVEPOINT SCHEMA SELECT SEQUENCE SET SETS SHOW SINK
    SOURCE STDIN STDOUT SUBSCRIBE TABLE THEN TIES TIME TO TRUE TRUNCATE TYPE UNION UNIQUE UPDATE USING VALUES VIEW
    WHEN WHERE WINDOW WITH WITHIN
"""
WORDS = tuple(_TEXT.split())
_WORD = re.compile(r'[\w."]*\Z')
_DEFINES = re.compile(r"\s*(create|drop|alter|begin|commit|rollback)\b", re.IGNORECASE)


class Names(Completer):
    """Completes what can stand at the cursor. It asks the target for names when they may have changed."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: list[tuple[str, str]] | None = None
        self._functions = sorted({one.name for one in documented() if one.name.isidentifier()})

    def ran(self, statement: str) -> None:
        """A statement has run: names may have changed."""
        if _DEFINES.match(statement):
            self._known = None

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """What begins with the word before the cursor."""
        text = document.text_before_cursor
        if text.startswith("\\"):
            yield from self._commands(text, event)
            return
        word = _WORD.search(text)
        assert word is not None
        typed = word[0].rpartition(".")[2].lower()
        if not typed and not word[0].endswith("."):
            return
        yield from self._named(typed, word[0].rpartition(".")[0].lower())

    def _named(self, typed: str, owner: str) -> Iterator[Completion]:
        seen = set()
        for name, meaning in self._names():
            if name.lower().startswith(typed) and (name, meaning) not in seen:
                seen.add((name, meaning))
                yield Completion(name, -len(typed), display_meta=meaning)
        if owner:
            return
        for name in self._functions:
            if name.startswith(typed):
                yield Completion(name, -len(typed), display_meta="function")
        for word in WORDS:
            if word.lower().startswith(typed):
                yield Completion(word, -len(typed))

    def _commands(self, text: str, event: CompleteEvent) -> Iterator[Completion]:
        name, space, rest = text[1:].partition(" ")
        if not space:
            for known, command in COMMANDS.items():
                if known.startswith(name):
                    yield Completion(known, -len(name), display_meta=command.help)
        elif name in ("i", "o"):
            yield from PathCompleter(expanduser=True).get_completions(Document(rest, len(rest)), event)
        else:
            yield from self._named(rest.rpartition(" ")[2].lower(), "a name")

    def _names(self) -> list[tuple[str, str]]:
        """The names that exist, each with what it is: `table`, or a column's type and owner."""
        if self._known is None:
            try:
                self._known = self._ask()
            except ShellError:  # a failed transaction answers nothing
                return []
        return self._known

    def _ask(self) -> list[tuple[str, str]]:
        tables = [(str(row[0]), "table") for row in self._target.run("SHOW TABLES").rows]
        views = [(str(row[0]), "materialized view" if row[1] == "t" else "view")
                 for row in self._target.run("SHOW VIEWS").rows]  # fmt: skip
        columns = []
        for name, _ in [*tables, *views]:
            shown = self._target.run(f'SHOW COLUMNS FROM "{name}"').rows
            columns += [(str(row[0]), f"{row[1]}, {name}") for row in shown]
        return [*tables, *views, *columns]
