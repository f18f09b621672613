"""Nexmark's queries as views: one statement each, in SQL that this engine and DuckDB read alike.

Windows of event time are groups by `date_bin` here: a window is a value of a column, it is never closed, and a late row
corrects it. So q5, q7 and q8 need no watermark. What is missing, and why, is in `MISSING`.
"""

from __future__ import annotations

_LEVELS = "price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000"
_DAY = "CAST(datetime AS date)"


def _report(*keys: str) -> str:
    """Counts of bids, and of their bidders and auctions, by levels of the price, for each day and key."""
    counted = [f"count({what}) {filtered} AS {name}{level}"
               for name, what in (("bids", "*"), ("bidders", "DISTINCT bidder"), ("auctions", "DISTINCT auction"))
               for level, filtered in [("", ""), *((number, f"FILTER (WHERE {one})")
                                                   for number, one in enumerate(_LEVELS, 1))]]  # fmt: skip
    return f"SELECT {', '.join([*keys, f'{_DAY} AS day', *counted])} FROM bid GROUP BY {', '.join([*keys, _DAY])}"


_WINNING = """
    SELECT a.id, a.category, a.seller, a.expires, b.bidder, b.price, b.datetime,
           row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.datetime, b.bidder) AS place
    FROM auction a JOIN bid b ON a.id = b.auction AND b.datetime BETWEEN a.datetime AND a.expires"""


def _bin(moment: str) -> str:
    return f"date_bin(INTERVAL '10 seconds', {moment}, TIMESTAMP '2020-01-01')"


QUERIES = {
    "q0": "SELECT auction, bidder, price, datetime, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, datetime, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """
        SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('or', 'id', 'ca')""",
    "q4": """
        SELECT category, avg(final) AS price
        FROM (SELECT max(b.price) AS final, a.category FROM auction a JOIN bid b ON a.id = b.auction
              WHERE b.datetime BETWEEN a.datetime AND a.expires GROUP BY a.id, a.category) q
        GROUP BY category""",
    "q6": f"""
        SELECT seller, id, avg(price) OVER (PARTITION BY seller ORDER BY expires, id
                                            ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS price
        FROM ({_WINNING}) w WHERE place = 1""",
    "q7": f"""
        SELECT b.auction, b.price, b.bidder, b.datetime
        FROM bid b JOIN (SELECT {_bin("datetime")} AS bin, max(price) AS price FROM bid GROUP BY 1) w
             ON b.price = w.price AND {_bin("b.datetime")} = w.bin""",
    "q8": f"""
        SELECT DISTINCT p.id, p.name, {_bin("p.datetime")} AS bin
        FROM person p JOIN auction a ON p.id = a.seller AND {_bin("p.datetime")} = {_bin("a.datetime")}""",
    "q9": f"SELECT id, category, seller, expires, bidder, price, datetime FROM ({_WINNING}) w WHERE place = 1",
    "q13": """
        SELECT b.auction, b.bidder, b.price, b.datetime, s.value
        FROM bid b JOIN side s ON b.auction % 10000 = s.key""",
    "q14": """
        SELECT auction, bidder, 0.908 * price AS price, datetime, extra,
               CASE WHEN extract(hour FROM datetime) BETWEEN 8 AND 18 THEN 'day'
                    WHEN extract(hour FROM datetime) <= 6 OR extract(hour FROM datetime) >= 20 THEN 'night'
                    ELSE 'other' END AS time,
               length(extra) - length(replace(extra, 'c', '')) AS letters
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": _report(),
    "q16": _report("channel"),
    "q17": f"""
        SELECT auction, {_DAY} AS day, count(*) AS bids, min(price) AS low, max(price) AS high, avg(price) AS mean,
               sum(price) AS total, count(*) FILTER (WHERE {_LEVELS[0]}) AS bids1,
               count(*) FILTER (WHERE {_LEVELS[1]}) AS bids2, count(*) FILTER (WHERE {_LEVELS[2]}) AS bids3
        FROM bid GROUP BY auction, {_DAY}""",
    "q18": """
        SELECT auction, bidder, price, channel, datetime
        FROM (SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY datetime DESC, price DESC) AS place
              FROM bid) b
        WHERE place = 1""",
    "q19": """
        SELECT auction, bidder, price, datetime, place
        FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, datetime, bidder) AS place
              FROM bid) b
        WHERE place <= 10""",
    "q20": """
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.datetime, a.item, a.initial_bid, a.reserve,
               a.expires, a.seller
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    "q21": """
        SELECT auction, bidder, price, channel,
               CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
                                   WHEN 'baidu' THEN '3' ELSE split_part(url, 'channel_id=', 2) END AS channel_id
        FROM bid""",
    "q22": """
        SELECT auction, bidder, price, channel, split_part(url, '/', 3) AS host, split_part(url, '/', 4) AS first,
               split_part(url, '/', 5) AS second
        FROM bid""",
}
MISSING = {
    "q5": "the busiest auctions of a sliding window of event time",
    "q10": "writes files: that is a sink, `engine.sink`, and not a view",
    "q11": "a session has no name until it ends: examples/sessions.py keeps sessions as a recursive view",
    "q12": "its answer depends on when a row is processed, so it is no view of the tables",
}

# Events a second and core of Flink 1.13, from the table of https://github.com/nexmark/nexmark (read in November 2026).
# Its authors measured them on 8 task managers with RocksDB and checkpoints. They show the order, and no more.
FLINK = {
    "q0": 155_020, "q1": 157_940, "q2": 175_210, "q3": 152_120, "q4": 34_330, "q7": 12_330, "q8": 146_140, "q9": 14_240,
    "q13": 130_730, "q14": 161_230, "q15": 72_420, "q16": 18_650, "q17": 116_800, "q18": 53_700, "q19": 44_040,
    "q20": 18_980, "q21": 98_490, "q22": 129_960,
}  # fmt: skip
