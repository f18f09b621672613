"""Functions of characters and their codes: translate, chr, repeat, overlay, ...; and of the bytes of a bytea."""

from __future__ import annotations

from halfjoin.sql.functions.signature import function

_OVERLAY = "{0}, {0}, integer -> {0} or error", "{0}, {0}, integer, integer -> {0} or error"


CHARACTERS = (
    function("translate", "strings", "Replaces each character of the second argument by that of the third",
        "text, text, text -> text or error", examples=[
        ("translate('12345', '143', 'ax')", "a2x5"), ("translate('aéb', 'é', 'xy')", "axb"),
        ("translate('aab', 'aa', 'xy')", "xxb"), ("translate('abc', '', 'x')", "abc")]),
    function("initcap", "strings", "Each word's first letter in upper case, the others in lower case", "text -> text",
        examples=[("initcap('hi THOMAS')", "Hi Thomas"), ("initcap('o''neil-smith 3RD')", "O'Neil-Smith 3rd")]),
    function("ascii", "strings", "The code of the first character", "text -> integer", examples=[
        ("ascii('x')", "120"), ("ascii('é')", "233"), ("ascii('')", "0")]),
    function("chr", "strings", "The character of a code", "integer -> text or error", examples=[
        ("chr(65)", "A"), ("chr(233)", "é"), ("chr(0)", "ERROR: null character not permitted"),
        ("chr(-1)", "ERROR: character number must be positive"),
        ("chr(1114112)", "ERROR: requested character too large for encoding: 1114112"),
        ("chr(55296)", "ERROR: requested character not valid for encoding: 55296")]),
    function("repeat", "strings", "So many copies", "text, integer -> text", examples=[
        ("repeat('Pg', 4)", "PgPgPgPg"), ("repeat('x', 0)", ""), ("repeat('x', -3)", "")]),
    function("overlay", "strings", "Replaces characters from a position, as many as the new text has or n",
        *(line.format(type) for type in ("text", "bytea") for line in _OVERLAY), examples=[
        ("overlay('Txxxxas' PLACING 'hom' FROM 2 FOR 4)", "Thomas"), ("overlay('Txxxxas', 'hom', 2)", "Thomxas"),
        ("overlay('abc', 'X', 2, 0)", "aXbc"), ("overlay('abc', 'X', 2, -1)", "aXabc"),
        ("overlay('abc', 'X', 10)", "abcX"),
        ("overlay('abc', 'X', 0)", "ERROR: negative substring length not allowed")]),
    function("to_hex", "strings", "In hexadecimal digits, negative numbers as two's complement", "integer -> text",
        "bigint -> text", examples=[("to_hex(255)", "ff"), ("to_hex(-1)", "ffffffff"),
        ("to_hex((-1)::bigint)", "ffffffffffffffff")]),
    function("bit_length", "strings", "Number of bits", "text -> integer", "bytea -> integer",
        examples=[("bit_length('jose')", "32"), ("bit_length('é')", "16"), ("bit_length('a'::char(7))", "8")]),
    function("unistr", "strings", "Replaces escapes `\\XXXX`, `\\+XXXXXX`, `\\uXXXX` and `\\UXXXXXXXX` by characters",
        "text -> text or error", examples=[("unistr('d\\0061t\\+000061')", "data"), ("unistr('\\u00e9\\\\')", "é\\"),
        ("unistr('\\00')", "ERROR: invalid Unicode escape")]),
    function("normalize", "strings", "In one of Unicode's normal forms: NFC, NFD, NFKC or NFKD",
        "text -> text", "text, text -> text or error", examples=[("length(normalize('é', NFD))", "2"),
        ("normalize(U&'e\\0301')", "é"), ("normalize('ﬁ', NFKC)", "fi"), ("normalize(NULL, NFC)", None)]),
    function("is_normalized", "strings", "Whether it is in that form: `x IS NFC NORMALIZED`",
        "text -> boolean", "text, text -> boolean or error", examples=[("'é' IS NFC NORMALIZED", "true"),
        ("'é' IS NFD NORMALIZED", "false"), ("'ﬁ' IS NOT NFKC NORMALIZED", "true"), ("'a' IS NORMALIZED", "true"),
        ("is_normalized('a', 'x')", "ERROR: invalid normalization form: x")]),
    function("get_bit", "strings", "The nth bit, from 0; the lowest of a byte is the first",
        "bytea, bigint -> integer or error", examples=[("get_bit('\\x1234'::bytea, 1)", "1"),
        ("get_bit('\\x1234'::bytea, 10)", "1"),
        ("get_bit('\\x12'::bytea, 8)", "ERROR: index 8 out of valid range, 0..7")]),
    function("set_bit", "strings", "With the nth bit, from 0, replaced", "bytea, bigint, integer -> bytea or error",
        examples=[("set_bit('\\x1234'::bytea, 0, 1)", "\\x1334"), ("set_bit('\\x12'::bytea, 1, 0)", "\\x10"),
        ("set_bit('\\x12'::bytea, 1, 2)", "ERROR: new bit must be 0 or 1")]),
    function("get_byte", "strings", "The nth byte, from 0", "bytea, integer -> integer or error", examples=[
        ("get_byte('\\x1234'::bytea, 1)", "52"),
        ("get_byte('\\x1234'::bytea, 5)", "ERROR: index 5 out of valid range, 0..1")]),
    function("set_byte", "strings", "With the nth byte, from 0, replaced", "bytea, integer, integer -> bytea or error",
        examples=[("set_byte('\\x1234'::bytea, 1, 255)", "\\x12ff"),
        ("set_byte('\\x1234'::bytea, 2, 0)", "ERROR: index 2 out of valid range, 0..1")]),
)  # fmt: skip
