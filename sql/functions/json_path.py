"""The language of SQL/JSON paths: from text to a tree, as PostgreSQL 15 reads it.

Libraries of JSONPath speak RFC 9535, which has no lax mode, no unknown, no arithmetic and other filters; so this is our
own. A path is a chain of steps. A step's `first` and `second` are chains of their own; a filter has a condition.

>>> path("$.a[0] ? (@ > 1)").steps.next.kind
'key'
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import NoReturn

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions.json_path_tree import COMPARISONS, CONDITIONS, Path, Step, chain, regex
from halfjoin.sql.functions.json_path_words import failure, plain, words

METHODS = ("abs", "size", "type", "floor", "double", "ceiling", "keyvalue")
MOST_STEPS = 100  # of a path, and of levels in it: evaluation recurses


@lru_cache(maxsize=1024)
def path(text: str) -> Path:
    """The path of a text.

    Raises:
        UnsupportedSQL: it is not one.
    """
    return _Parser(text).path()


class _Parser:
    """Reads words one by one. `filters`, `subscripts`: how many are around the place."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at, self.count = text, words(text), 0, 0
        self.filters = self.subscripts = 0

    def fail(self) -> NoReturn:
        place = "end" if self.at >= len(self.tokens) else f"or near {self.tokens[self.at][1]!r}"
        raise failure(f"syntax error at {place} of jsonpath input")

    def grow(self) -> None:
        """Count one more step or level."""
        self.count += 1
        if self.count > MOST_STEPS:
            raise UnsupportedSQL(f"a SQL/JSON path has at most {MOST_STEPS} steps and levels", remedy="write two paths")

    def kind(self) -> str:
        """The kind of the word here."""
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def peek(self, ahead: int = 0) -> str:
        """The sign or the word here, in lower case; empty for anything else."""
        if self.at + ahead >= len(self.tokens):
            return ""
        kind, text = self.tokens[self.at + ahead]
        return text if kind == "sign" else text.lower() if kind == "word" else ""

    def take(self, *words: str) -> str:
        """The sign or the word here, if it is one of these."""
        here = self.peek()
        if here in words and here:
            self.at += 1
            return here
        return ""

    def need(self, word: str) -> None:
        if not self.take(word):
            self.fail()

    def path(self) -> Path:
        if not self.tokens:
            raise UnsupportedSQL(f'invalid input syntax for type jsonpath: "{self.text}"', code="22P02")
        mode = self.take("lax", "strict")
        made = self.either()
        if self.at < len(self.tokens):
            self.fail()
        return Path(mode != "strict", made)

    def either(self) -> Step:
        """A condition or a value."""
        self.grow()
        made = self.both()
        while self.take("||"):
            made = Step("or", first=self.condition(made), second=self.condition(self.both()))
        return made

    def both(self) -> Step:
        made = self.compared()
        while self.take("&&"):
            made = Step("and", first=self.condition(made), second=self.condition(self.compared()))
        return made

    def condition(self, made: Step) -> Step:
        if made.kind not in CONDITIONS or made.next is not None:
            self.fail()
        return made

    def value(self, made: Step) -> Step:
        if made.kind in CONDITIONS and made.next is None:
            self.fail()
        return made

    def compared(self) -> Step:
        if self.take("!"):
            if self.peek() not in ("(", "exists"):
                self.fail()
            return Step("not", first=self.condition(self.primary(delimited=True)))
        left = self.sum()
        if left.kind in CONDITIONS and left.next is None:
            return left
        if sign := self.take(*COMPARISONS, "<>"):
            return Step("!=" if sign == "<>" else sign, first=left, second=self.value(self.sum()))
        if self.take("starts"):
            self.need("with")
            if self.kind() not in ("string", "variable"):
                self.fail()
            return Step("starts with", first=left, second=self.literal())
        if self.take("like_regex"):
            pattern = self.string()
            return Step("like_regex", regex(pattern, self.string() if self.take("flag") else ""), left)
        return left

    def string(self) -> str:
        if self.kind() != "string":
            self.fail()
        self.at += 1
        return plain(self.tokens[self.at - 1][1][1:-1])

    def sum(self) -> Step:
        made = self.product()
        while sign := self.take("+", "-"):
            made = Step(sign, first=self.value(made), second=self.value(self.product()))
        return made

    def product(self) -> Step:
        made = self.signed()
        while sign := self.take("*", "/", "%"):
            made = Step(sign, first=self.value(made), second=self.value(self.signed()))
        return made

    def signed(self) -> Step:
        if sign := self.take("+", "-"):
            self.grow()
            return Step(f"unary {sign}", first=self.value(self.signed()))
        return self.primary()

    def primary(self, *, delimited: bool = False) -> Step:
        """A value with its accessors, or a condition in parentheses (`delimited`: nothing comes after it)."""
        if self.take("exists"):
            self.need("(")
            made = Step("exists", first=self.value(self.either()))
            self.need(")")
            return made
        if self.take("("):
            made = self.either()
            self.need(")")
            if delimited:
                return made
            if made.kind in CONDITIONS and made.next is None and self.take("is"):
                self.need("unknown")
                return Step("unknown", first=made)
            return chain([made, *self.accessors()])
        return chain([self.literal(), *self.accessors()])

    def literal(self) -> Step:
        if self.at >= len(self.tokens):
            self.fail()
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return Step("constant", Decimal(text))
        if kind == "string":
            return Step("constant", plain(text[1:-1]))
        if kind == "variable":
            return Step("variable", plain(text[2:-1] if text[1] == '"' else text[1:]))
        if text in ("true", "false", "null"):
            return Step("constant", {"true": True, "false": False, "null": None}[text])
        if text == "$":
            return Step("root")
        if text == "@":
            if not self.filters:
                raise failure("@ is not allowed in root expressions")
            return Step("current")
        if kind == "word" and text.lower() == "last":
            if not self.subscripts:
                raise failure("LAST is allowed only in array subscripts")
            return Step("last")
        self.at -= 1
        self.fail()

    def accessors(self) -> list[Step]:
        found: list[Step] = []
        while self.peek() in (".", "[", "?"):
            self.grow()
            found.append({".": self.member, "[": self.subscript, "?": self.filter}[self.take(".", "[", "?")]())
        return found

    def filter(self) -> Step:
        self.need("(")
        self.filters += 1
        made = Step("filter", first=self.condition(self.either()))
        self.filters -= 1
        self.need(")")
        return made

    def subscript(self) -> Step:
        if self.take("*"):
            self.need("]")
            return Step("[*]")
        parts: list[tuple[Step, Step | None]] = []
        self.subscripts += 1
        while True:
            first = self.value(self.sum())
            parts.append((first, self.value(self.sum()) if self.take("to") else None))
            if not self.take(","):
                break
        self.subscripts -= 1
        self.need("]")
        return Step("[]", parts=tuple(parts))

    def member(self) -> Step:
        if self.take("*"):
            return Step(".*")
        if self.take("**"):
            return Step("**", self.levels())
        if self.kind() not in ("word", "string"):
            self.fail()
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "word" and self.peek() == "(":
            if text.lower() == "datetime":
                raise UnsupportedSQL("the method .datetime() of a SQL/JSON path is not supported",
                                     remedy="cast outside of the path: (j ->> 'a')::timestamp")  # fmt: skip
            if text.lower() not in METHODS:
                self.fail()
            self.need("(")
            self.need(")")
            return Step(text.lower())
        return Step("key", plain(text[1:-1] if kind == "string" else text))

    def levels(self) -> tuple[int, int | None]:
        """The first and the last level of `**`; -1: the deepest; None: no end."""
        if not self.take("{"):
            return 0, None
        first = last = self.level()
        if self.take("to"):
            last = self.level()
        self.need("}")
        return (-1 if first is None else first), (None if first is None and last is None else last)

    def level(self) -> int | None:
        if self.take("last"):
            return None
        if self.kind() != "number" or not self.tokens[self.at][1].isdigit():
            self.fail()
        self.at += 1
        return int(self.tokens[self.at - 1][1])
