"""The kernel of AT TIME ZONE."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.each import Bad, each
from halfjoin.engine.scalar.values import Kernel
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.calendar import holds_moment, like
from halfjoin.sql.functions.zones import offset_at, zone_of
from halfjoin.sql.types import Kind

_EPOCH = datetime(1970, 1, 1)
_MICRO = timedelta(microseconds=1)


def _zone(name: str) -> tzinfo | timedelta:
    found = zone_of(name)
    if found is None:
        raise Bad(f'time zone "{name}" not recognized')
    return found


def _of_interval(interval: tuple[int, int, int]) -> timedelta:
    months, days, micros = interval
    if months or days:
        raise Bad("an interval as a time zone must not include months or days")
    return timedelta(seconds=micros // 1_000_000 if micros >= 0 else -(-micros // 1_000_000))  # a zone has no fraction


def local_time(zone: str | tuple[int, int, int], utc: int) -> int:
    """What the zone's clock shows at a time in UTC; both in microseconds since 1970."""
    found = _zone(zone) if isinstance(zone, str) else _of_interval(zone)
    if isinstance(found, timedelta):
        return _kept(utc + found // _MICRO)
    moment, shift = like(utc)
    shown = moment.replace(tzinfo=UTC).astimezone(found).replace(tzinfo=None)
    return _kept((shown - _EPOCH) // _MICRO + shift)


def utc_of(zone: str | tuple[int, int, int], local: int) -> int:
    """The time in UTC at which the zone's clock shows a time (`zones.offset_at`)."""
    found = _zone(zone) if isinstance(zone, str) else _of_interval(zone)
    return _kept(local - offset_at(found, like(local)[0]) // _MICRO)


def _kept(micros: int) -> int:
    if not holds_moment(micros):
        raise Bad("timestamp out of range")
    return micros


def timezone(expr: Call) -> Kernel:
    """The kernel of timezone(zone, timestamp)."""
    to_utc = expr.type.kind is Kind.TIMESTAMPTZ
    return each(utc_of if to_utc else local_time, arrow_type(expr.type))
