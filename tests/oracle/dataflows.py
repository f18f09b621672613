"""Random programs of collections over two tables `r (a, b)` and `s (a, b)`, and an interpreter of them.

Numbers stay below `SIZE`, or are NULL, so contents are few. Loops take few rounds, since a program need not settle;
those without a limit only add rows and remove duplicates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

import pyarrow as pa

import halfjoin as hj

SIZE = 4
Value: TypeAlias = int | None
Row: TypeAlias = tuple[Value, ...]
Bag: TypeAlias = Counter[Row]


@dataclass(frozen=True, eq=False)
class Term:
    """An operator over terms. `number`: what it adds or compares with; of a variable, which one. A loop has the starts
    and the steps of its `variables` as arguments; `until`: the round of its trace that `early` looks at."""

    kind: str
    args: tuple[Term, ...] = ()
    number: int = 0
    rounds: int | None = None
    variables: tuple[int, ...] = ()
    until: int = 0


ONE = ("map", "swap", "filter", "series", "distinct", "min", "count", "all", "own")
TWO = ("concat", "follow", "same", "in", "not in", "not followed")
ADDING = ("map", "swap", "filter", "series", "distinct", "concat", "follow", "same", "in")


@dataclass
class Programs:
    """Makes terms. `nested`: loops may read the variables of loops around them."""

    random: Random
    nested: bool
    variables: int = 0

    def term(self, depth: int, scope: Sequence[int], pool: list[Term], kinds: Sequence[str] = (*ONE, *TWO)) -> Term:
        """A term of at most this depth, that may read some variables; sometimes one that was made before."""
        random = self.random
        if pool and random.random() < 0.15:
            return random.choice(pool)
        if depth == 0 or random.random() < 0.15:
            if scope and random.random() < 0.6:
                return Term("variable", (), random.choice(scope))
            return Term(random.choice("rs"))
        if random.random() < 0.2 and (self.nested or not scope):
            made = self.loop(depth, scope, pool)
            if random.random() < 0.2:
                made = replace(made, kind="early", until=random.randrange(3))
        else:
            kind = random.choice(kinds)
            args = tuple(self.term(depth - 1, scope, pool, kinds) for _ in range(2 if kind in TWO else 1))
            made = Term(kind, args, random.randrange(1, SIZE))
        pool.append(made)
        return made

    def loop(self, depth: int, scope: Sequence[int], pool: list[Term]) -> Term:
        """A loop of one or two variables."""
        random = self.random
        own = tuple(self.variables + number for number in range(random.choice([1, 1, 2])))
        self.variables += len(own)
        starts = tuple(self.term(depth - 1, scope, pool) for _ in own)
        inside = (*scope, *own) if self.nested else own
        if random.random() < 0.3:
            steps = (self.term(depth - 1, inside, [], ADDING) for _ in own)
            more = (Term("concat", (step, Term("variable", (), one))) for step, one in zip(steps, own, strict=True))
            grown = (Term("distinct", (term,)) for term in more)
            return Term("loop", (*starts, *grown), random.randrange(len(own)), None, own)
        inner: list[Term] = [] if not self.nested else list(pool)
        changed = tuple(self.term(depth - 1, inside, inner) for _ in own)
        return Term("loop", (*starts, *changed), random.randrange(len(own)), random.choice([1, 2, 3]), own)


def random_program(random: Random, *, nested: bool) -> Term:
    """A program; its outermost operators may give rows negative counts, or the rounds of a loop."""
    programs, pool = Programs(random, nested), list[Term]()
    depth = random.choice([1, 2, 3, 4])
    made = programs.loop(depth, (), pool) if random.random() < 0.4 else programs.term(depth, (), pool)
    if random.random() < 0.2:
        return Term("concat", (made, Term("negate", (programs.term(2, (), pool),))))
    if random.random() < 0.2:
        loop = programs.loop(2, (), pool)
        return Term("trace", loop.args, loop.number, loop.rounds, loop.variables)
    return made


def contents(term: Term, tables: Mapping[str, Bag], variables: Mapping[int, Bag] | None = None) -> Bag:
    """The rows of a program, and how often each is there."""
    known = variables or {}
    if term.variables:
        found = _loop(term, tables, known)
        if term.kind == "early":
            return found[min(term.until, len(found) - 1)][term.number]
        if term.kind == "loop":
            return found[-1][term.number]
        traced: Bag = Counter()
        for round, bags in enumerate(found):
            for row, count in bags[term.number].items():
                traced[*row, round] += count
            for row, count in (found[round - 1][term.number] if round else {}).items():
                traced[*row, round] -= count
        return traced
    if term.kind in ("r", "s"):
        return tables[term.kind]
    if term.kind == "variable":
        return known[term.number]
    args = [contents(arg, tables, known) for arg in term.args]
    return _OPERATORS[term.kind](*args, term.number)


def _loop(term: Term, tables: Mapping[str, Bag], known: Mapping[int, Bag]) -> list[list[Bag]]:
    """The variables in each round."""
    count = len(term.variables)
    found = [[contents(start, tables, known) for start in term.args[:count]]]
    while term.rounds is None or len(found) <= term.rounds:
        inside = {**known, **dict(zip(term.variables, found[-1], strict=True))}
        found.append([contents(step, tables, inside) for step in term.args[count:]])
        if found[-1] == found[-2]:
            break
    return found


def _sum(rows: object) -> Bag:
    found: Bag = Counter()
    for row, count in rows:  # type: ignore[attr-defined]
        found[row] += count
    return found


def _each(function: Callable[[Value, Value, int], Sequence[Row]]) -> Callable[[Bag, int], Bag]:
    return lambda rows, k: _sum((made, n) for (a, b), n in rows.items() for made in function(a, b, k))


def _grouped(key: int, function: Callable[[list[Value]], Value]) -> Callable[[Bag, int], Bag]:
    def grouped(rows: Bag, k: int) -> Bag:
        groups: dict[Value, list[Value]] = defaultdict(list)
        for row in rows.elements():
            groups[row[key]].append(row[1])
        return Counter({(value, function(values)): 1 for value, values in groups.items()})

    return grouped


def _least(values: list[Value]) -> Value:
    return min((value for value in values if value is not None), default=None)


def _values(rows: Bag) -> dict[Value, list[Value]]:
    """The distinct values of each group, in order, NULL last."""
    found: dict[Value, list[Value]] = defaultdict(list)
    for a, b in sorted(rows, key=lambda row: (row[1] is None, row[1] or 0)):
        found[a].append(b)
    return found


def register(engine: hj.Engine) -> None:
    """Register the function that the programs call: each second row of a group."""
    def each_second(rows: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"b": rows["b"].to_pylist()[::2]})

    engine.register_reduce("each_second", each_second, returns={"b": "bigint"})


def _plus(b: Value, k: Value) -> Value:
    return None if b is None or k is None else (b + k) % SIZE


def _matching(fits: Callable[[Row, Row], bool], found: bool) -> Callable[[Bag, Bag, int], Bag]:
    return lambda x, y, k: Counter({row: n for row, n in x.items() if any(fits(row, one) for one in y) == found})


_OPERATORS: Mapping[str, Callable[..., Bag]] = {
    "map": _each(lambda a, b, k: [(a, _plus(b, k))]),
    "swap": _each(lambda a, b, k: [(b, a)]),
    "filter": _each(lambda a, b, k: [(a, b)] if a is not None and a != k else []),
    "series": _each(lambda a, b, k: [(a, i) for i in range(0 if b is None else b + 1)]),
    "distinct": lambda rows, k: Counter(dict.fromkeys(rows, 1)),
    "min": _grouped(0, _least),
    "count": _grouped(1, lambda values: len(values) % SIZE),
    "own": lambda rows, k: Counter((a, b) for a, values in _values(rows).items() for b in values[::2]),
    "all": lambda rows, k: Counter({(rows.total() % SIZE, max((b or 0 for _, b in rows), default=0)): 1}),
    "negate": lambda rows, k: Counter({row: -n for row, n in rows.items()}),
    "concat": lambda x, y, k: _sum([*x.items(), *y.items()]),
    "follow": lambda x, y, k: Counter({(a, d) for a, b in x for c, d in y if b == c and b is not None}),
    "same": lambda x, y, k: Counter({(a, _plus(b, d)) for a, b in x for c, d in y if a == c and a is not None}),
    "in": _matching(lambda x, y: x == y and None not in x, True),
    "not in": _matching(lambda x, y: x[0] == y[0] and x[0] is not None, False),
    "not followed": _matching(lambda x, y: x[1] == y[0] and x[1] is not None and (y[1] or 0) > 1, False),
}


def built(term: Term) -> hj.Collection:
    """The program as a collection; a term that is read twice is one collection."""
    made: dict[int, hj.Collection] = {}
    variables: dict[int, hj.Collection] = {}

    def build(term: Term) -> hj.Collection:
        if term.kind == "variable":
            return variables[term.number]
        if id(term) not in made:
            made[id(term)] = loop(term) if term.variables else operator(term, *map(build, term.args))
        return made[id(term)]

    def loop(term: Term) -> hj.Collection:
        count, trace = len(term.variables), None if term.kind == "loop" else "round"
        starts = {str(one): build(start) for one, start in zip(term.variables, term.args, strict=False)}

        def body(now: dict[str, hj.Collection]) -> dict[str, hj.Collection]:
            variables.update((int(one), collection) for one, collection in now.items())
            return {str(one): build(step) for one, step in zip(term.variables, term.args[count:], strict=True)}

        shown = str(term.variables[term.number])
        if count == 1:
            found = starts[shown].iterate(lambda now: body({shown: now})[shown], rounds=term.rounds, trace=trace)
        else:
            found = hj.iterate(starts, body, rounds=term.rounds, trace=trace)[shown]
        return found.filter(f"round <= {term.until}").map("a", "b") if term.kind == "early" else found

    def operator(term: Term, x: hj.Collection | None = None, y: hj.Collection | None = None) -> hj.Collection:
        if x is None:
            return hj.collection(term.kind)
        if y is not None:
            return two(term.kind, x, y)
        match term.kind:
            case "map":
                return x.map("a", b=f"(b + {hj.lit(term.number)}) % {SIZE}")
            case "swap":
                return x.map(a="this.b", b="this.a")
            case "filter":
                return x.filter(f"this.a <> {term.number} -- none else")
            case "series":
                return x.flat_map("generate_series(0, this.b)", "i").map("a", b="i")
            case "distinct":
                return x.distinct()
            case "min":
                return x.reduce(by="a", b="min(b)")
            case "count":
                return x.reduce(by={"a": "b"}, b=f"count(*) % {SIZE}")
            case "own":
                return x.reduce("each_second", by="a", order="b")
            case "all":
                return x.reduce(a=f"count(*) % {SIZE}", b="coalesce(max(b), 0)")
            case "negate":
                return x.negate()
        raise AssertionError(term.kind)

    def two(kind: str, x: hj.Collection, y: hj.Collection) -> hj.Collection:
        match kind:
            case "concat":
                return x.concat(y)
            case "follow":
                return x.join(y, "this.b = other.a", "this.a", b="other.b").distinct()
            case "same":
                return x.join(y, "a", "a", b=f"(this.b + other.b) % {SIZE}").distinct()
            case "in":
                return x.semijoin(y, on=["a", "b"])
            case "not in":
                return x.antijoin(y, "a")
            case "not followed":
                return x.antijoin(y, "this.b = other.a AND other.b > 1")
        raise AssertionError(kind)

    return build(term)
