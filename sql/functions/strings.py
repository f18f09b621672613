"""String functions; lengths and positions count characters (code points)."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.casting import cast, coerce
from halfjoin.sql.functions.nested_arrays import joined
from halfjoin.sql.functions.padding import padded
from halfjoin.sql.functions.signature import Function, Resolve, function
from halfjoin.sql.types import BYTEA, STRINGS, TEXT, Kind, SqlType


def printed(arg: Expr) -> Expr:
    """The argument as its type writes it, also if only an explicit cast may do so, as of an array."""
    return cast(arg, TEXT, explicit=True) if arg.type.kind is Kind.ARRAY else coerce(padded(arg), TEXT)


def as_printed(resolve: Resolve, arg: Expr) -> Expr:
    """The argument as text, as `concat` prints it: a boolean as one letter."""
    if arg.type.kind is Kind.BOOLEAN:
        letter = [Literal(word, TEXT) for word in ("t", "f")]
        return resolve("case", (resolve("is null", (arg,)), Literal(None, TEXT), arg, letter[0], letter[1]))
    return printed(arg)


def _concat(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if not args:
        raise UnsupportedSQL("concat without arguments")
    return Call("concat", tuple(as_printed(resolve, arg) for arg in args), TEXT)


def _concat_ws(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    if len(args) < 2:
        raise UnsupportedSQL("concat_ws takes a separator and at least one value")
    return Call("concat_ws", (coerce(args[0], TEXT), *(as_printed(resolve, arg) for arg in args[1:])), TEXT)


def _join(resolve: Resolve, args: Sequence[Expr]) -> Expr:
    """`||`: of text with any type, of bytea, or of arrays."""
    if len(args) != 2:
        raise UnsupportedSQL("|| takes two operands")
    left, right = (arg.type for arg in args)
    if Kind.ARRAY in (left.kind, right.kind):
        return _join_arrays(resolve, args, left, right)
    if Kind.BYTEA in (left.kind, right.kind) and all(type.kind in (Kind.BYTEA, Kind.UNKNOWN) for type in (left, right)):
        return Call("||", tuple(coerce(arg, BYTEA) for arg in args), BYTEA)
    if not any(type.kind in (*STRINGS, Kind.UNKNOWN) for type in (left, right)):
        raise UnsupportedSQL(f"no operator {left} || {right}", remedy="cast one side to text")
    return Call("||", tuple(coerce(arg, TEXT) for arg in args), TEXT)


def _join_arrays(resolve: Resolve, args: Sequence[Expr], left: SqlType, right: SqlType) -> Expr:
    a, b = args
    if left.kind is not Kind.ARRAY:
        a = cast(a, right, explicit=True) if left.kind is Kind.UNKNOWN else resolve("array", (a,))
    if right.kind is not Kind.ARRAY:
        b = cast(b, left, explicit=True) if right.kind is Kind.UNKNOWN else resolve("array", (b,))
    return joined(resolve, a, b)


def _trim(name: str, doc: str, examples: Sequence[tuple[str, str | None]]) -> Function:
    return function(name, "strings", f"Removes blanks, or the characters of the second argument, {doc}", "text -> text",
                    "text, text -> text", "bytea, bytea -> bytea",
                    evaluator="arrow, duckdb", examples=examples)  # fmt: skip


STRINGS_TABLE = (
    function("||", "strings", "Concatenates text with anything, bytea, or arrays", "text, text -> text", special=_join,
        examples=[("'a' || 'b'", "ab"), ("'a' || NULL", None), ("'n' || 1", "n1"), ("'t' || true", "ttrue"),
        ("1.50 || 'x'", "1.50x")]),
    function("length", "strings", "Number of characters; of bytes for bytea", "text -> integer", "bytea -> integer",
        examples=[("length('jose')", "4"), ("length('é')", "1"), ("length('')", "0"), ("length(NULL)", None),
        ("length('\\x0102'::bytea)", "2")]),
    function("octet_length", "strings", "Number of bytes", "text -> integer", "bytea -> integer", blanks=True,
        examples=[("octet_length('é')", "2"), ("octet_length('é'::char(3))", "4")]),
    function("lower", "strings", "Converts to lower case", "text -> text", examples=[
        ("lower('TOM')", "tom"), ("lower('ÀÉ')", "àé")]),
    function("upper", "strings", "Converts to upper case", "text -> text", examples=[
        ("upper('tom')", "TOM"), ("upper('àé')", "ÀÉ"), ("upper('straße')", "STRAßE")]),
    _trim("btrim", "at both ends", [("btrim('  a b ')", "a b"), ("btrim('xyxtrimyyx', 'xyz')", "trim"),
        ("btrim('\\x0102010201'::bytea, '\\x01'::bytea)", "\\x020102")]),
    _trim("ltrim", "at the left", [("ltrim('zzzytest', 'xyz')", "test"), ("ltrim('  a ')", "a ")]),
    _trim("rtrim", "at the right", [("rtrim('testxxzx', 'xyz')", "test"), ("rtrim(' a  ')", " a")]),
    function("substring", "strings", "From a position (the first is 1), at most so many characters",
        "text, integer -> text", "text, integer, integer -> text or error", "bytea, integer -> bytea",
        "bytea, integer, integer -> bytea or error",
        safe=lambda args: len(args) == 3 and isinstance(args[2], Literal) and (args[2].value or 0) >= 0,  # type: ignore[operator]
        evaluator="arrow, duckdb", examples=[
        ("substring('Thomas', 2, 3)", "hom"), ("substring('abc', 0, 2)", "a"), ("substring('abc', -1, 3)", "a"),
        ("substring('abc', 5)", ""), ("substring('abc', 2, 2147483647)", "bc"), ("substring('äöü', 2)", "öü"),
        ("substring('\\x010203'::bytea, 2, 1)", "\\x02"),
        ("substring('abc', 1, -1)", "ERROR: negative substring length not allowed")]),
    function("strpos", "strings", "Position of the first occurrence, 0 if none", "text, text -> integer",
        evaluator="arrow, duckdb", examples=[
        ("strpos('high', 'ig')", "2"), ("strpos('aéb', 'b')", "3"), ("strpos('a', 'z')", "0"),
        ("strpos('a', '')", "1")]),
    function("byte position", "strings", "Position of the first occurrence in a bytea, 0 if none",
        "bytea, bytea -> integer", examples=[("position('\\x0203'::bytea IN '\\x010203'::bytea)", "2")]),
    function("replace", "strings", "Replaces each occurrence", "text, text, text -> text",
        evaluator="arrow, duckdb", examples=[
        ("replace('abcdefabcdef', 'cd', 'XX')", "abXXefabXXef"), ("replace('abc', '', 'x')", "abc")]),
    function("split_part", "strings", "The nth part between delimiters, from the end if negative",
        "text, text, integer -> text or error", safe=lambda args: isinstance(args[2], Literal) and args[2].value != 0,
        evaluator="arrow, duckdb", examples=[
        ("split_part('abc~@~def~@~ghi', '~@~', 2)", "def"), ("split_part('a,b,c', ',', -1)", "c"),
        ("split_part('a,b', ',', 5)", ""), ("split_part('ab', '', 1)", "ab"), ("split_part('ab', '', 2)", ""),
        ("split_part('a,b', ',', 0)", "ERROR: field position must not be zero")]),
    function("left", "strings", "The first n characters; all but the last -n if negative", "text, integer -> text",
        evaluator="arrow, duckdb", examples=[
        ("left('abcde', 2)", "ab"), ("left('abcde', -2)", "abc"), ("left('a', -2)", "")]),
    function("right", "strings", "The last n characters; all but the first -n if negative", "text, integer -> text",
        evaluator="arrow, duckdb", examples=[
        ("right('abcde', 2)", "de"), ("right('abcde', -2)", "cde"), ("right('abc', 0)", "")]),
    function("lpad", "strings", "Pads on the left to n characters, or truncates to n", "text, integer -> text",
        "text, integer, text -> text", evaluator="arrow, duckdb", examples=[
        ("lpad('hi', 5, 'xy')", "xyxhi"), ("lpad('hello', 2)", "he"), ("lpad('a', 3)", "  a"),
        ("lpad('ab', 5, '')", "ab"),
        ("lpad('abc', -1)", "")]),
    function("rpad", "strings", "Pads on the right to n characters, or truncates to n", "text, integer -> text",
        "text, integer, text -> text", evaluator="arrow, duckdb", examples=[
        ("rpad('hi', 5, 'xy')", "hixyx"), ("rpad('hello', 2)", "he"), ("rpad('a', 3, '-')", "a--")]),
    function("starts_with", "strings", "Whether it begins with a prefix", "text, text -> boolean",
        evaluator="arrow, duckdb", examples=[
        ("starts_with('alphabet', 'alph')", "true"), ("starts_with('a', '')", "true"),
        ("starts_with('a', 'b')", "false")]),
    function("concat", "strings", "Concatenates the arguments as text; ignores NULL", "any... -> text", special=_concat,
        examples=[("concat('a', NULL, 2, true)", "a2t"), ("concat(NULL, NULL)", ""), ("concat(1.50, 'x')", "1.50x")]),
    function("concat_ws", "strings", "Concatenates as text, with the first argument between the others; ignores NULL",
        "text, any... -> text", special=_concat_ws, evaluator="arrow, duckdb", examples=[
        ("concat_ws(',', 'abcde', 2, NULL, 22)", "abcde,2,22"), ("concat_ws(NULL, 'a', 'b')", None),
        ("concat_ws(',', NULL, NULL)", ""), ("concat_ws('--', '', 'x')", "--x")]),
    function("reverse", "strings", "Reverses the characters", "text -> text", examples=[("reverse('abcdé')", "édcba")]),
)  # fmt: skip
