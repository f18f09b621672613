/* Whole numbers of up to 2048 bits: the operations that variances and regressions need. */

#include "big.h"

#include <math.h>
#include <string.h>

#define NOT_FINITE 255

typedef unsigned __int128 Bits;

static void trim(Big *number) {
    while (number->count && number->word[number->count - 1] == 0) number->count--;
    if (number->count == 0) number->negative = 0;
}

void big_of(__int128 number, Big *out) {
    Bits size = number < 0 ? -(Bits)number : (Bits)number;
    out->negative = number < 0, out->count = 4;
    for (int i = 0; i < 4; i++) out->word[i] = (uint32_t)(size >> (32 * i));
    trim(out);
}

/* The absolute value, of at most 128 bits. */
static Bits narrow(const Big *number) {
    Bits made = 0;
    for (int i = number->count - 1; i >= 0; i--) made = made << 32 | number->word[i];
    return made;
}

static void wide(Bits number, Big *out) {
    out->count = 4, out->negative = 0;
    for (int i = 0; i < 4; i++) out->word[i] = (uint32_t)(number >> (32 * i));
    trim(out);
}

int big_bits(const Big *number) {
    return number->count ? 32 * number->count - __builtin_clz(number->word[number->count - 1]) : 0;
}

int big_compare(const Big *one, const Big *other) {
    if (one->count != other->count) return one->count < other->count ? -1 : 1;
    for (int i = one->count - 1; i >= 0; i--)
        if (one->word[i] != other->word[i]) return one->word[i] < other->word[i] ? -1 : 1;
    return 0;
}

int big_read(const uint8_t *text, int64_t size, int dropped, Big *out) {
    int offset, words = (int)((size - 1 + 3) / 4);
    uint64_t carry = 1;
    out->count = 0, out->negative = 0;
    if (size == 0) return 1;
    offset = text[0] - dropped;
    if (text[0] == NOT_FINITE || size < 2 || offset < 0 || offset + words > BIG_WORDS) return 0;
    out->negative = text[size - 1] >> 7;
    memset(out->word, 0, 4 * (size_t)offset);
    for (int i = 0; i < words; i++) {
        uint32_t word = 0;
        for (int j = 0; j < 4; j++) {
            int64_t at = 1 + 4 * (int64_t)i + j;
            word |= (uint32_t)(at < size ? text[at] : out->negative ? 255 : 0) << (8 * j);
        }
        if (out->negative) carry += (uint32_t)~word, word = (uint32_t)carry, carry >>= 32;
        out->word[offset + i] = word;
    }
    out->count = offset + words;
    trim(out);
    return out->count > 0; /* the least number of so many words has no absolute value in them */
}

int big_product(const Big *one, const Big *other, Big *out) {
    if (one->count + other->count > BIG_WORDS) return 0;
    memset(out->word, 0, 4 * (size_t)(one->count + other->count));
    for (int i = 0; i < one->count; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < other->count; j++) {
            carry += (uint64_t)one->word[i] * other->word[j] + out->word[i + j];
            out->word[i + j] = (uint32_t)carry, carry >>= 32;
        }
        out->word[i + other->count] = (uint32_t)carry;
    }
    out->count = one->count + other->count, out->negative = one->negative != other->negative;
    trim(out);
    return 1;
}

int big_difference(const Big *one, const Big *other, Big *out) {
    int more = big_compare(one, other), negative = one->negative;
    int64_t carry = 0;
    if (one->negative != other->negative) {
        int count = one->count > other->count ? one->count : other->count;
        if (count == BIG_WORDS) return 0;
        for (int i = 0; i <= count; i++) {
            carry += (i < one->count ? one->word[i] : INT64_C(0)) + (i < other->count ? other->word[i] : INT64_C(0));
            out->word[i] = (uint32_t)carry, carry >>= 32;
        }
        out->count = count + 1, out->negative = negative;
    } else {
        const Big *large = more < 0 ? other : one, *small = more < 0 ? one : other;
        for (int i = 0; i < large->count; i++) {
            carry += (int64_t)large->word[i] - (i < small->count ? small->word[i] : INT64_C(0));
            out->word[i] = (uint32_t)carry, carry >>= 32;
        }
        out->count = large->count, out->negative = more < 0 ? !negative : negative;
    }
    trim(out);
    return 1;
}

