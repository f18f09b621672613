"""The kernel of AT TIME ZONE. The zones are those of the IANA database, and PostgreSQL's usual abbreviations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.values import Kernel
from halfjoin.engine.updates.intervals import DAY
from halfjoin.sql.expr import Call
from halfjoin.sql.types import Kind

_EPOCH = datetime(1970, 1, 1)
_MICRO = timedelta(microseconds=1)
_HOUR = 3_600_000_000
# Hours east of UTC. An abbreviation has one meaning in all years.
_ABBREVIATIONS = {
    "acst": 9.5, "adt": -3, "aest": 10, "aedt": 11, "akdt": -8, "akst": -9, "ast": -4, "awst": 8, "bst": 1, "cdt": -5,
    "cest": 2, "cet": 1, "cst": -6, "eat": 3, "edt": -4, "eest": 3, "eet": 2, "est": -5, "gmt": 0, "hkt": 8, "hst": -10,
    "jst": 9, "kst": 9, "mdt": -6, "mst": -7, "nzdt": 13, "nzst": 12, "pdt": -7, "pst": -8, "sast": 2, "ut": 0,
    "utc": 0, "wet": 0, "west": 1, "z": 0, "zulu": 0,
}  # fmt: skip


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo | int:
    """The zone, or how many microseconds it is always ahead of UTC.

    Raises:
        Bad: there is no such zone.
    """
    lower = name.lower()
    if lower in _ABBREVIATIONS:
        return int(_ABBREVIATIONS[lower] * _HOUR)
    known = _names().get(lower)
    if known is None:
        raise Bad(f'time zone "{name}" not recognized')
    return ZoneInfo(known)


def _of_interval(interval: tuple[int, int, int]) -> int:
    months, days, micros = interval
    if months or days:
        raise Bad("an interval as a time zone must not include months or days")
    return micros


def local_time(zone: str | tuple[int, int, int], utc: int) -> int:
    """What the zone's clock shows at a time in UTC; both in microseconds since 1970."""
    found = _zone(zone) if isinstance(zone, str) else _of_interval(zone)
    if isinstance(found, int):
        return utc + found
    shown = _moment(utc).replace(tzinfo=UTC).astimezone(found).replace(tzinfo=None)
    return (shown - _EPOCH) // _MICRO


def utc_of(zone: str | tuple[int, int, int], local: int) -> int:
    """The time in UTC at which the zone's clock shows a time.

    A time that the clock shows twice is the later one. One that it skips is read with the offset before the gap.
    """
    found = _zone(zone) if isinstance(zone, str) else _of_interval(zone)
    if isinstance(found, int):
        return local - found
    clock = _moment(local)
    before, after = (clock.replace(tzinfo=found, fold=fold).utcoffset() for fold in (0, 1))
    assert before is not None and after is not None
    return local - min(before, after) // _MICRO  # of the two offsets at a change, both rules take the smaller one


def _moment(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(days=micros // DAY, microseconds=micros % DAY)
    except OverflowError:
        raise Bad("AT TIME ZONE of a year before 1 or after 9999") from None


def timezone(expr: Call) -> Kernel:
    """The kernel of timezone(zone, timestamp)."""
    to_utc = expr.type.kind is Kind.TIMESTAMPTZ
    return each(utc_of if to_utc else local_time, arrow_type(expr.type))
