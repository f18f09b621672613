"""Define a sink into a topic: what its key may be, and the topic that its definition means."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from halfjoin.catalog.models import Sink
from halfjoin.engine.batch.state import State
from halfjoin.engine.feeds.options import model_of
from halfjoin.engine.sinks.kafka.avro_schemas import check_names
from halfjoin.engine.sinks.kafka.messages import Shape
from halfjoin.engine.sinks.kafka.options import TopicOptions
from halfjoin.engine.sinks.kafka.topic import KafkaTopic
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.planner.reduces.unique import identified
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query


def topic_options(given: Mapping[str, Any]) -> TopicOptions:
    """The options of a sink INTO KAFKA.

    Raises:
        UnsupportedSQL: one is unknown, missing, or has a value that it cannot have.
    """
    return model_of(TopicOptions, given, "a sink INTO KAFKA")


def check_topic(state: State, sink: Sink) -> None:
    """Refuse a key that does not tell rows apart, and a topic that another sink writes.

    Raises:
        UnsupportedSQL, UnknownName, Conflict: says what is wrong.
    """
    options, columns = topic_options(sink.options), state.catalog.columns(sink.collection) or ()
    names = [column.name for column in columns]
    for name in options.keys:
        if name not in names:
            raise UnknownName(f"column of {sink.collection}", name, names)
    if not names:
        raise UnsupportedSQL(f"{sink.collection} has no columns", remedy="select a constant")
    key = _key(state, sink.collection, options)
    if not key and options.envelope == "upsert":
        raise UnsupportedSQL("a sink of upserts needs a key", remedy="give the option key with the columns that tell "
                             "the rows apart, or envelope = 'debezium', which can do without")  # fmt: skip
    if key and not _identifies(state, sink.collection, key):
        raise UnsupportedSQL(
            f"the columns {', '.join(key)} need not tell the rows of {sink.collection} apart, and a topic has one "
            "row for each key",
            remedy="choose a key with a PRIMARY KEY of each table that the view joins, with all keys of its GROUP BY, "
            "or of SELECT DISTINCT ON; or envelope = 'debezium' without a key",
        )
    if options.format == "avro":
        if options.registry is None:
            raise UnsupportedSQL("messages in Avro need a schema registry", remedy="give the option registry, its URL")
        check_names(_shape(state, sink.collection, options))
    for other in state.catalog.sinks.values():
        if other.name != sink.name and other.options:
            there = topic_options(other.options)
            if (there.brokers, there.topic) == (options.brokers, options.topic):
                raise Conflict(f"the sink {other.name} writes the topic {options.topic}", remedy="choose another topic",
                               name=sink.name, holder=other.name)  # fmt: skip


def topic_of(state: State, sink: Sink, former: Collection[str]) -> KafkaTopic:
    """The topic of a sink that is defined."""
    options = topic_options(sink.options)
    return KafkaTopic(sink.id, options, _shape(state, sink.collection, options), former)


def _shape(state: State, collection: str, options: TopicOptions) -> Shape:
    columns = {column.name: column.type for column in state.catalog.columns(collection) or ()}
    return Shape(collection, columns, _key(state, collection, options), options.envelope == "debezium",
                 state.catalog.primary_key(collection))  # fmt: skip


def _key(state: State, collection: str, options: TopicOptions) -> Sequence[str]:
    return options.keys or state.catalog.primary_key(collection)


def _identifies(state: State, collection: str, key: Sequence[str]) -> bool:
    view = state.catalog.views.get(collection)
    if view is None:
        return any({*key} >= {*unique} for unique in state.catalog.identifying(collection))
    relation = bind(parse_query(view.text), state.catalog, view.text)
    places = [column.name for column in view.columns]
    return identified(relation, [relation.columns[places.index(name)].name for name in key], state)
