"""Sources to follow: Delta tables, each with a dictionary of its expected rows, and an engine for them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

import halfjoin as hj

FEED = {"delta.enableChangeDataFeed": "true"}


def rows_of(rows: dict[int, int]) -> pa.Table:
    """Keys and values as a table."""
    return pa.table({"k": pa.array(list(rows), pa.int64()), "v": pa.array(list(rows.values()), pa.int64())})


class Source:
    """A Delta table, and a dictionary of its expected rows at each version."""

    def __init__(self, path: Path, rows: dict[int, int], configuration: dict[str, str]) -> None:
        self.path, self.rows, self.at = str(path), dict(rows), list[dict[int, int]]()
        write_deltalake(self.path, rows_of(rows), configuration=configuration)
        self.at.append(dict(rows))

    def step(self, what: str, key: int, value: int) -> None:
        table, rows = DeltaTable(self.path), self.rows
        match what:
            case "insert":
                key += 5 * (1 + len(self.at))
                write_deltalake(self.path, rows_of({key: value}), mode="append")
                rows[key] = value
            case "update":
                table.update(updates={"v": str(value)}, predicate=f"k % 5 = {key}")
                rows.update({k: value for k in rows if k % 5 == key})
            case "delete":
                table.delete(f"k % 5 = {key}")
                for k in [k for k in rows if k % 5 == key]:
                    del rows[k]
            case "merge":
                new = rows_of({key: value, 100 + value: value})
                merge = table.merge(new, "s.k = t.k", source_alias="s", target_alias="t")
                merge.when_matched_delete("s.v > 6").when_matched_update_all().when_not_matched_insert_all().execute()
                for k, v in {key: value, 100 + value: value}.items():
                    if k in rows and v > 6:
                        del rows[k]
                    else:
                        rows[k] = v
            case "overwrite":
                write_deltalake(self.path, rows_of({key: value, value + 50: key}), mode="overwrite")
                rows.clear()
                rows.update({key: value, value + 50: key})
            case "optimize":
                table.optimize.compact()
            case "settings":
                table.alter.set_table_properties({"delta.logRetentionDuration": f"interval {value + 1} days"})
        self.at += [dict(rows)] * (DeltaTable(self.path).version() + 1 - len(self.at))


def opened(folder: Path | None = None) -> hj.Engine:
    """An engine with a table for following a source. Creates the table if it is missing."""
    engine = hj.Engine(folder)
    if not engine.stats().collections:
        engine.execute("CREATE TABLE t (k bigint, v bigint)")
    return engine
