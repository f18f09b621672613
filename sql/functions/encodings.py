"""Hashes, and bytes written as text."""

from __future__ import annotations

from halfjoin.sql.functions.signature import Function, function


def _hash(name: str, bits: int, abc: str) -> Function:
    return function(name, "strings", f"The SHA-2 hash of {bits} bits", "bytea -> bytea", examples=[
        (f"{name}('abc'::bytea)", f"\\x{abc}")])  # fmt: skip


ENCODINGS = (
    function("md5", "strings", "The MD5 hash, in hexadecimal digits", "text -> text", "bytea -> text", examples=[
        ("md5('abc')", "900150983cd24fb0d6963f7d28e17f72"), ("md5('')", "d41d8cd98f00b204e9800998ecf8427e")]),
    _hash("sha224", 224, "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
    _hash("sha256", 256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    _hash("sha384", 384, "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed"
                         "8086072ba1e7cc2358baeca134c825a7"),
    _hash("sha512", 512, "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                         "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"),
    function("encode", "strings", "Bytes as text: 'hex', 'base64' or 'escape'", "bytea, text -> text or error",
        examples=[("encode('\\x616263'::bytea, 'hex')", "616263"),
        ("encode('\\x616263ff00'::bytea, 'base64')", "YWJj/wA="),
        ("encode('\\x61620001ff5c'::bytea, 'escape')", "ab\\000\x01\\377\\\\"),
        ("encode('abc'::bytea, 'foo')", 'ERROR: unrecognized encoding: "foo"')]),
    function("decode", "strings", "Text as bytes: 'hex', 'base64' or 'escape'", "text, text -> bytea or error",
        examples=[("decode('61 6263', 'hex')", "\\x616263"), ("decode('YW Jj', 'base64')", "\\x616263"),
        ("decode('a\\\\b\\001c', 'escape')", "\\x615c620163"),
        ("decode('6', 'hex')", "ERROR: invalid hexadecimal data: odd number of digits"),
        ("decode('6g', 'hex')", 'ERROR: invalid hexadecimal digit: "g"'),
        ("decode('YWJ', 'base64')", "ERROR: invalid base64 end sequence"),
        ("decode('Y*', 'base64')", 'ERROR: invalid symbol "*" found while decoding base64 sequence'),
        ("decode('a\\9', 'escape')", "ERROR: invalid input syntax for type bytea")]),
    function("convert", "strings", "Bytes in one encoding as those in another, one of them UTF8",
        "bytea, text, text -> bytea or error", examples=[("convert('\\xc3a9'::bytea, 'UTF8', 'LATIN1')", "\\xe9"),
        ("convert('\\x80'::bytea, 'WIN1252', 'UTF8')", "\\xe282ac"),
        ("convert('a'::bytea, 'x', 'UTF8')", 'ERROR: invalid source encoding name "x"')]),
    function("convert_from", "strings", "The text of bytes in an encoding", "bytea, text -> text or error", examples=[
        ("convert_from('\\xc3a9'::bytea, 'UTF8')", "é"),
        ("convert_from('\\xe9'::bytea, 'LATIN1')", "é"), ("convert_from('\\xd6'::bytea, 'KOI8R')", "ж"),
        ("convert_from('\\xff'::bytea, 'UTF8')", 'ERROR: invalid byte sequence for encoding "UTF8": 0xff')]),
    function("convert_to", "strings", "The bytes of a text in an encoding", "text, text -> bytea or error", examples=[
        ("convert_to('é', 'UTF8')", "\\xc3a9"), ("convert_to('日本', 'GBK')", "\\xc8d5b1be"),
        ("convert_to('ß', 'WIN1252')", "\\xdf"),
        ("convert_to('€', 'LATIN1')", 'ERROR: character with byte sequence 0xe2 0x82 0xac in encoding "UTF8" has no '
                                      'equivalent in encoding "LATIN1"')]),
)  # fmt: skip
