"""Letters that Unicode's categories of letters do not have, and the C library does: by their codes in hexadecimal.

They are marks of vowels, as in Hindi, Thai and Arabic, digits other than 0 to 9, and letters in circles. PostgreSQL
asks the C library; so a word in Hindi is one match of `[[:alpha:]]+`. Between the codes of a range may be letters as
well.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import lru_cache
from typing import TypeAlias

_Ranges: TypeAlias = list[tuple[int, int]]

_LETTERS = (
    "345 5b0-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-657 659-669 670 6d6-6dc 6e1-6e8 6ed-6f9 711-73f 7a6-7b0 "
    "7c0-7c9 816-817 81b-82c 8d4-8df 8e3-8e9 8f0-93b 93e-94c 94e-94f 955-963 966-96f 981-983 9be-9c4 9c7-9c8 "
    "9cb-9cc 9d7 9e2-9e3 9e6-9ef a01-a03 a3e-a42 a47-a48 a4b-a4c a51 a66-a75 a81-a83 abe-ac5 ac7-ac9 acb-acc "
    "ae2-ae3 ae6-aef afa-afc b01-b03 b3e-b44 b47-b48 b4b-b4c b56-b57 b62-b63 b66-b6f b82 bbe-bc2 bc6-bc8 bca-bcc "
    "bd7 be6-bef c00-c03 c3e-c44 c46-c48 c4a-c4c c55-c56 c62-c63 c66-c6f c81-c83 cbe-cc4 cc6-cc8 cca-ccc cd5-cd6 "
    "ce2-ce3 ce6-cef d00-d03 d3e-d44 d46-d48 d4a-d4c d57 d62-d63 d66-d6f d81-d83 dcf-dd4 dd6 dd8-ddf de6-def "
    "df2-df3 e31-e3a e4d e50-e59 eb1-eb9 ebb-ebc ecd ed0-ed9 f20-f29 f71-f81 f8d-f97 f99-fbc 102b-1036 1038 "
    "103b-1049 1056-109d 1712-1713 1732-1733 1752-1753 1772-1773 17b6-17c8 17e0-17e9 1810-1819 1885-18a9 1920-192b "
    "1930-1938 1946-194f 19d0-19d9 1a17-1a1b 1a55-1a5e 1a61-1a74 1a80-1a89 1a90-1a99 1abf-1ac0 1acc-1ace 1b00-1b04 "
    "1b35-1b43 1b50-1b59 1b80-1ba9 1bac-1bb9 1be7-1bf1 1c24-1c36 1c40-1c49 1c50-1c59 1de7-1df4 24b6-24e9 2de0-2dff "
    "a620-a629 a674-a67b a69e-a69f a802 a80b-a827 a880-a8c3 a8c5 a8d0-a8d9 a8ff-a92a a947-a952 a980-a983 a9b4-a9bf "
    "a9d0-a9d9 a9e5-a9f9 aa29-aa36 aa43-aa4d aa50-aa59 aa7b-aabe aaeb-aaef aaf5 abe3-abea abf0-abf9 fb1e ff10-ff19 "
    "10376-1037a 104a0-104a9 10a01-10a03 10a05-10a06 10a0c-10a0f 10d24-10d27 10d30-10d39 10eab-10eac 11000-11045 "
    "11066-1106f 11073-11074 11082-110b8 110c2 110f0-110f9 11100-11132 11136-1113f 11145-11146 11180-111bf "
    "111ce-111d9 1122c-11234 11237 1123e 112df-112e8 112f0-112f9 11300-11303 1133e-11344 11347-11348 1134b-1134c "
    "11357 11362-11363 11435-11441 11443-11445 11450-11459 114b0-114c1 114d0-114d9 115af-115b5 115b8-115be "
    "115dc-115dd 11630-1163e 11640 11650-11659 116ab-116b5 116c0-116c9 1171d-1172a 11730-11739 1182c-11838 "
    "118e0-118e9 11930-11935 11937-11938 1193b-1193c 11940-11942 11950-11959 119d1-119d7 119da-119df 119e4 "
    "11a01-11a0a 11a35-11a3e 11a51-11a97 11c2f-11c36 11c38-11c3e 11c50-11c59 11c92-11ca7 11ca9-11cb6 11d31-11d36 "
    "11d3a 11d3c-11d3d 11d3f-11d41 11d43 11d47 11d50-11d59 11d8a-11d8e 11d90-11d91 11d93-11d96 11da0-11da9 "
    "11ef3-11ef6 16a60-16a69 16ac0-16ac9 16b50-16b59 16f4f-16f87 16f8f-16f92 16ff0-16ff1 1bc9e 1d7ce-1d7ff "
    "1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e140-1e149 1e2f0-1e2f9 1e947 1e950-1e959 "
    "1f130-1f149 1f150-1f169 1f170-1f189 1fbf0-1fbf9"
)
_UPPER = "2160-216f 24b6-24cf 1f130-1f149 1f150-1f169 1f170-1f189"  # numbers and letters in circles
_LOWER = (
    "aa ba 1c5 1c8 1cb 1f2 2b0-2b8 2c0-2c1 2e0-2e4 345 37a 1d2c-1d6a 1d78 1d9b-1dbf 2071 207f 2090-209c 2170-217f "
    "24d0-24e9 2c7c-2c7d a69c-a69d a770 a7f8-a7f9 ab5c-ab5f 10780 10783-10785 10787-107b0 107b2-107ba"
)
_SPACES = frozenset((0x20, 0x1680, *range(0x2000, 0x2007), *range(0x2008, 0x200B), 0x205F, 0x3000))
_PLANES = ((0, 0x323B0), (0xE0000, 0xE01F0))  # the others have no characters, or those of private use
_PRIVATE = [(0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)]


def _read(codes: str) -> _Ranges:
    pairs = (part.partition("-") for part in codes.split())
    return [(int(low, 16), int(high or low, 16)) for low, _, high in pairs]


def _spelled(ranges: _Ranges) -> str:
    """The ranges as RE2 has them inside brackets."""
    return "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in ranges)


LETTERS, UPPER, LOWER = (_spelled(_read(codes)) for codes in (_LETTERS, _UPPER, _LOWER))
_KNOWN = _read(_LETTERS)


def is_alphanumeric(char: str) -> bool:
    """Whether a character is a letter or a digit."""
    if unicodedata.category(char) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Nd"):
        return True
    at = bisect_right(_KNOWN, (ord(char), 0x110000)) - 1
    return at >= 0 and ord(char) <= _KNOWN[at][1]


@lru_cache(maxsize=1)
def signs() -> str:
    """All characters that show something and are neither letters nor digits, as RE2 has them inside brackets."""
    ranges: _Ranges = []
    for code in (code for start, end in _PLANES for code in range(start, end)):
        char = chr(code)
        if code in _SPACES or is_alphanumeric(char) or unicodedata.category(char) in ("Cc", "Cn", "Cs", "Zl", "Zp"):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return _spelled(ranges + _PRIVATE)
