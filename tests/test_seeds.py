"""Everyday runs try fewer seeds of a test, and leave out no test."""

from types import SimpleNamespace
from typing import Any

from pytest import MonkeyPatch

from tests.support import seeds


def _item(function: str, **params: Any) -> Any:
    return SimpleNamespace(nodeid=f"{function}{list(params.values())}", callspec=SimpleNamespace(params=params))


ITEMS = [*(_item("f", form=form, seed=seed) for seed in range(7) for form in "ab"), _item("g", seed=5),
         SimpleNamespace(nodeid="h"), _item("i", form="a")]  # fmt: skip


def test_an_everyday_run_tries_the_first_seeds_of_each_test(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "ONE_IN", 0)
    left = seeds.left_out(ITEMS)
    assert {item.nodeid for item in left} == {f"f['{form}', {seed}]" for seed in range(2, 7) for form in "ab"}
    assert [seeds.some(examples) for examples in (1, 5, 6, 30)] == [1, 1, 2, 6]
    assert seeds.some_views({"a": "", "b": "", "c": "", "d": ""}) == {"a": "", "d": ""}


def test_a_whole_run_tries_all_seeds(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "ONE_IN", 1)
    assert seeds.left_out(ITEMS) == [] and seeds.some(30) == 30
    assert seeds.some_views({"a": "", "b": ""}) == {"a": "", "b": ""}


def test_a_run_may_try_every_second_example(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "ONE_IN", 2)
    left = seeds.left_out(ITEMS)
    assert {item.nodeid for item in left} == {f"f['{form}', {seed}]" for seed in range(4, 7) for form in "ab"}
    assert seeds.some(30) == 15 and seeds.some_views({"a": "", "b": "", "c": ""}) == {"a": "", "c": ""}


def test_only_a_run_that_asks_for_new_examples_begins_at_another_seed(monkeypatch: MonkeyPatch) -> None:
    monkeypatch.delenv("HALFJOIN_SEED", raising=False)
    for new in (False, True):
        monkeypatch.setattr(seeds, "_NEW", new)
        assert (len({seeds.first_seed() for _ in range(9)}) > 1) == new
    monkeypatch.setenv("HALFJOIN_SEED", "7")
    assert seeds.first_seed() == 7
