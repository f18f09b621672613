"""Each letter, mark, digit and sign has PostgreSQL's case and classes: `upper`, `lower`, `initcap`, `[[:alpha:]]`."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

CLASSES = ("alpha", "alnum", "upper", "lower", "punct", "space", "digit")
# Without the long rows of Chinese, Korean, Tangut and Egyptian signs, which are all alike.
RANGES = ((1, 0x3400), (0x9FF0, 0xAC10), (0xD790, 0xD800), (0xE000, 0xE010), (0xF8F0, 0x12000), (0x12F90, 0x13000),
          (0x16800, 0x17010), (0x1AFF0, 0x20010), (0xE0000, 0xE0200))  # fmt: skip


@pytest.fixture(scope="module")
def utf8(postgres_server: Any) -> Iterator[Any]:
    """A connection to a database that knows the letters of Unicode."""
    with postgres_server("LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' TEMPLATE template0") as connection:
        yield connection


@pytest.fixture(scope="module")
def letters(utf8: Any) -> list[str]:
    """Those that both know; newer ones come with each version of Unicode."""
    known = [chr(code) for low, high in RANGES for code in range(low, high)
             if unicodedata.category(chr(code)) not in ("Cn", "Cs")]  # fmt: skip
    found = utf8.execute("SELECT c FROM unnest(%s::text[]) AS c WHERE c ~ '[[:print:][:cntrl:]]'", [known])
    return [row[0] for row in found.fetchall()]


def test_all_letters_have_postgresqls_case(letters: list[str], utf8: Any) -> None:
    _same(letters, utf8, "upper(c), lower(c), initcap(c || c || '-' || c), c || 'x' ILIKE upper(c) || 'X'")


def test_all_characters_are_in_postgresqls_classes(letters: list[str], utf8: Any) -> None:
    _same(letters, utf8, ", ".join(f"c ~ '[[:{name}:]]'" for name in CLASSES) + r", c ~ '\w', c ~ '^\W', c ~ '[\s\d]'")


def test_newer_letters_than_the_c_librarys_keep_their_case() -> None:
    newer = {"\u0264": "\ua7cb", "\u019b": "\ua7dc", "\u1c8a": "\u1c89"}
    for small, capital in newer.items():
        found = hj.Engine().query("SELECT upper(s) AS u, lower(c) AS l FROM (VALUES ($1, $2)) AS v (s, c)",
                                  [f"é{small}ß", f"É{capital}"])  # fmt: skip
        assert found.to_pylist() == [{"u": f"É{small}ß", "l": f"é{capital}"}]


def _same(letters: list[str], utf8: Any, columns: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (c text)")
    engine.apply({"t": [{"c": letter} for letter in letters]})
    expected = {row[0]: row for row in utf8.execute(f"SELECT c, {columns} FROM unnest(%s::text[]) AS c", [letters])}
    table = engine.query(f"SELECT c, {columns} FROM t")
    found = {row[0]: row for row in zip(*(column.to_pylist() for column in table.columns), strict=True)}
    wrong = [f"U+{ord(letter):04X}: {found[letter][1:]}, but PostgreSQL: {expected[letter][1:]}" for letter in letters
             if found[letter] != expected[letter]]  # fmt: skip
    assert not wrong, f"{len(wrong)} of {len(letters)}\n" + "\n".join(wrong[:20])
