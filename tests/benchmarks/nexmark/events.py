"""Nexmark's events: people, the auctions that they open and the bids that they make, in the proportions 1 to 3 to 46.

The distributions are those of the Apache Beam generator: half of the bids go to a hot auction, three quarters come
from a hot bidder, prices spread evenly over six orders of magnitude, and 10,000 events happen in a second.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

SCHEMA = {
    "person": "id bigint PRIMARY KEY, name text, email text, city text, state text, datetime timestamp, extra text",
    "auction": "id bigint PRIMARY KEY, item text, initial_bid bigint, reserve bigint, datetime timestamp, "
               "expires timestamp, seller bigint, category bigint, extra text",
    "bid": "auction bigint, bidder bigint, price bigint, channel text, url text, datetime timestamp, extra text",
    "side": "key bigint PRIMARY KEY, value text",
}  # fmt: skip
SIDE_ROWS = 10_000
_OF, _PEOPLE, _AUCTIONS = 50, 1, 3  # events of an epoch; the rest are bids
_FIRST, _HOT, _ACTIVE_PEOPLE, _OPEN_AUCTIONS = 1_000, 100, 1_000, 100
_MICROSECONDS = 100  # between events
_START = 1_700_000_000_000_000  # microseconds since 1970
_STATES, _CITIES = ["az", "ca", "id", "or", "wa", "wy"], ["phoenix", "los angeles", "boise", "portland", "kent"]
_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]

Ints = NDArray[np.int64]


def side() -> pa.Table:
    """The bounded table of q13."""
    keys = np.arange(SIDE_ROWS)
    return pa.table({"key": keys, "value": pa.array(keys).cast(pa.string())})


def events(start: int, count: int, random: np.random.Generator) -> dict[str, pa.Table]:
    """The events with the numbers from `start` on, as rows of their tables."""
    numbers = np.arange(start, start + count)
    epoch, place = np.divmod(numbers, _OF)
    people, auctions = place < _PEOPLE, (place >= _PEOPLE) & (place < _PEOPLE + _AUCTIONS)
    return {
        "person": _people(numbers[people], epoch[people], random),
        "auction": _auctions(numbers[auctions], epoch[auctions], place[auctions], random),
        "bid": _bids(numbers[~(people | auctions)], epoch[~(people | auctions)], random),
    }


def _people(numbers: Ints, epoch: Ints, random: np.random.Generator) -> pa.Table:
    ids = _FIRST + epoch
    text = pa.array(ids).cast(pa.string())
    return pa.table({
        "id": ids, "name": pc.binary_join_element_wise("person", text, " "),
        "email": pc.binary_join_element_wise(text, "example.org", "@"), "city": _pick(_CITIES, len(ids), random),
        "state": _pick(_STATES, len(ids), random), "datetime": _moments(numbers), "extra": _extra(len(ids), random),
    })  # fmt: skip


def _auctions(numbers: Ints, epoch: Ints, place: Ints, random: np.random.Generator) -> pa.Table:
    ids, price = _FIRST + epoch * _AUCTIONS + place - _PEOPLE, _prices(len(numbers), random)
    horizon = _OPEN_AUCTIONS * _OF // _AUCTIONS * _MICROSECONDS
    return pa.table({
        "id": ids, "item": pc.binary_join_element_wise("item", pa.array(ids).cast(pa.string()), " "),
        "initial_bid": price, "reserve": price + _prices(len(numbers), random), "datetime": _moments(numbers),
        "expires": _moments(numbers, 1 + random.integers(0, 2 * horizon, len(numbers))),
        "seller": _one_of(epoch, 1, _ACTIVE_PEOPLE, 4, random), "category": random.integers(10, 15, len(numbers)),
        "extra": _extra(len(ids), random),
    })  # fmt: skip


def _bids(numbers: Ints, epoch: Ints, random: np.random.Generator) -> pa.Table:
    channel = random.integers(0, 2 * len(_CHANNELS), len(numbers))  # half of them are one of many
    other = random.integers(0, 10_000, len(numbers))
    names = [*_CHANNELS, *(f"channel-{number}" for number in range(10_000))]
    which = np.where(channel < len(_CHANNELS), channel, len(_CHANNELS) + other)
    ids = pa.array(other).cast(pa.string())
    url = pc.binary_join_element_wise("https://www.nexmark.example/item", ids, "b.html?q=1&channel_id=", "/")
    return pa.table({
        "auction": _one_of(epoch, _AUCTIONS, _OPEN_AUCTIONS, 2, random),
        "bidder": _one_of(epoch, _PEOPLE, _ACTIVE_PEOPLE, 4, random), "price": _prices(len(numbers), random),
        "channel": pa.array(names).take(pa.array(which)), "url": pc.binary_join_element_wise(url, ids, ""),
        "datetime": _moments(numbers), "extra": _extra(len(numbers), random),
    })  # fmt: skip


def _one_of(epoch: Ints, per_epoch: int, active: int, ratio: int, random: np.random.Generator) -> Ints:
    """Ids of earlier rows: a hot one but for one time in `ratio`, otherwise one of the last `active`."""
    last = np.maximum(epoch * per_epoch - 1, 0)
    hot = last // _HOT * _HOT
    other = np.maximum(last - random.integers(0, active, len(epoch)), 0)
    found: Ints = _FIRST + np.where(random.integers(0, ratio, len(epoch)) > 0, hot, other)
    return found


def _prices(count: int, random: np.random.Generator) -> Ints:
    found: Ints = np.round(10 ** (random.random(count) * 6) * 100).astype(np.int64)
    return found


def _moments(numbers: Ints, later: Ints | int = 0) -> pa.Array:
    return pa.array(_START + numbers * _MICROSECONDS + later).cast(pa.timestamp("us"))


def _pick(texts: list[str], count: int, random: np.random.Generator) -> pa.Array:
    return pa.array(texts).take(pa.array(random.integers(0, len(texts), count)))


def _extra(count: int, random: np.random.Generator) -> pa.Array:
    """Texts of 64 letters."""
    letters = random.integers(97, 123, count * 64, np.uint8)
    offsets = np.arange(count + 1, dtype=np.int32) * 64
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))
