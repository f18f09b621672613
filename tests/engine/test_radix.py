"""Sorts by words: the same order as NumPy's, whatever the bits of the words are; and no key is compared twice."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import sorting
from halfjoin.engine.updates.codes import distinct
from halfjoin.engine.updates.radix import Word, argsort, of_integers
from tests.support.kernels import both_ways

__all__ = ["both_ways"]


@pytest.mark.parametrize("seed", range(8))
def test_rows_are_in_the_order_of_their_words(seed: int) -> None:
    random = np.random.default_rng(seed)
    length = int(random.choice([5, 4096, 4097, 10_000]))
    words = []
    for bits in random.choice([0, 1, 7, 16, 40, 51, 52, 63, 64], random.integers(0, 5)).tolist():
        numbers = random.integers(0, 2**64, length, np.uint64) >> np.uint64(64 - bits) if bits else np.zeros(length)
        repeated = random.random(length) < random.choice([0.1, 0.9])
        words.append(Word(np.where(repeated, numbers[0], numbers).astype(np.uint64), bits))
    before = [word.numbers.copy() for word in words]
    found = argsort(words, length)
    expected = np.lexsort([word.numbers for word in words[::-1]]) if words else np.arange(length)
    assert found.tolist() == expected.tolist()  # equal rows stay in their order
    assert all((word.numbers == numbers).all() for word, numbers in zip(words, before, strict=True))


def test_integers_of_all_bits_are_in_order() -> None:
    values = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 5_000)
    assert (values[argsort([of_integers(values)], len(values))] == np.sort(values)).all()


def test_a_sort_key_is_compared_once() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a bigint, b bigint)")
    engine.apply({"t": pa.table({"a": np.arange(1_000) % 10, "b": np.arange(1_000)})})
    with patch.object(sorting, "ordered_words", wraps=sorting.ordered_words) as asked:
        engine.query("SELECT a, b, lag(b) OVER (ORDER BY a DESC) AS c FROM t")
    assert [call.args[0].to_pylist()[:2] for call in asked.call_args_list] == [[0, 1], [9, 19]]  # a, then b of ties


@pytest.mark.parametrize("least", [0, -(2**63), 2**63 - 40_000])
def test_distinct_values_ascend(least: int) -> None:
    random = np.random.default_rng(2)
    for width in (1, 9_000, 39_999, 2**40 if not least else 39_999):
        values = random.integers(0, width, 5_000) + np.int64(least)
        assert distinct(values).tolist() == sorted({*values.tolist()})
