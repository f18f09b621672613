"""The options of a source: from what SQL says to the model of its kind, and what may be shown of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from halfjoin.engine.feeds.source import Kind, Options
from halfjoin.errors import UnsupportedSQL

Model = TypeVar("Model", bound=Options)


def options_of(kind: Kind, given: Mapping[str, Any]) -> Options:
    """The options as the kind's model.

    Raises:
        UnsupportedSQL: one is unknown, missing, or has a value that it cannot have. The text shows no value: it may be
            a secret.
    """
    return model_of(kind.options, given, f"a source FROM {kind.name}")


def model_of(model: type[Model], given: Mapping[str, Any], what: str) -> Model:
    """Options as a model. `what` they are of is for the error, which is that of `options_of`."""
    try:
        return model.model_validate(dict(given))
    except ValidationError as problem:
        known = ", ".join(field.alias or name for name, field in model.model_fields.items())
        said = [f"{'.'.join(map(str, one['loc'])) or 'they'}: {_words(one)}" for one in problem.errors()]
        raise UnsupportedSQL(f"the options of {what} are not right: {'; '.join(said)}", remedy=f"options: {known}",
                             code="22023") from None  # fmt: skip


def displayed(kind: Kind, given: Mapping[str, Any]) -> str:
    """The options that were given, as JSON text, with asterisks for secrets."""
    made = options_of(kind, given).model_dump(mode="json", by_alias=True)
    return json.dumps({name: made.get(name, "***") for name in given}, ensure_ascii=False)


def _words(problem: Any) -> str:
    match problem["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is not an option"
        case _:
            return str(problem["msg"]).removeprefix("Value error, ")
