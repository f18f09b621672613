"""The shell ends a statement where PostgreSQL's psql does: not in quotes, comments or parentheses."""

from __future__ import annotations

import pytest

from halfjoin.shell.script import steps
from halfjoin.shell.splitting import bare, split


@pytest.mark.parametrize(("text", "statements"), [
    ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
    ("SELECT 'a;''b;';", ["SELECT 'a;''b;'"]),
    (r"SELECT E'a\';';", [r"SELECT E'a\';'"]),
    (r"SELECT 'a\'; SELECT 2;", [r"SELECT 'a\'", "SELECT 2"]),
    ('SELECT 1 AS "a;b";', ['SELECT 1 AS "a;b"']),
    ("SELECT $$a;b$$; SELECT $x$ ; $$ ; $x$;", ["SELECT $$a;b$$", "SELECT $x$ ; $$ ; $x$"]),
    ("EXECUTE p($1); SELECT a$b$c;", ["EXECUTE p($1)", "SELECT a$b$c"]),
    ("SELECT /* ; /* ; */ ; */ 1; -- ;\nSELECT 2;", ["SELECT /* ; /* ; */ ; */ 1", "-- ;\nSELECT 2"]),
    ("SELECT (1; SELECT 2);", ["SELECT (1; SELECT 2)"]),
    (";;; -- nothing\n;", []),
    ("SELECT 1 \\gx\nSELECT 2;", ["SELECT 1 \\gx", "SELECT 2"]),
])  # fmt: skip
def test_statements_end_at_semicolons_outside_of_quotes(text: str, statements: list[str]) -> None:
    found = split(text)
    assert list(found.statements) == statements and found.complete


@pytest.mark.parametrize(("text", "opened"), [
    ("SELECT 'a;", "'"), ('SELECT "a;', '"'), ("SELECT $q$ ; $$;", "$q$"), ("SELECT /* ;", "/*"), ("SELECT (1;", "("),
    (r"SELECT E'\';", "'"), ("SELECT 1", ""),
])  # fmt: skip
def test_what_is_open_ends_no_statement(text: str, opened: str) -> None:
    found = split(text)
    assert not found.statements and found.open == opened and not found.complete


def test_comments_say_nothing() -> None:
    assert bare("-- a\n /* b */ SELECT 'x -- y' /* c */ ") == "SELECT 'x -- y'"


def test_rows_follow_copy_up_to_a_dot() -> None:
    found = list(steps("COPY t FROM STDIN;\n1\ta;b\n\\N\t'\n\\.\nSELECT 1;\n\\x on\nSELECT 2"))
    assert [(step.text, step.rows) for step in found] == [
        ("COPY t FROM STDIN", "1\ta;b\n\\N\t'\n"), ("SELECT 1", None), ("\\x on", None), ("SELECT 2", None)]


def test_a_script_may_begin_with_comments_and_commands() -> None:
    assert [step.text for step in steps("-- a; b\n\\d\n  -- c\nSELECT 1")] == ["\\d", "SELECT 1"]
