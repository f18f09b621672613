"""The position in a folder has the names of all files that were read, and costs what the last one adds."""

from __future__ import annotations

import base64

import pytest

import halfjoin as hj
from halfjoin.engine.feeds.files import position
from halfjoin.engine.feeds.files.position import Names, Position

FILES = 2000


def test_a_name_costs_what_it_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    encode, sizes = base64.b85encode, list[int]()

    def counting(data: bytes) -> bytes:
        sizes.append(len(data))
        return encode(data)

    monkeypatch.setattr(position.base64, "b85encode", counting)
    names, done = Names(), dict[str, int]()
    for number in range(FILES):
        done = {**done, f'2024/"é"-{number:06}-{number * 7919 % 9973}.csv': number * 2654435761 % (1 << 32)}
        text = Position(done).text(names)
        if number % 100 < 2:
            assert Position.read(text) == Position(done)
            assert Position.read(Position(done, "x", 1, 2, 3).text(names)) == Position(done, "x", 1, 2, 3)
    assert sum(sizes) < FILES * len(text) / 10  # for each file all names would be half of that product


def test_a_position_without_files() -> None:
    assert Position.read(Position().text(Names())) == Position()
    with pytest.raises(hj.HalfjoinError, match="is not a position in a folder of files"):
        Position.read('{"done": "x"}')
