"""TPC-H in miniature: rows that reach every one of the 22 queries, and refreshes of all tables.

The values are few, and they include those that the queries ask for, so that each answer has rows among some hundreds of
orders. `Contents` is the truth; a batch is the difference of two of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa

from examples.tpch import COLUMNS, KEYS

Row: TypeAlias = dict[str, Any]
Contents: TypeAlias = dict[str, dict[tuple[Any, ...], Row]]  # table -> primary key -> row
Change: TypeAlias = Callable[[Contents, Random], None]

ORDERS, CUSTOMERS, PARTS, SUPPLIERS = 400, 60, 40, 20
FRACTION = "0.02"  # of Q11: a part is important if it has more than this of the stock

_NATIONS = (  # of clause 4.2.3: name and region, in the order of their keys
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2),
    ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_HOMES = (8, 2, 3, 6, 7, 8, 18, 20)  # the nations of suppliers and customers
_SEGMENTS = ("BUILDING", "AUTOMOBILE", "FURNITURE")
_TYPES = ("ECONOMY ANODIZED STEEL", "MEDIUM POLISHED BRASS", "PROMO BURNISHED BRASS", "STANDARD PLATED BRASS")
_BRANDS = ("Brand#12", "Brand#23", "Brand#34", "Brand#45")
_CONTAINERS = {"Brand#12": ("SM BOX", "SM PKG"), "Brand#23": ("MED BOX",), "Brand#34": ("LG CASE", "LG BOX"),
               "Brand#45": ("JUMBO JAR",)}  # fmt: skip
_SIZES = (1, 3, 5, 9, 14, 15, 15, 15, 49)
_NAMES = ("forest green", "forest khaki", "misty green", "plum")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("AIR", "AIR REG", "MAIL", "SHIP")
_FIRST_DAY, _DAYS = dt.date(1993, 6, 1), 1100  # of orders


def empty() -> Contents:
    """All tables without rows."""
    return {name: {} for name in COLUMNS}


def rows(seed: int) -> Contents:
    """The first rows."""
    random, contents = Random(seed), empty()
    for key, name in enumerate(_REGIONS):
        put(contents, "region", r_regionkey=key, r_name=name, r_comment="")
    for key, (name, region) in enumerate(_NATIONS):
        put(contents, "nation", n_nationkey=key, n_name=name, n_regionkey=region, n_comment="")
    for key in range(1, SUPPLIERS + 1):
        nation = _HOMES[key % len(_HOMES)]
        put(contents, "supplier", s_suppkey=key, s_name=f"Supplier#{key:09}", s_address=f"street {key}",
            s_nationkey=nation, s_phone=_phone(nation, key), s_acctbal=_money(random, -99, 999),
            s_comment="Customer bold Complaints" if key % 7 == 0 else "ironic")  # fmt: skip
    for key in range(1, PARTS + 1):
        brand = random.choice(_BRANDS)
        put(contents, "part", p_partkey=key, p_name=random.choice(_NAMES), p_mfgr=f"Manufacturer#{key % 5}",
            p_brand=brand, p_type=random.choice(_TYPES), p_size=random.choice(_SIZES),
            p_container=random.choice(_CONTAINERS[brand]), p_retailprice=_money(random, 900, 2000), p_comment="")
        for supplier in random.sample(range(1, SUPPLIERS + 1), 4):
            put(contents, "partsupp", ps_partkey=key, ps_suppkey=supplier, ps_availqty=random.randint(1, 60),
                ps_supplycost=_money(random, 1, 100), ps_comment="")  # fmt: skip
    for key in range(1, CUSTOMERS + 1):
        nation = _HOMES[key % len(_HOMES)]
        put(contents, "customer", c_custkey=key, c_name=f"Customer#{key:09}", c_address=f"road {key}",
            c_nationkey=nation, c_phone=_phone(nation, key), c_acctbal=_money(random, -99, 999),
            c_mktsegment=random.choice(_SEGMENTS), c_comment="")  # fmt: skip
    for _ in range(ORDERS):
        new_order(contents, random)
    return contents


def refreshes() -> Iterator[tuple[str, Change]]:
    """Changes with their names, in the order in which to apply them."""
    yield "RF1: new orders with their lines", _times(20, new_order)
    yield "RF2: old orders go with their lines", _times(20, _old_order)
    yield "one new order", new_order
    yield "customers change segment", _each("customer", 9, lambda row, random: {
        "c_mktsegment": random.choice([one for one in _SEGMENTS if one != row["c_mktsegment"]])})  # fmt: skip
    yield "prices change", _all(
        _each("partsupp", 15, lambda row, random: {"ps_supplycost": _money(random, 1, 100)}),
        _each("lineitem", 30, lambda row, random: {"l_extendedprice": _money(random, 900, 9000)}),
    )
    yield "quantities and dates change", _each("lineitem", 40, lambda row, random: {
        "l_quantity": Decimal(random.randint(1, 50)),
        "l_receiptdate": row["l_shipdate"] + dt.timedelta(days=random.randint(1, 60))})  # fmt: skip
    yield "suppliers and customers move, and complaints come and go", _all(
        _each("supplier", 6, lambda row, random: {
            "s_nationkey": random.choice(_HOMES),
            "s_comment": random.choice(["Customer Complaints", "silent"])}),
        _each("customer", 6, lambda row, random: {
            "c_nationkey": (nation := random.choice(_HOMES)), "c_phone": _phone(nation, row["c_custkey"])}),
        _each("customer", 6, lambda row, random: {"c_acctbal": _money(random, -99, 999)}),
    )  # fmt: skip
    yield "parts change their type", _each("part", 8, lambda row, random: {
        "p_type": random.choice(_TYPES), "p_name": random.choice(_NAMES), "p_size": random.choice(_SIZES)})
    yield "nations move to other regions", _each("nation", 12, lambda row, random: {
        "n_regionkey": random.randrange(len(_REGIONS))})
    yield "RF1 and RF2 at once", _all(_times(15, new_order), _times(25, _old_order))
    yield "every order goes", _times(ORDERS, _old_order)
    yield "orders come again", _times(ORDERS // 4, new_order)
    yield "everything goes", lambda contents, random: contents.update(empty())


def put(contents: Contents, table: str, **row: Any) -> None:
    """Insert a row, or replace the one with its key."""
    contents[table][tuple(row[column] for column in KEYS[table])] = row


def new_order(contents: Contents, random: Random) -> None:
    """Insert an order with 1 to 7 lines. One in three customers never orders."""
    key = 1 + max((order for (order,) in contents["orders"]), default=0)
    day = _FIRST_DAY + dt.timedelta(days=random.randrange(_DAYS))
    large = random.random() < 0.05
    put(contents, "orders", o_orderkey=key,
        o_custkey=random.choice([one for (one,) in contents["customer"] if one % 3]),
        o_orderstatus=random.choice("FFO"), o_totalprice=_money(random, 1000, 400000), o_orderdate=day,
        o_orderpriority=random.choice(_PRIORITIES), o_clerk="", o_shippriority=0,
        o_comment=random.choice(["special packages requests", "even deposits"]))  # fmt: skip
    for number in range(1, 8 if large else random.randint(2, 6)):
        part, supplier = random.choice(list(contents["partsupp"]))
        ship = day + dt.timedelta(days=random.randint(1, 121))
        put(contents, "lineitem", l_orderkey=key, l_partkey=part, l_suppkey=supplier, l_linenumber=number,
            l_quantity=Decimal(random.randint(45, 50) if large else random.randint(1, 50)),
            l_extendedprice=_money(random, 900, 9000), l_discount=Decimal(random.randint(0, 10)) / 100,
            l_tax=Decimal(random.randint(0, 8)) / 100, l_returnflag=random.choice("RAN"),
            l_linestatus=random.choice("OF"), l_shipdate=ship,
            l_commitdate=day + dt.timedelta(days=random.randint(30, 90)),
            l_receiptdate=ship + dt.timedelta(days=random.randint(1, 30)),
            l_shipinstruct=random.choice(["DELIVER IN PERSON", "NONE"]), l_shipmode=random.choice(_MODES),
            l_comment="")  # fmt: skip


def difference(before: Contents, after: Contents) -> dict[str, pa.Table]:
    """The rows that leave and enter each table, with `__diff`. Tables without changes are left out."""
    batch = {}
    for name in COLUMNS:
        gone = [row for key, row in before[name].items() if after[name].get(key) != row]
        come = [row for key, row in after[name].items() if before[name].get(key) != row]
        if gone or come:
            batch[name] = arrow(name, gone + come).append_column(
                "__diff", pa.array([-1] * len(gone) + [1] * len(come), pa.int64())
            )
    return batch


def arrow(table: str, rows: list[Row]) -> pa.Table:
    """Rows as an Arrow table with the declared types."""
    fields = {column: declared.split()[1] for column, declared in COLUMNS[table].items()}
    return pa.Table.from_pylist(rows, pa.schema([(column, _ARROW[kind]) for column, kind in fields.items()]))


_ARROW = {"bigint": pa.int64(), "integer": pa.int32(), "text": pa.string(), "date": pa.date32(),
          "numeric(15,2)": pa.decimal128(15, 2)}  # fmt: skip


def _old_order(contents: Contents, random: Random) -> None:
    if not contents["orders"]:
        return
    (key,) = random.choice(list(contents["orders"]))
    del contents["orders"][key,]
    for line in [line for line in contents["lineitem"] if line[0] == key]:
        del contents["lineitem"][line]


def _times(count: int, change: Change) -> Change:
    return _all(*[change] * count)


def _all(*changes: Change) -> Change:
    def apply(contents: Contents, random: Random) -> None:
        for change in changes:
            change(contents, random)

    return apply


def _each(table: str, count: int, values: Callable[[Row, Random], Row]) -> Change:
    """Give new values to some rows of a table."""

    def apply(contents: Contents, random: Random) -> None:
        for row in random.sample(list(contents[table].values()), count):
            put(contents, table, **{**row, **values(row, random)})

    return apply


def _money(random: Random, least: int, most: int) -> Decimal:
    return Decimal(random.randint(100 * least, 100 * most)) / 100


def _phone(nation: int, key: int) -> str:
    return f"{nation + 10}-{key:03}-555"
