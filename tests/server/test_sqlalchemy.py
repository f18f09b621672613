"""SQLAlchemy's dialect `halfjoin://`: reflection, the ORM, pandas, from outside through psycopg."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

sa = pytest.importorskip("sqlalchemy", minversion="2.0.36")
pytest.importorskip("psycopg")

from sqlalchemy import orm  # noqa: E402
from sqlalchemy.dialects import postgresql, registry  # noqa: E402

from tests.support.serving import serving  # noqa: E402

registry.register("halfjoin", "halfjoin.dialect", "HalfjoinDialect")  # as the entry point of an installed package does


class Base(orm.DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customer"
    id = orm.mapped_column(sa.Integer, primary_key=True)
    name = orm.mapped_column(sa.String(40), nullable=False)
    orders = orm.relationship("Order", back_populates="customer")


class Order(Base):
    __tablename__ = "orders"
    id = orm.mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    customer_id = orm.mapped_column(sa.ForeignKey("customer.id"))
    amount = orm.mapped_column(sa.Numeric(10, 2))
    at = orm.mapped_column(sa.DateTime(timezone=True))
    tags = orm.mapped_column(sa.JSON)
    customer = orm.relationship(Customer, back_populates="orders")


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
VIEWS = ("CREATE MATERIALIZED VIEW totals AS SELECT c.name, sum(o.amount) AS total FROM customer c "
         "JOIN orders o ON o.customer_id = c.id GROUP BY c.name",
         "CREATE VIEW cheap AS SELECT id FROM orders WHERE amount < 10")  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with serving() as served:
        found = sa.create_engine(f"halfjoin://127.0.0.1:{served.port}")
        Base.metadata.create_all(found)
        with orm.Session(found) as session:
            ada = Customer(name="Ada")
            ada.orders = [Order(id=1, amount=Decimal("1.50"), at=NOON, tags={"a": [1]}), Order(id=2, amount=30)]
            session.add_all([ada, Customer(name="Grace")])
            session.commit()
        with found.begin() as connection:
            for view in VIEWS:
                connection.execute(sa.text(view))
        yield found
        found.dispose()


def test_the_orm_reads_what_it_wrote(engine: Any) -> None:
    with orm.Session(engine) as session:
        ada = session.scalars(sa.select(Customer).where(Customer.name == "Ada")).one()
        first = sorted(ada.orders, key=lambda order: order.id)[0]
        assert (ada.id, first.amount, first.at, first.tags) == (1, Decimal("1.50"), NOON, {"a": [1]})
        assert session.scalar(sa.select(sa.func.count()).select_from(Customer)) == 2


def test_updates_deletes_and_upserts_reach_the_view(engine: Any) -> None:
    totals = sa.table("totals", sa.column("name"), sa.column("total"))
    with orm.Session(engine) as session:
        session.add(Order(id=10, customer_id=2, amount=5))
        session.commit()
        session.get(Order, 10).amount = 7
        session.commit()
        upsert = postgresql.insert(Order).values(id=10, customer_id=2, amount=8)
        session.execute(upsert.on_conflict_do_update(index_elements=["id"], set_={"amount": upsert.excluded.amount}))
        session.commit()
        assert session.execute(sa.select(totals.c.total).where(totals.c.name == "Grace")).scalar() == 8
        session.delete(session.get(Order, 10))
        session.commit()
        assert session.execute(sa.select(totals).where(totals.c.name == "Grace")).all() == []


def test_a_rolled_back_transaction_and_savepoint_leave_nothing(engine: Any) -> None:
    with engine.connect() as connection:
        connection.execute(sa.insert(Customer).values(id=50, name="x"))
        connection.rollback()
        with connection.begin():
            inner = connection.begin_nested()
            connection.execute(sa.insert(Customer).values(id=51, name="y"))
            inner.rollback()
        assert connection.execute(sa.select(Customer.id).where(Customer.id >= 50)).all() == []


def test_materialized_views_are_reflected_as_views(engine: Any) -> None:
    seen = sa.inspect(engine)
    assert {"customer", "orders"} <= set(seen.get_table_names()) and "totals" not in seen.get_table_names()
    assert {"totals", "cheap"} <= set(seen.get_view_names()) and seen.get_materialized_view_names() == ["totals"]
    assert [(column["name"], str(column["type"])) for column in seen.get_columns("totals")] == [
        ("name", "VARCHAR(40)"), ("total", "NUMERIC(38, 2)")]  # fmt: skip
    assert seen.has_table("totals") and "sum(o.amount)" in seen.get_view_definition("totals").lower()
    assert "public" in seen.get_schema_names()


def test_keys_and_columns_are_reflected(engine: Any) -> None:
    metadata = sa.MetaData()
    metadata.reflect(engine, views=True)
    assert {"customer", "orders", "totals", "cheap"} <= set(metadata.tables)
    orders = metadata.tables["orders"]
    assert [column.name for column in orders.primary_key] == ["id"]
    assert [key.target_fullname for key in orders.foreign_keys] == ["customer.id"]
    assert isinstance(orders.c.tags.type, postgresql.JSON) and orders.c.at.type.timezone
    with engine.connect() as connection:
        assert connection.execute(sa.select(metadata.tables["totals"].c.total)).scalars().all() == [Decimal("31.50")]


def test_pandas_writes_and_reads_frames(engine: Any) -> None:
    frame = pd.DataFrame({"a": [1, 2], "s": ["x", None], "d": pd.to_datetime(["2020-01-01", "2020-01-02"]),
                          "f": [1.5, None]})  # fmt: skip
    frame.to_sql("frame", engine, index=False)
    frame.to_sql("frame", engine, index=False, if_exists="append", method="multi")
    assert pd.read_sql("SELECT count(*) AS n FROM frame", engine)["n"].tolist() == [4]
    frame.to_sql("frame", engine, index=False, if_exists="replace")
    again = pd.read_sql(sa.text("SELECT * FROM frame WHERE a >= :least ORDER BY a"), engine, params={"least": 1})
    pd.testing.assert_frame_equal(again, frame, check_dtype=False)
    assert pd.read_sql_table("totals", engine)["name"].tolist() == ["Ada"]


def test_what_the_server_lacks_is_refused_with_a_reason(engine: Any) -> None:
    with engine.connect() as connection, pytest.raises(sa.exc.NotSupportedError, match="two phases"):
        connection.begin_twophase()


def test_rows_may_be_asked_for_update(engine: Any) -> None:
    """There is one writer, so there is nothing to lock."""
    with engine.connect() as connection:
        query = sa.select(Customer)
        assert connection.execute(query.with_for_update()).all() == connection.execute(query).all()


def test_a_url_may_leave_out_what_is_usual() -> None:
    dialect = registry.load("halfjoin")()
    _, given = dialect.create_connect_args(sa.make_url("halfjoin://"))
    assert given == {"host": "127.0.0.1", "port": 6875, "user": "halfjoin", "dbname": "halfjoin"}
    _, given = dialect.create_connect_args(sa.make_url("halfjoin://ada:p@db:7000/x?sslmode=require"))
    assert given == {"host": "db", "port": 7000, "user": "ada", "password": "p", "dbname": "x", "sslmode": "require"}
