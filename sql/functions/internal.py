"""Internal functions: what other functions are made of, and those of chance, which only queries may call."""

from __future__ import annotations

from halfjoin.sql.functions.signature import function
from halfjoin.sql.functions.sum_results import INTERNAL
from halfjoin.sql.types import numeric

LENGTH = numeric(22, 0)  # of an interval's length in microseconds

SET_RETURNING = (
    function("matches", INTERNAL, "The groups of each match", "text, text -> text[][] or error",
             "text, text, text -> text[][] or error"),
    function("format elements", INTERNAL, "format with VARIADIC", "text, text[] -> text or error"),
    function("random", INTERNAL, "A random number from 0 up to 1", "-> double precision"),
    function("gen_random_uuid", INTERNAL, "A random UUID", "-> uuid"),
    function("limit rows", INTERNAL, "The number of LIMIT, which is not negative", "bigint -> bigint or error"),
    function("offset rows", INTERNAL, "The number of OFFSET, which is not negative", "bigint -> bigint or error"),
    function("length of interval", INTERNAL, "The microseconds of an interval, with 30 days in a month",
             "interval -> numeric", numeric=lambda _: LENGTH),
    function("enum position", INTERNAL, "The number of a label among all", "enum, text[] -> integer"),
    function("enum label", INTERNAL, "The label of a number", "integer, text[] -> enum"),
    function("row value", INTERNAL, "A row as a value: whether it is there, and its members",
             "boolean, any... -> record"),
    function("row is given", INTERNAL, "Whether a row that is a value is there", "record -> boolean"),
    function("member of value", INTERNAL, "The member of a row with a number, from 0", "record, integer -> any"),
    function("row text", INTERNAL, "The text of a row with members of these texts", "text... -> text or error"),
    function("checked", INTERNAL, "The value, if a condition is not false; else a message",
             "any, boolean, text -> any or error"),
    function("subscripts", INTERNAL, "The numbers of so many elements, from the first one, or backwards to it",
             "integer, integer, boolean -> integer[]"),
    function("text of number", INTERNAL, "The text beside a number in a list", "bigint, bigint[], text[] -> text"),
    function("number of text", INTERNAL, "The number beside a text in a list", "text, text[], bigint[] -> bigint"),
    function("text of part", INTERNAL, "The text beside the number of a thing's part in a list",
             "bigint, bigint, bigint[], text[] -> text"),
    function("texts of numbers", INTERNAL, "The texts beside the numbers in a list",
             "bigint[], bigint[], text[] -> text"),
    function("text of named part", INTERNAL, "The text beside a number and a name in a list",
             "bigint, text, text[], text[] -> text"),
    function("type with modifier", INTERNAL, "A type's name with its length or digits", "text, integer -> text"),
    function("cut interval", INTERNAL, "Without what is smaller than a field", "interval, text -> interval"),
    function("extract by name", INTERNAL, "date_part with a unit of each row",
             *(f"text, {kind} -> double precision or error"
               for kind in ("timestamp", "timestamptz", "time", "interval"))),
    function("date_trunc by name", INTERNAL, "date_trunc with a unit of each row",
             *(f"text, {kind} -> {kind} or error" for kind in ("timestamp", "timestamptz", "interval"))),
    function("with element", INTERNAL, "The array with a value at the subscripts",
             "any[], any, integer... -> any[] or error"),
    function("with slice", INTERNAL, "The array with elements of the second between the bounds; the text has 1 for "
             "each bound that is written", "any[], any[], text, integer... -> any[] or error"),
    function("with part", INTERNAL, "The jsonb with another at a path; of NULL it makes an array, or else an object",
             "jsonb, jsonb, boolean, text[] -> jsonb or error"),
    function("letters of bytes", INTERNAL, "A text with a character for each byte", "bytea -> text"),
    function("one byte", INTERNAL, "The first byte of a text, or the byte of a code, as the type \"char\" shows it",
             "text -> text", "integer -> text or error"),
    function("code of byte", INTERNAL, "The code of a value of the type \"char\"", "text -> integer"),
    function("trimmed text", INTERNAL, "A numeric as text, without the zeros at its end", "numeric -> text"),
    function("value or null", INTERNAL, "The value, or NULL for a row for which the expression fails", "any -> any"),
    function("value fails", INTERNAL, "Whether an expression fails for a row", "any -> boolean"),
    function("not negative", INTERNAL, "The number, which is not negative", "bigint -> bigint or error"),
)  # fmt: skip
