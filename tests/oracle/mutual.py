"""Random WITH MUTUALLY RECURSIVE programs over one table `inp (a, b)`, and an interpreter of them.

A program has up to three bindings. Each reads the table, itself and the others, and need not be monotone: rows that
come in one round may go in a later one. A binding may have a block of its own inside, which reads them, too. Numbers
stay below `SIZE`, so contents are few. A program need not settle.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

SIZE = 4
Row: TypeAlias = tuple[int, int]
Bag: TypeAlias = Counter[Row]


@dataclass(frozen=True)
class Term:
    """An operator over terms. `number`: of the binding that `var` reads, those of outer blocks first; what `map` adds;
    the binding that a `block` shows. `limit`: of the rounds of a block, whose bindings are the arguments. `divide`
    fails for a row whose `b` is 0."""

    kind: str
    args: tuple[Term, ...] = ()
    number: int = 0
    limit: int = 0


ONE = ("distinct", "min", "max", "count", "first", "numbered")
NESTED = 0.12  # how often a term is a block
TWO = ("union", "all", "except", "join", "in", "not in", "left")


def random_term(random: Random, depth: int, bindings: int) -> Term:
    """A term of at most this depth."""
    if depth == 0 or random.random() < 0.2:
        return Term("table") if random.random() < 0.35 else Term("var", (), random.randrange(bindings))
    if random.random() < NESTED:
        own = random.choice([1, 1, 2])
        args = tuple(random_term(random, depth - 1, bindings + own) for _ in range(own))
        return Term("block", args, random.randrange(own), random.choice([1, 2, 3, 6]))
    kind = random.choice(("map", *ONE, *TWO))
    args = tuple(random_term(random, depth - 1, bindings) for _ in range(2 if kind in TWO else 1))
    return Term(kind, args, random.randrange(1, SIZE))


def random_program(random: Random) -> list[Term]:
    """One to three bindings."""
    bindings = random.choice([1, 2, 2, 3])
    return [random_term(random, random.choice([1, 2, 2, 3]), bindings) for _ in range(bindings)]


def failing_program(random: Random) -> list[Term]:
    """A program whose bindings may fail: all rows of such a binding are divided."""
    return [Term("divide", (term,)) if random.random() < 0.7 else term for term in random_program(random)]


def read_by(program: Sequence[Term], shown: int, outer: int = 0) -> set[int]:
    """The bindings that a binding of a block reads, itself included. `outer`: how many names there are around it."""
    found, waiting = set[int](), [outer + shown]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += _reads(program[number - outer], outer + len(program)) if number >= outer else ()
    return found


def _reads(term: Term, names: int) -> set[int]:
    if term.kind == "block":
        return {number for number in read_by(term.args, term.number, names) if number < names}
    own = {term.number} if term.kind == "var" else set[int]()
    return own.union(*(_reads(arg, names) for arg in term.args))


def contents(program: Sequence[Term], table: Bag, limit: int) -> list[Bag]:
    """The bindings after at most `limit` rounds. In a round each is computed in turn from all as they are then."""
    return _block(program, table, limit, [])


def _block(program: Sequence[Term], table: Bag, limit: int, outer: Sequence[Bag]) -> list[Bag]:
    found: list[Bag] = [Counter() for _ in program]
    for _ in range(limit):
        before = [dict(bag) for bag in found]
        for number, term in enumerate(program):
            found[number] = _evaluate(term, table, [*outer, *found])
        if [dict(bag) for bag in found] == before:
            break
    return found


def _evaluate(term: Term, table: Bag, bindings: Sequence[Bag]) -> Bag:
    if term.kind == "block":
        return _block(term.args, table, term.limit, bindings)[term.number]
    args = [_evaluate(arg, table, bindings) for arg in term.args]
    match term.kind:
        case "table":
            return table
        case "var":
            return bindings[term.number]
        case "map":
            return _sum((a, (b + term.number) % SIZE) for a, b in args[0].elements())
        case "divide":
            return _sum((a, b + 0 // b) for a, b in args[0].elements())
        case "distinct":
            return Counter(args[0].keys())
        case "union":
            return Counter((args[0] + args[1]).keys())
        case "all":
            return Counter({row: min(count, 2) for row, count in (args[0] + args[1]).items()})
        case "except":
            return Counter(args[0].keys() - args[1].keys())
        case "join":
            return Counter({(a, d) for a, b in args[0] for c, d in args[1] if b == c})
        case "left":
            rows = {a: [d for c, d in args[1] if c == a] for a in range(SIZE)}
            return Counter({(a, d) for a, b in args[0] for d in rows[b] or [0]})
        case "in" | "not in":
            keys = {a for a, _ in args[1]}
            return Counter({row: n for row, n in args[0].items() if (row[0] in keys) == (term.kind == "in")})
    groups: dict[int, list[int]] = defaultdict(list)
    for a, b in sorted(args[0].elements()):
        groups[a].append(b)
    return _sum((a, value) for a, values in groups.items() for value in _OF_GROUP[term.kind](values))


_OF_GROUP: Mapping[str, Callable[[list[int]], Sequence[int]]] = {
    "min": lambda values: values[:1],
    "max": lambda values: values[-1:],
    "count": lambda values: [len(values) % SIZE],
    "first": lambda values: values[:2],
    "numbered": lambda values: [number % SIZE for number in range(1, len(values) + 1)],
}


def _sum(rows: object) -> Bag:
    found: Bag = Counter()
    found.update(rows)  # type: ignore[call-overload]
    return found


def text(program: Sequence[Term], limit: int, shown: int) -> str:
    """The program as a query of one of its bindings."""
    return _query(Term("block", tuple(program), shown, limit), [], [0])


def _query(block: Term, outer: Sequence[str], taken: list[int]) -> str:
    taken[0] += 1
    own = [f"v{taken[0]}_{number}" for number in range(len(block.args))]
    bindings = ", ".join(f"{name} (a bigint, b bigint) AS ({_sql(term, [*outer, *own], taken)})"
                         for name, term in zip(own, block.args, strict=True))  # fmt: skip
    return (f"WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT {block.limit}) {bindings} "
            f"SELECT a, b FROM {own[block.number]}")  # fmt: skip


def _sql(term: Term, names: Sequence[str], taken: list[int]) -> str:
    if term.kind == "block":
        return _query(term, names, taken)
    taken[0] += 1
    x, y = f"x{taken[0]}", f"y{taken[0]}"
    args = [f"({_sql(arg, names, taken)}) {alias}" for arg, alias in zip(term.args, (x, y), strict=False)]
    match term.kind:
        case "table":
            return "SELECT a, b FROM inp"
        case "var":
            return f"SELECT a, b FROM {names[term.number]}"
        case "map":
            return f"SELECT a, (b + {term.number}) % {SIZE} AS b FROM {args[0]}"
        case "divide":
            return f"SELECT a, b + 0 / b AS b FROM {args[0]}"
        case "distinct":
            return f"SELECT DISTINCT a, b FROM {args[0]}"
        case "min" | "max":
            return f"SELECT a, {term.kind}(b) AS b FROM {args[0]} GROUP BY a"
        case "count":
            return f"SELECT a, count(*) % {SIZE} AS b FROM {args[0]} GROUP BY a"
        case "first":
            numbered = f"SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS r FROM {args[0]}"
            return f"SELECT a, b FROM ({numbered}) {y} WHERE r <= 2"
        case "numbered":
            return f"SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) % {SIZE} AS b FROM {args[0]}"
        case "union":
            return f"SELECT a, b FROM {args[0]} UNION SELECT a, b FROM {args[1]}"
        case "all":
            every = f"SELECT a, b FROM {args[0]} UNION ALL SELECT a, b FROM {args[1]}"
            numbered = f"SELECT a, b, row_number() OVER (PARTITION BY a, b) AS r FROM ({every}) z{taken[0]}"
            return f"SELECT a, b FROM ({numbered}) w{taken[0]} WHERE r <= 2"
        case "except":
            return f"SELECT a, b FROM {args[0]} EXCEPT SELECT a, b FROM {args[1]}"
        case "join":
            return f"SELECT DISTINCT {x}.a, {y}.b FROM {args[0]} JOIN {args[1]} ON {x}.b = {y}.a"
        case "left":
            return f"SELECT DISTINCT {x}.a, coalesce({y}.b, 0) AS b FROM {args[0]} LEFT JOIN {args[1]} ON {x}.b = {y}.a"
        case "in":
            return f"SELECT a, b FROM {args[0]} WHERE a IN (SELECT a FROM {args[1]})"
        case "not in":
            return f"SELECT a, b FROM {args[0]} WHERE NOT EXISTS (SELECT 1 FROM {args[1]} WHERE {y}.a = {x}.a)"
    raise AssertionError(term.kind)