int big_shifted(const Big *number, int bits, Big *out) {
    int words = bits >= 0 ? bits / 32 : -((31 - bits) / 32), rest = bits - 32 * words, from = words < 0 ? -words : 0;
    uint64_t carry = 0;
    if (number->count + words + 1 > BIG_WORDS) return 0;
    out->count = 0, out->negative = 0;
    if (number->count <= from) return rest && number->count == from && number->count
        ? (out->word[0] = number->word[from - 1] >> (32 - rest), out->count = 1, trim(out), 1) : 1;
    for (int i = 0; i < words; i++) out->word[i] = 0;
    if (from) carry = (uint64_t)number->word[from - 1] << rest >> 32;
    for (int i = from; i < number->count; i++) {
        carry |= (uint64_t)number->word[i] << rest;
        out->word[i + words] = (uint32_t)carry, carry >>= 32;
    }
    out->word[number->count + words] = (uint32_t)carry;
    out->count = number->count + words + 1;
    trim(out);
    return 1;
}

/* By one word. */
static void divide_by_word(const Big *one, uint32_t by, Big *out, Big *rest) {
    uint64_t left = 0;
    for (int i = one->count - 1; i >= 0; i--) {
        left = left << 32 | one->word[i];
        out->word[i] = (uint32_t)(left / by), left %= by;
    }
    out->count = one->count;
    rest->word[0] = (uint32_t)left, rest->count = 1;
}

/* Knuth's algorithm D: `by` has at least two words, and no more than the number. */
static int divide_by_words(const Big *one, const Big *other, Big *out, Big *rest) {
    const int shift = __builtin_clz(other->word[other->count - 1]), n = other->count, m = one->count - n;
    Big by;
    if (!big_shifted(other, shift, &by) || !big_shifted(one, shift, rest)) return 0;
    while (rest->count <= one->count) rest->word[rest->count++] = 0;
    for (int j = m; j >= 0; j--) {
        uint64_t top = (uint64_t)rest->word[j + n] << 32 | rest->word[j + n - 1];
        uint64_t guess = top / by.word[n - 1], left = top % by.word[n - 1];
        int64_t borrow = 0, less;
        while (guess >> 32 || guess * by.word[n - 2] > (left << 32 | rest->word[j + n - 2])) {
            guess--, left += by.word[n - 1];
            if (left >> 32) break;
        }
        for (int i = 0; i < n; i++) {
            uint64_t product = guess * by.word[i];
            less = (int64_t)rest->word[i + j] - borrow - (int64_t)(uint32_t)product;
            rest->word[i + j] = (uint32_t)less;
            borrow = (int64_t)(product >> 32) - (less >> 32);
        }
        less = (int64_t)rest->word[j + n] - borrow;
        rest->word[j + n] = (uint32_t)less;
        if (less < 0) {
            uint64_t carry = 0;
            guess--;
            for (int i = 0; i < n; i++) {
                carry += (uint64_t)rest->word[i + j] + by.word[i];
                rest->word[i + j] = (uint32_t)carry, carry >>= 32;
            }
            rest->word[j + n] += (uint32_t)carry;
        }
        out->word[j] = (uint32_t)guess;
    }
    out->count = m + 1;
    trim(rest);
    by = *rest;
    return big_shifted(&by, -shift, rest);
}

int big_quotient(const Big *one, const Big *other, Big *out, Big *rest) {
    if (other->count == 0) return 0;
    out->negative = rest->negative = 0;
    if (big_compare(one, other) < 0) {
        *rest = *one, rest->negative = 0, out->count = 0;
        return 1;
    }
    if (one->count <= 4) {
        Bits dividend = narrow(one), divisor = narrow(other);
        wide(dividend / divisor, out);
        wide(dividend % divisor, rest);
        return 1;
    }
    if (other->count == 1) divide_by_word(one, other->word[0], out, rest);
    else if (!divide_by_words(one, other, out, rest)) return 0;
    out->negative = rest->negative = 0;
    trim(out);
    trim(rest);
    return 1;
}

/* Newton's method from above; the first number has 50 bits that are right. */
int big_root(const Big *number, Big *out, int *exact) {
    int bits = big_bits(number), shift = bits > 62 ? (bits - 61) / 2 * 2 : 0;
    Big some, next, rest;
    *exact = 1, out->count = 0, out->negative = 0;
    if (bits == 0) return 1;
    if (!big_shifted(number, -shift, &some)) return 0;
    int half = shift / 2, fine = half < 20 ? half : 20;
    big_of((__int128)(uint64_t)ldexp(sqrt((double)(uint64_t)narrow(&some) + 1), fine) + 4, &some);
    if (!big_shifted(&some, half - fine, out)) return 0;
    for (;;) {
        if (!big_quotient(number, out, &next, &rest)) return 0;
        rest = next, rest.negative = 1;
        if (!big_difference(out, &rest, &some) || !big_shifted(&some, -1, &next)) return 0;
        if (big_compare(&next, out) >= 0) break;
        *out = next;
    }
    if (!big_product(out, out, &some)) return 0;
    *exact = big_compare(&some, number) == 0;
    return 1;
}
