"""A value that cannot be looked at: what is made with it in a constant's place is good for any value of the type.

A query is bound and planned with it where another value will be given each time. Whoever asks for the value gets
`Looked`, whatever he asks: to compare it, to compute with it, to print it or to learn its class. So what was made
without that error cannot depend on the value. It is neither NULL nor a truth value, so `is None` and `is True` are
answered rightly.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeGuard

from halfjoin.sql.types import Kind, SqlType

MARK = "\0$"  # begins its text, which only names of things may contain; no SQL text has the character 0


class Looked(Exception):
    """Somebody has looked at the value of a parameter, of this name."""

    def __init__(self, parameter: str) -> None:
        super().__init__(parameter)
        self.parameter = parameter


class Unseen:
    """One constant of a parameter's value. `position`: which one, of a list. `casts`: what it went through, each a type
    and whether the text has the cast; `type` is the last."""

    __slots__ = ("casts", "parameter", "position", "type")

    def __init__(
        self, parameter: str, position: int, type: SqlType, casts: tuple[tuple[SqlType, bool], ...] = ()
    ) -> None:
        self.parameter, self.position, self.type, self.casts = parameter, position, type, casts

    def cast(self, type: SqlType, explicit: bool) -> Unseen:
        """The same value, cast.

        Raises:
            Looked: to a truth value, which is looked at without asking.
        """
        if type.kind is Kind.BOOLEAN:
            raise Looked(self.parameter)
        return Unseen(self.parameter, self.position, type, (*self.casts, (type, explicit)))

    def __repr__(self) -> str:  # tells it apart from all other values
        casts = "".join(f"{'::' if explicit else ':'}{type!r}" for type, explicit in self.casts)
        return f"{MARK}{self.parameter}[{self.position}]{casts}"

    def __deepcopy__(self, _: object) -> Unseen:
        return self

    @property  # type: ignore[misc]
    def __class__(self) -> NoReturn:  # type: ignore[override]
        raise Looked(self.parameter)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # whether it has a way of its own to be copied, or to become an array
            raise AttributeError(name)
        raise Looked(self.parameter)


def is_unseen(value: object) -> TypeGuard[Unseen]:
    """Whether a value cannot be looked at. Even `isinstance` looks."""
    return type(value) is Unseen


def _looked(self: Any, *_: object) -> NoReturn:
    raise Looked(self.parameter)


for _name in (
    "eq", "ne", "lt", "le", "gt", "ge", "hash", "str", "format", "bool", "int", "float", "complex", "index", "round",
    "trunc", "floor", "ceil", "len", "iter", "contains", "getitem", "neg", "pos", "abs", "invert", "bytes",
    *(side + name for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor",
                               "lshift", "rshift") for side in ("", "r")),
):  # fmt: skip
    setattr(Unseen, f"__{_name}__", _looked)
