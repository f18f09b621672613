"""Integers of any width, many side by side, in columns of 32-bit digits.

A sum must be exact, so that what is added and retracted leaves no trace. The sum of many floats or numerics needs more
than 64 bits. So a number is a row of digits, least significant first. While numbers are added, a digit lies in 64 bits
and may grow beyond 32; `bound` says how far, and digits carry only when they could overflow otherwise. A column of
small integers has one digit a number, and adding such numbers is one addition.

    sum over j of  digits[j, i] * 2^(32 * (at[i] + j))

is number `i`. `at` is how many digits are left out below; floats of different magnitudes begin at different places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MASK = (1 << 32) - 1
_HALF = 1 << 31
_LIMIT = 1 << 63  # what a digit must stay below


@dataclass(frozen=True, slots=True)
class Wide:
    """`digits`: digits x numbers. `at`: one a number. `bound`: no digit has a larger absolute value; below 2^63."""

    digits: Ints
    at: Ints
    bound: int

    def __len__(self) -> int:
        return int(self.digits.shape[1])

    @classmethod
    def of(cls, values: Ints) -> Wide:
        """The numbers of an array of int64."""
        if most(values) >= _LIMIT:  # the least int64 has no absolute value in 64 bits
            low = values & MASK
            return cls(np.stack([low, values >> 32]), np.zeros(len(values), np.int64), MASK)
        return cls(values.reshape(1, -1), np.zeros(len(values), np.int64), most(values))

    @classmethod
    def concat(cls, parts: Sequence[Wide]) -> Wide:
        """The numbers of several, one after the other."""
        if len(parts) == 1:
            return parts[0]
        count = max(len(part.digits) for part in parts)
        digits = np.concatenate([_padded(part.digits, count) for part in parts], axis=1)
        return cls(digits, np.concatenate([part.at for part in parts]), max(part.bound for part in parts))

    def take(self, positions: Ints) -> Wide:
        """The numbers at these positions."""
        return Wide(self.digits[:, positions], self.at[positions], self.bound)

    def balanced(self) -> Wide:
        """The same numbers with digits from -2^31 to 2^31 - 1, so that two of them can be multiplied."""
        if self.bound < _HALF:
            return self
        rows, carry = [], np.zeros(len(self), np.int64)
        bits = 32 * (len(self.digits) - 1) + self.bound.bit_length() + 2
        for row in (*self.digits, *[None] * (bits // 32 + 1 - len(self.digits))):
            total = carry if row is None else (row & MASK) + carry
            digit = ((total + _HALF) & MASK) - _HALF
            carry = (total - digit) >> 32
            if row is not None:
                carry += row >> 32
            rows.append(digit)
        while len(rows) > 1 and not rows[-1].any():
            rows.pop()
        return Wide(np.stack(rows), self.at, _HALF)

    def times(self, other: Wide) -> Wide:
        """The products of the numbers at the same positions."""
        if len(other.digits) == 1 and self.bound * other.bound < _LIMIT:
            return Wide(self.digits * other.digits, self.at + other.at, self.bound * other.bound)
        a, b = self.balanced(), other.balanced()
        digits = np.zeros((len(a.digits) + len(b.digits), len(self)), np.int64)
        for i, x in enumerate(a.digits):
            for j, y in enumerate(b.digits):
                product = x * y
                digits[i + j] += product & MASK
                digits[i + j + 1] += product >> 32
        return Wide(digits, a.at + b.at, 2 * min(len(a.digits), len(b.digits)) << 32)

    def shifted(self, bits: Ints) -> Wide:
        """The numbers times 2^bits; `bits` has one entry, not negative, a number."""
        if not bits.any():
            return self
        number = self.balanced()
        return Wide(number.digits << (bits & 31), number.at + (bits >> 5), _HALF << 31).balanced()

    def added(self, starts: Ints) -> Wide:
        """The sum of each segment. `starts`: where the segments begin; the first begins at 0, and none is empty."""
        lengths = _lengths(starts, len(self))
        numbers = self._with_room(lengths)
        bound = numbers.bound * _most_of(lengths)
        if len(starts) == len(self):
            return self
        if numbers._in_one_place():
            return Wide(np.add.reduceat(numbers.digits, starts, axis=1), numbers.at[starts], bound)
        base, segment, offset, count = numbers._window(starts, lengths)
        sums = np.zeros((count, len(starts)), np.int64)
        for j, row in enumerate(numbers.digits):
            np.add.at(sums.reshape(-1), (offset + j) * len(starts) + segment, row)
        return Wide(sums, base, bound)

    def running(self, starts: Ints) -> Wide:
        """For each number the sum of its segment up to it, itself included. `starts` as in `added`."""
        lengths = _lengths(starts, len(self))
        numbers = self._with_room(lengths)
        digits, at = numbers.digits, numbers.at
        if not numbers._in_one_place():
            base, segment, offset, count = numbers._window(starts, lengths)
            digits, at = np.zeros((count, len(self)), np.int64), base[segment]
            for j, row in enumerate(numbers.digits):
                digits[offset + j, np.arange(len(self))] = row
        sums = np.cumsum(digits, axis=1)  # over all segments; where it overflows, the difference below is right again
        before = np.where(starts > 0, sums[:, starts - 1], 0)
        return Wide(sums - np.repeat(before, lengths, axis=1), at, numbers.bound * _most_of(lengths))

    def grounded(self) -> Wide:
        """The same numbers, all with `at` 0."""
        if not self.at.any():
            return self
        digits = np.zeros((len(self.digits) + int(self.at.max()), len(self)), np.int64)
        for j, row in enumerate(self.digits):
            digits[self.at + j, np.arange(len(self))] = row
        return Wide(digits, np.zeros(len(self), np.int64), self.bound)

    def narrow(self) -> tuple[Ints, NDArray[np.bool_]]:
        """The numbers as int64, and which of them do not fit."""
        numbers = self.grounded()
        if len(numbers.digits) == 1:
            return numbers.digits[0], np.zeros(len(self), np.bool_)
        words = numbers.words()
        values: Ints = np.ascontiguousarray(words[:2].T).view("<i8")[:, 0]
        return values, (words[2:] != np.where(values < 0, MASK, 0)).any(0)

    def fields(self, count: int, words: int) -> list[Wide]:
        """Numbers of so many words each, that lie one above the other in each number; each has its own sign."""
        given = self.grounded().words()
        missing = words * count - len(given)
        if missing > 0:
            given = np.concatenate([given, np.repeat(given[-1:], missing, axis=0)])
        found, carry = [], np.zeros(len(self), np.int64)
        for field in range(count):
            digits = given[words * field : words * (field + 1)].astype(np.int64)
            digits[0] += carry  # a negative field below has borrowed 1 from this one
            carried = Wide(digits, np.zeros(len(self), np.int64), MASK + 1).words()
            digits = carried[:words].astype(np.int64)
            negative = digits[-1] >> 31
            digits[-1] -= negative << 32
            carry = carried[words] + negative
            found.append(Wide(digits, np.zeros(len(self), np.int64), MASK))
        return found

    def words(self) -> NDArray[np.uint32]:
        """The numbers in two's complement, words x numbers; the last word has the sign and nothing else."""
        count = len(self.digits)
        words = np.empty((count + 2, len(self)), np.uint32)
        carry = np.zeros(len(self), np.int64)
        for j, row in enumerate(self.digits):
            total = (row & MASK) + carry
            words[j] = total & MASK
            carry = (row >> 32) + (total >> 32)
        words[count], words[count + 1] = carry & MASK, (carry >> 32) & MASK
        return words

    def magnitudes(self) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """The words of the absolute values, and which numbers are negative."""
        words = self.words()
        negative = words[-1] != 0
        if negative.any():
            words = Wide(np.where(negative, -self.digits, self.digits), self.at, self.bound).words()
        return words, negative

    def _with_room(self, lengths: Ints) -> Wide:
        """The same numbers, with digits so small that no segment's sum overflows."""
        return self if self.bound * _most_of(lengths) < _LIMIT else self.balanced()

    def _in_one_place(self) -> bool:
        """Whether all numbers have the same `at`."""
        return not len(self) or bool((self.at == self.at[0]).all())

    def _window(self, starts: Ints, lengths: Ints) -> tuple[Ints, Ints, Ints, int]:
        """Each segment's least `at`; for each number its segment and its offset from there; the digits of a sum."""
        base = np.minimum.reduceat(self.at, starts)
        segment = np.repeat(np.arange(len(starts)), lengths)
        offset = self.at - base[segment]
        return base, segment, offset, int(offset.max()) + len(self.digits)


def most(values: Ints) -> int:
    """The largest absolute value; 0 if there are none."""
    return max(-int(values.min()), int(values.max())) if len(values) else 0


def _padded(digits: Ints, count: int) -> Ints:
    missing = count - len(digits)
    return digits if not missing else np.concatenate([digits, np.zeros((missing, digits.shape[1]), np.int64)])


def _lengths(starts: Ints, total: int) -> Ints:
    return np.diff(starts, append=total)


def _most_of(lengths: Ints) -> int:
    return int(lengths.max()) if len(lengths) else 1
