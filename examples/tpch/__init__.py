"""TPC-H for the demo and the benchmarks: the tables, their rows, and streams of changes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Ints = npt.NDArray[np.int64]

SQL = Path(__file__).parent  # schema.sql, and a view for each of the 22 queries
QUERIES = {f"q{number:02}": SQL / f"q{number:02}.sql" for number in range(1, 23)}


def _schema() -> tuple[dict[str, dict[str, str]], dict[str, tuple[str, ...]]]:
    """The columns of each table as declared, by name, and the columns of its primary key."""
    columns, keys = {}, {}
    for name, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\);", (SQL / "schema.sql").read_text(), re.DOTALL):
        *declared, key = (line.strip().rstrip(",") for line in body.strip().splitlines())
        columns[name] = {column.split()[0]: column for column in declared}
        keys[name] = tuple(re.findall(r"\w+", key.removeprefix("PRIMARY KEY")))
    return columns, keys


COLUMNS, KEYS = _schema()

Q3_COLUMNS = {
    "customer": ("c_custkey", "c_mktsegment"),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"),
    "lineitem": ("l_orderkey", "l_linenumber", "l_extendedprice", "l_discount", "l_shipdate"),
}
SEGMENTS = ("BUILDING", "AUTOMOBILE", "FURNITURE", "HOUSEHOLD", "MACHINERY")
Q3_DATE = np.datetime64("1995-03-15")


def query(view: str, fraction: str = "0.0001") -> str:
    """The SELECT of one of `QUERIES`. `fraction` of Q11 is 0.0001 divided by the scale factor."""
    text = QUERIES[view].read_text().partition(" AS\n")[2].strip().rstrip(";")
    return text.replace("0.0001", fraction) if view == "q11" else text


# Query 3 in three steps: the lines of its join, their sums, and the ten largest sums, which is the whole query.
Q3_LINES = """
SELECT l_orderkey, o_orderdate, o_shippriority, l_linenumber, l_extendedprice * (1 - l_discount) AS revenue
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < date '1995-03-15' AND l_shipdate > date '1995-03-15'
"""
Q3_GROUPS = query("q03").partition("\nORDER BY")[0]
Q3_VIEWS = {"lines": Q3_LINES, "groups": Q3_GROUPS, "top 10": query("q03")}


def create_table(name: str, columns: Sequence[str] | None = None) -> str:
    """CREATE TABLE with all columns, or with some that include the key."""
    listed = [declared for column, declared in COLUMNS[name].items() if columns is None or column in columns]
    return f"CREATE TABLE {name} ({', '.join(listed)}, PRIMARY KEY ({', '.join(KEYS[name])}))"


def load(scale: str, names: Iterable[str], columns: dict[str, tuple[str, ...]] | None = None) -> dict[str, pa.Table]:
    """The tables at a scale factor ("0.1", "1"). Generates them into `.data/` if they are missing."""
    folder = generated(scale)
    tables = {}
    for name in names:
        table = pq.read_table(folder / f"{name}.parquet", columns=columns and list(columns[name]))
        types = [pa.string() if field.type == pa.string_view() else field.type for field in table.schema]
        tables[name] = table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))
    return tables


def generated(scale: str) -> Path:
    """The folder with a Parquet file for each table at a scale factor. Generates the files if they are missing."""
    folder = Path(__file__).resolve().parents[2] / ".data" / "tpch" / f"sf{scale}"
    if not (folder / "complete").exists():
        _generate(scale, folder)
    return folder


def _generate(scale: str, folder: Path) -> None:
    beside = Path(sys.executable).with_name("tpchgen-cli")
    program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise SystemExit("tpchgen-cli is missing; install it with: pip install 'halfjoin[demo]'")
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([program, "parquet", "-s", scale, "--output-dir", str(folder)], check=True)
    (folder / "complete").touch()


class Changes:
    """A stream of single-row changes of customer, orders and lineitem that keeps every PRIMARY KEY valid.

    As in TPC-H's refresh functions, new orders come with their lines, and old orders are deleted with theirs. Customers
    also change their segment (one deletion, one insertion). `hot` takes only rows of Q3's view: lines and orders inside
    its dates from customers in its segment, and customers with many such orders.

    Args:
            tables: the first rows, with columns that include those of Q3.
            rows: the number of changes to prepare.
            seed: the same seed gives the same stream.
            hot: whether changes concentrate on the view.
    """

    def __init__(self, tables: dict[str, pa.Table], rows: int, seed: int, hot: bool = False) -> None:
        self._tables, self._rng = tables, np.random.default_rng(seed)
        self._line_order = _ints(tables["lineitem"]["l_orderkey"])
        self._orders = _ints(tables["orders"]["o_orderkey"])
        self._pieces: list[tuple[str, Ints, pa.Table]] = []
        if hot:
            self._hot(rows // 16 + 1)
        else:
            self._uniform(rows // 10 + 1)
        self._stream = self._in_order()
        self._taken = 0

    def take(self, count: int) -> dict[str, pa.Table]:
        """The next `count` changes as a batch: rows with `__diff`, by table."""
        first, last = self._taken, self._taken + count
        self._taken = last
        batch = {}
        for name, (positions, rows) in self._stream.items():
            low, high = np.searchsorted(positions, (first, last))
            if high > low:
                batch[name] = rows.slice(low, high - low)
        return batch

    def _uniform(self, rounds: int) -> None:
        """Make rounds. In each an order comes, an order goes, and a customer changes."""
        number = np.arange(rounds)
        template = self._rng.integers(0, len(self._orders), rounds)
        self._insert_orders(number, 0, template, self._lines_of(template))
        gone = self._rng.permutation(len(self._orders))[:rounds]
        self._delete_orders(number[: len(gone)], 1, gone)
        customers = self._rng.permutation(self._tables["customer"].num_rows)
        self._change_segments(number, 2, np.resize(customers, rounds), len(customers))

    def _hot(self, rounds: int) -> None:
        """Make rounds. In each four lines come, four go, an order comes, an order goes, a customer leaves or enters."""
        number = np.arange(rounds)
        lines, line_order = self._view_lines()
        in_view = np.unique(line_order)
        keep, give = in_view[::2], in_view[1::2]  # orders whose lines change; whole orders that go
        on_kept = lines[np.isin(line_order, keep)]
        count = 4 * rounds
        model = self._rng.choice(on_kept, count)
        fresh = self._tables["lineitem"].take(model)
        fresh = _replace(fresh, "l_linenumber", np.arange(8, 8 + count))
        self._emit("lineitem", np.repeat(number, 4), np.tile(np.arange(4), rounds), 0, fresh, +1)
        old = self._tables["lineitem"].take(self._rng.permutation(on_kept)[: count // 2])
        going = pa.concat_tables([old, fresh])[:count]
        self._emit("lineitem", np.repeat(number, 4), np.tile(np.arange(4, 8), rounds), 0, going, -1)
        template = self._rng.choice(keep, rounds)
        first = np.searchsorted(line_order, template)
        self._insert_orders(number, 8, template, (np.arange(rounds), lines[first]))
        self._delete_orders(number[: len(give)], 9, self._rng.permutation(give)[:rounds])
        customer = _ints(self._tables["orders"]["o_custkey"])[line_order]
        keys, many = np.unique(customer, return_counts=True)
        best = keys[np.argsort(-many, kind="stable")][: max(1, len(keys) // 20)]
        at = np.searchsorted(_ints(self._tables["customer"]["c_custkey"]), best)
        self._change_segments(number, 10, np.resize(at, rounds), len(at), cycle=2)

    def _view_lines(self) -> tuple[Ints, Ints]:
        """Positions of the lines in Q3's view, and of their orders, both ascending."""
        customer, orders, lineitem = (self._tables[name] for name in ("customer", "orders", "lineitem"))
        building = pc.equal(customer["c_mktsegment"], "BUILDING").to_numpy()
        buyer = np.searchsorted(_ints(customer["c_custkey"]), _ints(orders["o_custkey"]))
        early = orders["o_orderdate"].to_numpy() < Q3_DATE
        wanted = building[buyer] & early
        order = np.searchsorted(self._orders, self._line_order)
        lines = np.flatnonzero(wanted[order] & (lineitem["l_shipdate"].to_numpy() > Q3_DATE))
        return lines, order[lines]

    def _lines_of(self, orders: Ints) -> tuple[Ints, Ints]:
        """(position in `orders`, position of the line) for every line of the orders."""
        keys = self._orders[orders]
        first, last = (np.searchsorted(self._line_order, keys, side) for side in ("left", "right"))
        counts = last - first
        owner = np.repeat(np.arange(len(orders)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return owner, first[owner] + within

    def _insert_orders(self, number: Ints, slot: int, template: Ints, lines: tuple[Ints, Ints]) -> None:
        """Insert orders like those in `template`, with new keys and copies of the given lines."""
        keys = self._orders[-1] + 1 + np.arange(len(template))
        self._emit("orders", number, slot, 0, _replace(self._tables["orders"].take(template), "o_orderkey", keys), +1)
        owner, line = lines
        rows = _replace(self._tables["lineitem"].take(line), "l_orderkey", keys[owner])
        self._emit("lineitem", number[owner], slot, _rank(owner), rows, +1)

    def _delete_orders(self, number: Ints, slot: int, orders: Ints) -> None:
        self._emit("orders", number[: len(orders)], slot, 0, self._tables["orders"].take(orders), -1)
        owner, line = self._lines_of(orders)
        self._emit("lineitem", number[owner], slot, _rank(owner), self._tables["lineitem"].take(line), -1)

    def _change_segments(self, number: Ints, slot: int, customers: Ints, lap: int, cycle: int = 5) -> None:
        """Move each customer to the next of `cycle` segments. A customer's turn comes every `lap` changes."""
        rows = self._tables["customer"].take(customers)
        names = np.array(SEGMENTS)
        start = pc.index_in(rows["c_mktsegment"], pa.array(SEGMENTS)).to_numpy()
        turn = np.arange(len(customers)) // lap
        for step, diff in ((0, -1), (1, +1)):
            segment = names[(start + turn + step) % cycle]
            self._emit("customer", number, slot, step, _replace(rows, "c_mktsegment", segment), diff)

    def _emit(self, table: str, number: Ints, slot: Any, rank: Any, rows: pa.Table, diff: int) -> None:
        """Add the rows of rounds `number`. Inside a round, slot and then rank give the order."""
        order = (number * 16 + slot) * 16 + rank
        self._pieces.append((table, order, rows.append_column("__diff", pa.array(np.full(rows.num_rows, diff)))))

    def _in_order(self) -> dict[str, tuple[Ints, pa.Table]]:
        """For each table: positions in the whole stream, ascending, and the rows at them."""
        every = np.sort(np.concatenate([order for _, order, _ in self._pieces]), kind="stable")
        stream = {}
        for name in ("customer", "orders", "lineitem"):
            order = np.concatenate([order for table, order, _ in self._pieces if table == name])
            rows = pa.concat_tables([rows for table, _, rows in self._pieces if table == name])
            sorting = np.argsort(order, kind="stable")
            stream[name] = (np.searchsorted(every, order[sorting]), rows.take(sorting).combine_chunks())
        return stream


def _ints(column: pa.ChunkedArray) -> Ints:
    values: Ints = column.to_numpy().astype(np.int64, copy=False)
    return values


def _rank(owner: Ints) -> Ints:
    """Number each run of equal owners: 1, 2, ..."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    return np.arange(len(owner)) - np.repeat(starts, np.diff(starts, append=len(owner))) + 1


def _replace(rows: pa.Table, column: str, values: Any) -> pa.Table:
    field = rows.schema.field(column)
    return rows.set_column(rows.schema.get_field_index(column), field, pa.array(values).cast(field.type))
