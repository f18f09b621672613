"""What tells the code of the user's functions apart.

State law. A node keeps what a function has returned. Rows that stay are not computed again, so a function with other
code under an old name would leave answers of both. A warehouse keeps no code, but this digest of it.

The digest covers the byte code, constants, defaults and what the code reads of the scopes around it: values, and
functions and classes of the same package. It does not see the state of other objects, or files. Comments and line
numbers do not matter. Another version of Python compiles to another digest.

>>> by_two = code_of(lambda rows: len(rows) * 2)
>>> by_two == code_of(lambda rows:  len(rows) * 2), by_two == code_of(lambda rows: len(rows) * 3)
(True, False)
"""

from __future__ import annotations

import dis
import functools
import hashlib
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import NamedTuple

_LINE = "__firstlineno__"  # of a class, since Python 3.13
_LOOKS = ("__module__", "__doc__", "__qualname__", _LINE)  # of a class
_VALUES = (type(None), bool, int, float, complex, str, bytes, type(...))


class Incarnation(NamedTuple):
    """A function's code, and the version that the user gives it; empty if none is given."""

    version: str
    code: str

    def same(self, other: Incarnation) -> bool:
        """Whether `other`, which comes later, is the same function.

        Versions decide if both have one. If different versions of Python have compiled them, their digests tell
        nothing; then the user may give the later one a version, and so says that it is the same.
        """
        if self.version and other.version:
            return self.version == other.version
        return self.code == other.code or (bool(other.version) and not self.comparable(other))

    def comparable(self, other: Incarnation) -> bool:
        """Whether the same version of Python has compiled both."""
        return self.code.partition(" ")[0] == other.code.partition(" ")[0]


def code_of(*functions: object) -> str:
    """The digest of functions, with the version of Python that has compiled them."""
    text = repr([_Code(_package(one)).of(one) for one in functions])
    return f"{sys.implementation.cache_tag} {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:32]}"


class _Code:
    """Walks what a function consists of. `package`: what belongs to another one is told by its name."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.seen = dict[int, tuple[int, object]]()  # by identity, which holds as long as the object is kept here

    def of(self, value: object) -> object:
        """The parts of a value, as nested tuples of texts and numbers."""
        if isinstance(value, _VALUES):
            return (type(value).__name__, repr(value))
        if id(value) in self.seen:
            return ("seen", self.seen[id(value)][0])
        self.seen[id(value)] = len(self.seen), value
        match value:
            case CodeType():
                return self.code(value)
            case FunctionType():
                return self.function(value)
            case MethodType():
                return ("method", self.of(value.__func__), self.of(value.__self__))
            case ModuleType() | BuiltinFunctionType():
                return ("named", value.__name__)
            case functools.partial():
                return ("partial", self.of(value.func), self.of(value.args), self.of(value.keywords))
            case Mapping():
                return ("mapping", sorted(((self.of(key), self.of(one)) for key, one in value.items()), key=repr))
            case AbstractSet():
                return ("set", sorted(map(self.of, value), key=repr))
            case tuple() | list():
                return ("list", tuple(map(self.of, value)))
            case type():
                return self.type(value)
            case _ if (wrapped := getattr(value, "__wrapped__", None)) is not None:
                return self.of(wrapped)
            case _ if callable(value):
                return ("object", self.of(type(value)), self.of(getattr(value, "__dict__", {})))
        return ("other", _name(type(value)))

    def function(self, function: FunctionType) -> object:
        if _package(function) != self.package:
            return ("named", _name(function))
        inside = [_contents(cell) for cell in function.__closure__ or ()]
        around = {name: function.__globals__[name] for name in _names(function.__code__)
                  if name in function.__globals__}  # fmt: skip
        code = self.code(function.__code__, function.__doc__)
        return ("function", code, *map(self.of, (function.__defaults__, function.__kwdefaults__, inside, around)))

    def code(self, code: CodeType, doc: str | None = None) -> object:
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        if _LINE in code.co_names:
            return ("body", shape, names, *self.body(code))
        constants = [None if doc is not None and one == doc else one for one in code.co_consts]
        return ("code", code.co_code.hex(), shape, names, *map(self.of, constants))

    def body(self, code: CodeType) -> list[object]:
        """What a class in a function does, but for storing its line, which is a constant like any other."""
        steps = list(dis.get_instructions(code))
        kept = (one for one, then in pairwise([*steps, steps[0]]) if then.argval != _LINE)
        return [(one.opname, self.of(one.argval) if one.opcode in dis.hasconst else one.arg) for one in kept]

    def type(self, cls: type) -> object:
        if _package(cls) != self.package:
            return ("named", _name(cls))
        own = {name: one for name, one in vars(cls).items()
               if isinstance(one, (FunctionType, *_VALUES)) and name not in _LOOKS}  # fmt: skip
        return ("class", _name(cls), self.of(own), tuple(map(self.of, cls.__bases__)))


def _names(code: CodeType) -> Sequence[str]:
    """The names that code may read of its module, those of the functions in it included."""
    inner = [name for one in code.co_consts if isinstance(one, CodeType) for name in _names(one)]
    return tuple(dict.fromkeys((*code.co_names, *inner)))


def _contents(cell: object) -> object:
    try:
        return cell.cell_contents  # type: ignore[attr-defined]  # a cell of a closure
    except ValueError:  # empty
        return None


def _package(value: object) -> str:
    while isinstance(value, functools.partial):
        value = value.func
    return str(getattr(value, "__module__", None) or type(value).__module__).partition(".")[0]


def _name(value: object) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
