"""The kernels that look at values one by one: their ends, whether SQL has them, and arithmetic of decimals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from halfjoin.engine.kernels import computing, native, summing
from halfjoin.engine.scalar import compile, kept
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.sound import DAYS, MICROS, Unsound, check_sound
from halfjoin.engine.scalar.wide import Wide
from halfjoin.engine.updates.updates import both_ways, constant, ends, some_below_zero
from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal
from halfjoin.sql.types import Kind, SqlType
from tests.support.any_updates import SEEDS, both

pytestmark = pytest.mark.skipif(not native.BUILT, reason="the native kernels are not built")


@given(SEEDS)
def test_ends_are_the_least_and_the_greatest(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(-(1 << 62), 1 << 62, int(random.integers(1, 40)))
    for one in (values, values[::2], values[::-1], constant(int(values[0]), 5), values.astype(object)):
        fast, slow = both(lambda one=one: (ends(one), both_ways(one), some_below_zero(one)))
        assert fast == slow == ((min(one), max(one)), min(one) < 0 < max(one), min(one) < 0)


def test_nothing_has_no_ends() -> None:
    none = np.zeros(0, np.int64)
    assert computing.bounds(none) is None and not both_ways(none) and not some_below_zero(none)


@given(SEEDS)
def test_kept_integers_are_the_canonical_bytes(seed: int) -> None:
    random = np.random.default_rng(seed)
    shifts = random.integers(0, 63, int(random.integers(17, 60)))
    values = random.integers(-(1 << 62), 1 << 62, len(shifts)) >> shifts
    values = np.where(random.random(len(shifts)) < 0.3, np.int64(1) << shifts, values)
    values[:3] = 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max
    fast, slow = both(lambda: kept.kept(Wide.of(values)))
    assert fast.equals(slow)
    assert fast.to_pylist() == [kept.bytes_of(value) for value in values.tolist()]
    found = pa.array([None if random.random() < 0.2 else one for one in fast.to_pylist()], pa.binary()).slice(1)
    ours, theirs = both(lambda: kept.read(found)[0].narrow()[0].tolist())
    assert ours == theirs == [kept.exact(one or b"") for one in found.to_pylist()]


def test_sums_past_64_bits_are_read_without_the_kernel() -> None:
    sums = pa.array([kept.bytes_of(1 << 80)] * 20, pa.binary())
    assert summing.read_kept(sums) is None
    assert summing.read_kept(pa.array([b"\xff" + bytes(24)] * 20, pa.binary())) is None


TEXTS = pa.array(["", "abc", "aäb", "a\0b", None, "𝄞", "\x7f"])
MOMENTS = [DAYS[0] - 1, DAYS[0], 0, None, DAYS[1], DAYS[1] + 1]


@pytest.mark.parametrize(
    ("array", "between"),
    [
        (TEXTS, (0, 0)),
        (pa.array(MOMENTS, pa.int32()).cast(pa.date32()), DAYS),
        (pa.array([MICROS[0] - 1, MICROS[0], None, MICROS[1], MICROS[1] + 1], pa.timestamp("us")), MICROS),
    ],
    ids=["texts", "dates", "timestamps"],
)
def test_what_a_kernel_calls_sound_is_sound(array: Any, between: tuple[int, int]) -> None:
    """All slices of arrays with sound and other values. It is sure of each slice of ASCII and of moments in range."""
    sure = 0
    for start in range(len(array) + 1):
        for stop in range(start, len(array) + 1):
            part = array.slice(start, stop - start)
            plainly = computing.sound([part], [between])
            try:
                check_sound(part)
            except Unsound:
                assert not plainly, part
                continue
            texts = [value for value in part.to_pylist() if value is not None] if pa.types.is_string(part.type) else []
            assert plainly or not all(map(str.isascii, texts)), part
            sure += plainly
    assert sure > len(array)


def test_one_column_that_is_not_sound_is_enough() -> None:
    good, bad = pa.array(["a"]), pa.array(["a\0"])
    assert computing.sound([good, good], [(0, 0)] * 2) and not computing.sound([good, bad], [(0, 0)] * 2)
    assert not computing.sound([pa.array([[1]])], [(0, 0)])  # of a type that it does not know


@given(SEEDS)
def test_arithmetic_of_decimals_is_arrows(seed: int) -> None:
    """Any scales, NULLs, slices, constants on either side, the greatest numbers."""
    random = np.random.default_rng(seed)
    operator = "+-*"[random.integers(3)]
    types = [_numeric(random) for _ in range(2)]
    scale = sum(one.scale or 0 for one in types) if operator == "*" else max(one.scale or 0 for one in types)
    length = int(random.integers(1, 20))
    arrays = [_values(random, one, length) for one in types]
    names = ["a", "b"]
    operands: list[Expr] = [Column(name, one) for name, one in zip(names, types, strict=True)]
    if seed % 3:
        operands[seed % 2] = Literal(arrays[seed % 2][0].as_py(), types[seed % 2])
    expr = Call(operator, tuple(operands), SqlType(Kind.NUMERIC, 38, scale))
    scalar = compile(expr)
    fast, slow = both(lambda: scalar.evaluate(dict(zip(names, arrays, strict=True)), length).values)
    assert fast.type == slow.type == arrow_type(expr.type) and fast.equals(slow)
    fast.validate(full=True)


@given(SEEDS)
def test_quotients_of_decimals_are_those_of_the_other_way(seed: int) -> None:
    random = np.random.default_rng(seed)
    types = [_numeric(random) for _ in range(2)]
    length = int(random.integers(1, 20))
    arrays = [_values(random, one, length) for one in types]
    if seed % 3 == 0:  # values of any length, and zeros
        places = [10 ** int(random.integers(0, 20)) for _ in range(length)]
        arrays = [pa.array([value if value is None else value / place // unit * unit
                            for value, place in zip(one.to_pylist(), places, strict=True)], one.type)
                  for one in arrays for unit in [Decimal(1).scaleb(-one.type.scale)]]  # fmt: skip
    operands: list[Expr] = [Column(name, one) for name, one in zip("ab", types, strict=True)]
    if seed % 4:
        operands[seed % 2] = Literal(arrays[seed % 2][-1].as_py(), types[seed % 2])
    scale = max(int(random.integers(0, 24)), *(one.scale or 0 for one in types))
    expr = Call("/", tuple(operands), SqlType(Kind.NUMERIC, int(random.integers(scale + 1, 50)), scale))
    fast, slow = both(lambda: _values_or_error(compile(expr), dict(zip("ab", arrays, strict=True)), length))
    assert fast == slow


def _values_or_error(scalar: Any, columns: dict[str, Any], length: int) -> object:
    found = scalar.evaluate(columns, length)
    failures = found.failures
    return found.values.to_pylist() if failures is None else (list(failures.rows), list(failures.messages))


def _numeric(random: np.random.Generator) -> SqlType:
    precision = int(random.integers(1, 19))
    return SqlType(Kind.NUMERIC, precision, int(random.integers(0, precision + 1)))


def _values(random: np.random.Generator, type: SqlType, length: int) -> Any:
    most = 10 ** (type.precision or 0)
    numbers = [None if random.random() < 0.2 else int(random.integers(-most + 1, most)) for _ in range(length + 1)]
    numbers[0] = most - 1
    unit = Decimal(1).scaleb(-(type.scale or 0))
    return pa.array([None if n is None else n * unit for n in numbers], arrow_type(type)).slice(1)


@given(SEEDS)
def test_quotients_of_any_size_are_those_of_the_other_way(seed: int) -> None:
    """Around powers of two and ten, where a quotient is a half or has more than 64 bits."""
    random = np.random.default_rng(seed)

    def some() -> int:
        base = int(random.choice([2, 10, 10_000]))
        power = base ** int(random.integers(0, 1 + int(62 / np.log2(base))))
        number = power * int(random.choice([1, 1, 3, 5, 7, 9_999])) + int(random.integers(-1, 2))
        return min(number, 10**18 - 1) * int(random.choice([-1, 1]))

    scales = [int(one) for one in random.integers(0, 19, 2)]
    types = [SqlType(Kind.NUMERIC, 18, scale) for scale in scales]
    length = int(random.integers(1, 40))
    arrays = [pa.array([Decimal(some() or 1).scaleb(-type.scale) for _ in range(length)], arrow_type(type))
              for type in types]  # fmt: skip
    operands: list[Expr] = [Column(name, one) for name, one in zip("ab", types, strict=True)]
    if seed % 3 == 0:
        operands[seed % 2] = Literal(arrays[seed % 2][0].as_py(), types[seed % 2])
    scale = max(int(random.integers(0, 24)), *scales)
    expr = Call("/", tuple(operands), SqlType(Kind.NUMERIC, int(random.choice([38, 60])), scale))
    fast, slow = both(lambda: _values_or_error(compile(expr), dict(zip("ab", arrays, strict=True)), length))
    assert fast == slow


@given(SEEDS)
def test_integers_become_the_decimals_of_the_other_way(seed: int) -> None:
    random = np.random.default_rng(seed)
    kind = [Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT][seed % 3]
    given_type = arrow_type(SqlType(kind))
    most, length = 2 ** (given_type.bit_width - 1), int(random.integers(0, 30))
    numbers = random.choice([-most, most - 1, 0, -1, 9, 100, 12_345], length)
    array = pa.array(numbers, given_type, mask=random.random(length) < random.choice([0.0, 0.3])).slice(seed % 2)
    precision = int(random.integers(1, 50))
    target = SqlType(Kind.NUMERIC, precision, int(random.integers(0, precision + 1)))
    scalar = compile(Cast(Column("a", SqlType(kind)), target))
    fast, slow = both(lambda: _values_or_error(scalar, {"a": array}, len(array)))
    assert fast == slow
