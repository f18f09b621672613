"""Groups and their sums by a kernel: those of plain Python, for keys of all types in several pieces."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.kernels import native, summing
from halfjoin.engine.reduce import at_once
from halfjoin.engine.updates import codes
from tests.oracle.rows import bag

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")

_TEXTS = ["", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh", "abcdefghi", "abcdefghijklmnopq",
          "abcdefghijklmnopr", "abcdefghIjklmnopq", "äöü", "\0", "\0\0", "a\0", "x" * 300, "x" * 299 + "y"]  # fmt: skip
_MOST = (1 << 63) - 1


def _key(kind: str, random: np.random.Generator, length: int) -> pa.Array:
    numbers = random.integers(-4, 5, length)
    gone = random.random(length) < random.choice([0.0, 0.3])
    match kind:
        case "text":
            values: list[Any] = [_TEXTS[number] for number in random.integers(0, len(_TEXTS), length)]
            made = pa.array(values, pa.string(), mask=gone)
        case "bool":
            made = pa.array(numbers > 0, mask=gone)
        case "double":
            odd = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, 5e-324]
            made = pa.array(np.array(odd)[random.integers(0, len(odd), length)], mask=gone)
        case "numeric":
            made = pa.array([Decimal(int(one)) * 10**25 for one in numbers], pa.decimal128(38, 2), mask=gone)
        case "date":
            made = pa.array(numbers.astype(np.int32), mask=gone).cast(pa.date32())
        case "bytes":
            made = pa.array([_TEXTS[number].encode() for number in random.integers(0, len(_TEXTS), length)],
                            pa.large_binary(), mask=gone)  # fmt: skip
        case "whole":
            made = pa.array(random.choice([-_MOST - 1, _MOST, 0, 255, -1], length), mask=gone)
        case _:
            made = pa.array(numbers, pa.int16(), mask=gone)
    cut = int(random.integers(0, 3))
    return pa.concat_arrays([*[made[:1]] * cut, made]).slice(cut)  # some begin in the middle of their buffers


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    return value


_KINDS = ["text", "bool", "double", "numeric", "date", "bytes", "whole", "small"]
_PARTS: list[tuple[int, tuple[int, ...]]] = [(0, ()), (0, (0,)), (1, (0,)), (1, (1,)), (1, (2, 0)), (2, (0, 1)),
                                             (2, (2, 2))]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_groups_and_sums_are_those_of_plain_python(seed: int) -> None:
    random = np.random.default_rng(seed)
    kinds = random.choice(_KINDS, random.integers(1, 4)).tolist()
    length = int(random.choice([1, 50, 3000]))
    ends = sorted({0, length, *random.integers(0, length + 1, random.integers(0, 3)).tolist()})
    pieces, expected, firsts = [], dict[Any, list[int]](), dict[Any, int]()
    for start, end in pairwise(ends):
        size = end - start
        keys = [_key(kind, random, size) for kind in kinds]
        columns = [pa.array(random.integers(-9, 9, size), pa.int32(), mask=random.random(size) < 0.2),
                   pa.array(random.choice([-_MOST - 1, _MOST, 3], size)),
                   pa.array([Decimal(int(one)) * 10**15 for one in random.integers(-9, 9, size)], pa.decimal128(30, 2),
                            mask=random.random(size) < 0.2)]  # fmt: skip
        diff = np.broadcast_to(np.int64(random.choice([1, -2])), size) if random.random() < 0.5 else (
            random.integers(-2, 3, size))  # fmt: skip
        pieces.append((keys, columns, diff))
        plain = [columns[0].to_pylist(), columns[1].to_pylist(),
                 [None if one is None else int(one * 100) for one in columns[2].to_pylist()]]  # fmt: skip
        for row, key in enumerate(zip(*(one.to_pylist() for one in keys), strict=True)):
            name = tuple(map(_plain, key))
            firsts.setdefault(name, start + row)
            sums = expected.setdefault(name, [0] * len(_PARTS))
            for number, (factors, at) in enumerate(_PARTS):
                given = [plain[one][row] for one in at]
                if None not in given:
                    sums[number] += int(np.prod(np.array(given[:factors], object), initial=1)) * int(diff[row])
    made = summing.grouped(pieces, _PARTS, numbered=True)
    assert made is not None
    assert made.numbers is not None
    assert made.firsts.tolist() == [*firsts.values()]
    assert len(made.numbers) == length
    sums = [one.tolist() if not isinstance(one, tuple) else
            [int(low) + (int(high) << 64) for low, high in zip(*one, strict=True)] for one in made.sums]  # fmt: skip
    assert [list(one) for one in zip(*sums, strict=True)] == [*expected.values()]
    names = [*firsts]
    at = 0
    for keys, _, _ in pieces:
        for key in zip(*(one.to_pylist() for one in keys), strict=True):
            assert names[made.numbers[at]] == tuple(map(_plain, key))
            at += 1


def test_a_sum_that_128_bits_do_not_hold_is_left_to_others() -> None:
    key, most = pa.array([1, 1, 1]), pa.array([Decimal(10**38 - 1)] * 3, pa.decimal128(38, 0))
    one = np.ones(3, np.int64)
    assert summing.grouped([([key], [most], one)], [(1, (0,))], numbered=False) is None
    assert summing.grouped([([key], [most], one)], [(2, (0, 0))], numbered=False) is None
    assert summing.grouped([([key], [most], one * 4)], [(1, (0,))], numbered=False) is None
    assert summing.grouped([([key], [most.slice(0, 1)], one)], [(1, (0,))], numbered=False) is None  # of other lengths
    assert summing.grouped([([key], [], one), ([key.cast("string")], [], one)], [], numbered=False) is None
    assert summing.grouped([], [], numbered=False) is None


def test_many_groups_of_long_texts_in_several_pieces() -> None:
    texts = [f"a long text with number {number} in it" for number in range(40_000)]
    pieces = [pa.array(texts), pa.array(texts[::-1]), pa.array(texts[5:])]
    made = summing.grouped([([one], [], np.ones(len(one), np.int64)) for one in pieces], [(0, ())], numbered=False)
    assert made is not None
    assert made.firsts.tolist() == [*range(40_000)]
    assert isinstance(made.sums[0], np.ndarray)
    assert made.sums[0].tolist() == [2] * 5 + [3] * 39_995


def _engine() -> hj.Engine:
    random, engine = np.random.default_rng(1), hj.Engine(clock="own", retain=100)
    engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, a text, k integer, n numeric(30,4), f float, d date)")

    def rows(ids: Any) -> pa.Table:
        size = len(ids)
        return pa.table({"id": ids, "a": pa.array([f"the text {one}" for one in random.integers(0, 3_000, size)],
                                                  mask=random.random(size) < 0.1),
                         "k": pa.array(random.integers(-3, 4, size), pa.int32(), mask=random.random(size) < 0.1),
                         "n": pa.array([Decimal(int(one)) * 10**12 for one in random.integers(-10**9, 10**9, size)],
                                       pa.decimal128(30, 4)),
                         "f": pa.array(random.choice([0.0, -0.0, 1.25, -7.5], size)),
                         "d": pa.array(random.integers(0, 9, size).astype(np.int32)).cast(pa.date32())})  # fmt: skip

    engine.apply({"t": rows(np.arange(9_000))}, time=1)
    engine.apply({"t": hj.upserts(rows(np.arange(0, 9_000, 7)))}, time=2)
    engine.apply({"t": hj.deletes(pa.table({"id": np.arange(3, 9_000, 50)}))}, time=3)
    engine.apply({"t": rows(np.arange(9_000, 9_100))}, time=4)
    return engine


_QUERIES = [
    "SELECT count(DISTINCT a) AS a, count(DISTINCT k) AS k FROM t",
    "SELECT k, count(DISTINCT a) AS n FROM t GROUP BY k",
    "SELECT a, k, count(*) AS n, count(a) AS m, sum(n) AS s, sum(k) AS t, avg(k) AS g FROM t GROUP BY a, k",
    "SELECT f, d, count(*) AS n, sum(f) AS s, stddev(f) AS t, sum(n) AS u FROM t GROUP BY f, d",
    "SELECT n, count(*) AS c, corr(f, k) AS r FROM t GROUP BY n",
    "SELECT k, min(n) AS n, max(a) AS a, count(DISTINCT a) AS c FROM t GROUP BY k",
    "SELECT DISTINCT a, f FROM t",
]


def test_queries_over_a_changed_table_are_as_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "FROM", 1)
    engine = _engine()
    for sql in _QUERIES:
        for time in (1, 2, 3, 4):
            with native.used(False):
                expected = bag(engine.query(sql, as_of=time))
            assert bag(engine.query(sql, as_of=time)) == expected, (sql, time)


@pytest.mark.skipif(not native.on, reason="the native kernels are off")
@pytest.mark.parametrize("sql", _QUERIES[:2])
def test_texts_are_hashed_once(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, keys = _engine(), []
    grouped = summing.grouped

    def once(pieces: Any, *args: Any, **more: Any) -> Any:
        keys.extend(column for one, _, _ in pieces for column in one if pa.types.is_string(column.type))
        return grouped(pieces, *args, **more)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("hashed otherwise")

    monkeypatch.setattr(summing, "grouped", once)
    monkeypatch.setattr(pa.TableGroupBy, "aggregate", never)
    monkeypatch.setattr(codes, "factorize", never)
    assert engine.query(sql).num_rows
    assert 8_000 < sum(map(len, keys)) < 16_000  # perhaps also what has gone
