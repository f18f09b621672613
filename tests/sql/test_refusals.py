"""Refusals: each says what to write instead, unless PostgreSQL refuses the text as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pages import ROOT

FILES = sorted((ROOT / "sql" / "bind").glob("*.py"))


def refusals(tree: ast.AST) -> Iterator[tuple[ast.Call, bool]]:
    """The calls of `refuse` and `UnsupportedSQL` in a file, and whether each names a remedy or an error of the text."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = {keyword.arg for keyword in node.keywords}
        if name == "refuse" and isinstance(node.func, ast.Attribute):
            several = any(isinstance(arg, ast.Starred) for arg in node.args)
            yield node, several or len(node.args) > 2 or "instead" in given
        if name == "UnsupportedSQL":
            yield node, bool(given & {"remedy", "wrong", "code"})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_refusal_says_what_to_write(file: Path) -> None:
    found = refusals(ast.parse(file.read_text()))
    assert [ast.unparse(call) for call, helps in found if not helps] == []


def test_a_refusal_without_a_remedy_is_found() -> None:
    ((_, helps),) = refusals(ast.parse("context.refuse(node, 'no')"))
    assert not helps
