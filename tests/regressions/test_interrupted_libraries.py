"""When Ctrl-C reaches a library that raises an error of its own for it, the caller gets a KeyboardInterrupt."""

import pyarrow as pa
import pytest
from pydantic_core import PydanticSerializationError

import halfjoin as hj
from halfjoin.catalog.models import Document
from halfjoin.engine.scalar import duck
from halfjoin.engine.storage import delta


class Interrupted:
    """A connection that behaves as if Ctrl-C came while it works."""

    def register(self, *_):
        pass

    unregister = register

    def sql(self, *_):
        raise RuntimeError("Query interrupted")


def test_an_interrupted_expression_is_keyboardinterrupt(monkeypatch):
    monkeypatch.setattr(duck, "_connection", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        duck.rows_of("SELECT x FROM arguments", pa.table({"x": [1]}))


def test_an_interrupted_query_is_keyboardinterrupt(monkeypatch):
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (x bigint)")
        engine.apply({"t": [{"x": 1}]}, time=1)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(duck, "_connection", Interrupted)
            engine.query("SELECT replace(x::text, x::text, '2') AS n FROM t")
        assert engine.query("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 1}]


def test_an_interrupted_catalog_is_keyboardinterrupt(monkeypatch, tmp_path):
    def interrupted(_):
        raise PydanticSerializationError("Error serializing to JSON: KeyboardInterrupt: ")

    with hj.Engine(tmp_path) as engine:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Document, "model_dump_json", interrupted)
            engine.execute("CREATE TABLE t (x bigint)")
        engine.execute("CREATE TABLE t (x bigint)")


def test_an_interrupted_commit_is_keyboardinterrupt(monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise ValueError("custom_metadata value for 'x' must be JSON-serializable: KeyboardInterrupt: ")

    with hj.Engine(tmp_path) as engine:
        engine.execute("CREATE TABLE t (x bigint); INSERT INTO t VALUES (1)")
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(delta, "CommitProperties", interrupted)
            engine.flush()
        engine.flush()
        assert engine.read("t").to_pylist() == [{"x": 1}]
