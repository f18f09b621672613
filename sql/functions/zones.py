"""Time zones by their names: those of the IANA database, usual abbreviations, and rules such as GMT+4."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from halfjoin.sql.functions.posix_zones import posix_zone

# What PostgreSQL knows by default: by hours east of UTC, those that have one meaning in all years; and those that stand
# for the time of a place, whatever it was.
_FIXED: dict[float, str] = {
    -10: "hst taht", -9.5: "mart", -9: "akst gamt", -8: "akdt pst", -7: "mst pdt", -6: "cst galt mdt",
    -5: "act cdt cot est pet", -4: "amt ast bot edt", -3.5: "nft nst", -3: "adt bra brt clst gft pmst pyst uyt wgt",
    -2.5: "ndt", -2: "brst fnt pmdt uyst wgst", -1: "azot egt fnst", 0: "azost egst gmt uct ut utc wet z zulu",
    1: "bst cet met mez wat wetdst", 2: "bdst cest cetdst eet ist mest mesz metdst sast",
    3: "eat eest eetdst fet idt", 3.5: "irt", 4: "msd mut ret sct", 4.5: "aft", 5: "must mvt pkt tft tjt uzt",
    5.75: "npt", 6: "almt bdt btt kgst pkst uzst xjt yekst", 6.5: "mmt", 7: "almst cxt ict wast",
    8: "awst bnt bort cct hkt myt pht wadt", 8.75: "acwst", 9: "awsst jayt jst kst pwt ulast wdt", 9.5: "acst cast",
    10: "aest chut ddut kdt ligt mpt pgt trut yapt", 10.5: "acdt acsst cadt lhst sadt", 11: "aedt aesst pont vut",
    12: "fjt gilt mht nzst nzt tvt wakt wft", 12.75: "chast", 13: "fjst nzdt tot", 13.75: "chadt",
}  # fmt: skip
_PLACES = {
    "amst": "Asia/Yerevan", "anast": "Asia/Anadyr", "anat": "Asia/Anadyr", "arst": "America/Argentina/Buenos_Aires",
    "art": "America/Argentina/Buenos_Aires", "azst": "Asia/Baku", "azt": "Asia/Baku", "ckt": "Pacific/Rarotonga",
    "clt": "America/Santiago", "davt": "Antarctica/Davis", "easst": "Pacific/Easter", "east": "Pacific/Easter",
    "fkst": "Atlantic/Stanley", "fkt": "Atlantic/Stanley", "gest": "Asia/Tbilisi", "get": "Asia/Tbilisi",
    "gyt": "America/Guyana", "iot": "Indian/Chagos", "irkst": "Asia/Irkutsk", "irkt": "Asia/Irkutsk",
    "kgt": "Asia/Bishkek", "kost": "Pacific/Kosrae", "krast": "Asia/Krasnoyarsk", "krat": "Asia/Krasnoyarsk",
    "lhdt": "Australia/Lord_Howe", "lint": "Pacific/Kiritimati", "lkt": "Asia/Colombo", "magst": "Asia/Magadan",
    "magt": "Asia/Magadan", "mawt": "Antarctica/Mawson", "novst": "Asia/Novosibirsk", "novt": "Asia/Novosibirsk",
    "nut": "Pacific/Niue", "omsst": "Asia/Omsk", "omst": "Asia/Omsk", "petst": "Asia/Kamchatka",
    "pett": "Asia/Kamchatka", "pyt": "America/Asuncion", "sgt": "Asia/Singapore", "tkt": "Pacific/Fakaofo",
    "tmt": "Asia/Ashgabat", "ulat": "Asia/Ulaanbaatar", "vet": "America/Caracas", "vlast": "Asia/Vladivostok",
    "vlat": "Asia/Vladivostok", "volt": "Europe/Volgograd", "yakst": "Asia/Yakutsk", "yakt": "Asia/Yakutsk",
    "yekt": "Asia/Yekaterinburg",
}  # fmt: skip
_ABBREVIATIONS = {name: hours for hours, names in _FIXED.items() for name in names.split()}
_SAME_RULES = "posix/"  # a folder with the zones of the IANA database again


class _MoscowTime(tzinfo):
    """MSK, which is 3 hours ahead of UTC, and was 4 in the years in which Moscow had no winter time."""

    _FOUR = (datetime(2011, 3, 26, 23), datetime(2014, 10, 25, 22))  # in UTC

    def utcoffset(self, clock: datetime | None, /) -> timedelta | None:
        """How far it is ahead when Moscow's clock shows a time."""
        if clock is None:
            return None
        return self._at(clock.replace(tzinfo=None) - offset_at(ZoneInfo("Europe/Moscow"), clock))

    def dst(self, clock: datetime | None, /) -> timedelta:
        """MSK is never a summer time."""
        return timedelta(0)

    def tzname(self, clock: datetime | None, /) -> str:
        """Its abbreviation."""
        return "MSK"

    def fromutc(self, utc: datetime, /) -> datetime:
        """What the clock shows at a time in UTC."""
        return utc + self._at(utc.replace(tzinfo=None))

    def _at(self, utc: datetime) -> timedelta:
        return timedelta(hours=4 if self._FOUR[0] <= utc < self._FOUR[1] else 3)


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def abbreviation(name: str) -> timedelta | None:
    """How far ahead of UTC the zone of an abbreviation is; `name` is in lower case."""
    hours = _ABBREVIATIONS.get(name)
    return None if hours is None else timedelta(hours=hours)


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo | timedelta | None:
    """The zone, or how far it is always ahead of UTC; None if there is no such zone."""
    lower = name.lower()
    fixed = abbreviation(lower)
    if fixed is not None:
        return fixed
    if lower == "msk":
        return _MoscowTime()
    known = _PLACES.get(lower) or _names().get(lower.removeprefix(_SAME_RULES))
    return ZoneInfo(known) if known is not None else posix_zone(name)


def offset_at(zone: tzinfo | timedelta, clock: datetime) -> timedelta:
    """How far a zone is ahead of UTC when its clock shows a time.

    A time that the clock shows twice is the later one. One that it skips is read with the offset before the gap.
    """
    if isinstance(zone, timedelta):
        return zone
    before, after = (clock.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    assert before is not None and after is not None
    return min(before, after)  # of the two offsets at a change, both rules take the smaller one
