/* Quotients of decimals of 128 bits, each rounded to the decimals that PostgreSQL gives it.

   `sql.functions.decimal_places` has the rule, and `engine.scalar.division` does the same without the kernel. The kernel gives up where a
   divisor is 0, a number of 128 bits is too short for a step, or the column has no room for a quotient. */

#include "columns.h"

typedef unsigned __int128 Word;

enum { GROUP = 4, SIGNIFICANT = 16, MOST = 38, DIGITS = 20 }; /* powers of ten below 10^DIGITS have 64 bits */

static Word powers[MOST + 1];
static double parts[MOST + 1]; /* one through each power */

/* Called once, before any thread reads them. */
void make_powers(void) {
    for (int i = 0; i <= MOST; i++) powers[i] = power_of_ten(i), parts[i] = 1 / (double)powers[i];
}

typedef struct {
    Word number; /* without sign and point */
    int negative, weight;
    int first; /* the first digit in base 10000; its power of 10000 is the weight */
} Operand;

/* `place`: the power of ten, in units, of a digit in base 10000. */
static Operand operand_of(__int128 value, int scale) {
    Operand made = {value < 0 ? -(Word)value : (Word)value, value < 0, 0, 0};
    int place = scale % GROUP, weight = -(scale / GROUP);
    if (made.number == 0) return made;
    if (made.number < powers[place]) {
        made.weight = weight - 1;
        made.first = (int)made.number * (int)powers[GROUP - place];
        return made;
    }
    while (place + GROUP <= MOST && powers[place + GROUP] <= made.number) place += GROUP, weight++;
    made.weight = weight;
    made.first = (int)(made.number / powers[place]);
    return made;
}

/* number * 10^digits; 0 if that is too long. */
static inline int shift(Word number, int digits, Word *made) {
    if (digits < DIGITS && !(number >> 64)) {
        *made = (Word)(uint64_t)number * (uint64_t)powers[digits];
        return 1;
    }
    return digits <= MOST && !__builtin_mul_overflow(number, powers[digits], made);
}

/* Halves are rounded away from zero. */
static inline Word divided(Word a, Word b) {
    if (!(a >> 64) && !(b >> 64)) {
        uint64_t x = (uint64_t)a, y = (uint64_t)b, rest = x % y;
        return (Word)(x / y) + (rest >= y - rest);
    }
    Word found = a / b, rest = a - found * b;
    return found + (rest >= b - rest);
}

static int quotient(const Operand *a, const Operand *b, int scale1, int scale2, int scale, Word limit, __int128 *made) {
    int places = SIGNIFICANT - GROUP * (a->weight - b->weight - (a->first <= b->first));
    places = places < scale1 ? scale1 : places;
    places = places < scale2 ? scale2 : places;
    places = places > scale ? scale : places;
    int left = places + scale2 - scale1;
    Word above = a->number, below = b->number, found;
    if (left >= 0 ? !shift(above, left, &above) : !shift(below, -left, &below)) return 0;
    if (!shift(divided(above, below), scale - places, &found) || found >= limit) return 0;
    *made = a->negative != b->negative ? -(__int128)found : (__int128)found;
    return 1;
}

/* The same for numbers below 2^63, which most are: no step but one division is of 128 bits. */
typedef struct {
    uint64_t number;
    int negative, weight, first;
} Short;

/* Of numbers of so many bits: the place of the first digit of the least one, as in `operand_of`. */
typedef struct {
    int8_t place[65];
    int unit, digits; /* the first place; the decimals */
} Places;

static void make_places(int scale, Places *made) {
    made->unit = scale % GROUP, made->digits = scale;
    for (int bits = 0; bits < 65; bits++) {
        int place = made->unit;
        const Word least = bits ? (Word)1 << (bits - 1) : 0;
        while (place + GROUP < DIGITS && powers[place + GROUP] <= least) place += GROUP;
        made->place[bits] = (int8_t)place;
    }
}

/* 0: it is none. */
static inline int short_of(__int128 value, const Places *places, Short *made) {
    const int64_t whole = (int64_t)value;
    if (whole != value || whole == INT64_MIN) return 0;
    const uint64_t number = whole < 0 ? -(uint64_t)whole : (uint64_t)whole;
    int place = places->place[number ? 64 - __builtin_clzll(number) : 0];
    if (place + GROUP < DIGITS - 1 && (uint64_t)powers[place + GROUP] <= number) place += GROUP;
    const int64_t power = (int64_t)powers[place];
    made->number = number, made->negative = whole < 0, made->weight = (place - places->digits) / GROUP;
    if (number < (uint64_t)power) { /* below the first place */
        made->weight -= number != 0, made->first = (int)number * (int)powers[GROUP - place];
        return 1;
    }
    const int64_t found = (int64_t)((double)number * parts[place]), rest = (int64_t)number - found * power;
    made->first = (int)(found + (rest >= power) - (rest < 0)); /* the product may be one off */
    return 1;
}

/* (high, low) / by, where high < by. */
static inline uint64_t long_quotient(uint64_t high, uint64_t low, uint64_t by, uint64_t *rest) {
#if defined(__x86_64__) && defined(__GNUC__)
    uint64_t found;
    __asm__("divq %4" : "=a"(found), "=d"(*rest) : "a"(low), "d"(high), "r"(by) : "cc");
    return found;
#else
    const Word number = (Word)high << 64 | low;
    *rest = (uint64_t)(number % by);
    return (uint64_t)(number / by);
#endif
}

/* As `quotient`; 0: it is for that. */
static inline int short_quotient(const Short *a, const Short *b, int scale1, int scale2, int scale, Word limit, __int128 *made) {
    int places = SIGNIFICANT - GROUP * (a->weight - b->weight - (a->first <= b->first));
    places = places < scale1 ? scale1 : places;
    places = places < scale2 ? scale2 : places;
    places = places > scale ? scale : places;
    const int left = places + scale2 - scale1, right = scale - places;
    if (left < 0 || left >= DIGITS || right >= DIGITS) return 0;
    const Word above = (Word)a->number * (uint64_t)powers[left];
    const uint64_t by = b->number, high = (uint64_t)(above >> 64), low = (uint64_t)above;
    uint64_t rest;
    Word found, shifted;
    if (high == 0) found = low / by, rest = low % by;
    else if (high < by) found = long_quotient(high, low, by, &rest);
    else {
        found = (Word)(high / by) << 64;
        found |= long_quotient(high % by, low, by, &rest);
    }
    found += rest >= by - rest;
    if (!shift(found, right, &shifted) || shifted >= limit) return 0;
    *made = a->negative != b->negative ? -(__int128)shifted : (__int128)shifted;
    return 1;
}

typedef struct {
    Operand any;
    Short plain;
    int is_short;
} Either;

static inline void read_operand(const Column *column, int64_t i, const Places *places, Either *out) {
    out->is_short = short_of(decimal_at(column, i), places, &out->plain);
    if (!out->is_short) out->any = operand_of(decimal_at(column, i), places->digits);
}

static const Operand *whole_operand(const Either *either, const Column *column, int64_t i, int scale, Operand *made) {
    if (!either->is_short) return &either->any;
    *made = operand_of(decimal_at(column, i), scale);
    return made;
}

/* Whether all quotients were made. `width`: bytes of each. */
static int run(const Columns *operands, const int scales[3], Word limit, int width, int64_t length, char *out,
               uint8_t *bits) {
    const Column *left = &operands->at[0], *right = &operands->at[1];
    const int one = left->length == 1, other = right->length == 1;
    Places places[2];
    Either a, b;
    make_places(scales[0], &places[0]);
    make_places(scales[1], &places[1]);
    if (one && length) read_operand(left, 0, &places[0], &a);
    if (other && length) read_operand(right, 0, &places[1], &b);
    for (int64_t i = 0; i < length; i++) {
        const int64_t at = one ? 0 : i, by = other ? 0 : i;
        __int128 made = 0;
        const int there = is_valid(left, at) && is_valid(right, by);
        if (there) {
            if (!one) read_operand(left, i, &places[0], &a);
            if (!other) read_operand(right, i, &places[1], &b);
            if (b.is_short && b.plain.number == 0) return 0;
            if (!a.is_short || !b.is_short
                || !short_quotient(&a.plain, &b.plain, scales[0], scales[1], scales[2], limit, &made)) {
                Operand first, second;
                if (!quotient(whole_operand(&a, left, at, scales[0], &first), whole_operand(&b, right, by, scales[1], &second),
                              scales[0], scales[1], scales[2], limit, &made))
                    return 0;
            }
        }
        if (bits != NULL) bits[i >> 3] |= there << (i & 7);
        memcpy(out + i * width, &made, 16);
        if (width == 32) memset(out + i * width + 16, made < 0 ? 0xff : 0, 16);
    }
    return 1;
}

static int is_operand(const Column *column, int64_t length) {
    return column->kind == WORDS && column->width == 16 && column->format[0] == 'd' &&
           (column->length == length || column->length == 1);
}

/* (validity or None, values); or None. `scales`: of the operands and the results. `digits`: of the results at most. */
PyObject *py_quotients(PyObject *self, PyObject *args) {
    PyObject *list, *values = NULL, *validity = NULL, *result = NULL;
    Columns operands = {0};
    Py_ssize_t length;
    int scales[3], digits, width, going;
    if (!PyArg_ParseTuple(args, "Oiiiiin", &list, &scales[0], &scales[1], &scales[2], &digits, &width, &length)) return NULL;
    if ((going = open_columns(list, &operands)) < 1) goto done;
    going = operands.count == 2 && is_operand(&operands.at[0], length) && is_operand(&operands.at[1], length) &&
            (width == 16 || width == 32);
    for (int i = 0; i < 3; i++) going &= scales[i] >= 0 && scales[i] <= MOST;
    if (going == 0) goto done;
    going = -1;
    if ((values = PyBytes_FromStringAndSize(NULL, length * width)) == NULL) goto done;
    uint8_t *bits = NULL;
    if (operands.at[0].valid != NULL || operands.at[1].valid != NULL) {
        if ((validity = PyBytes_FromStringAndSize(NULL, (length + 7) / 8)) == NULL) goto done;
        bits = (uint8_t *)PyBytes_AsString(validity);
        memset(bits, 0, (length + 7) / 8);
    }
    PyThreadState *paused = pause_for(length);
    int whole = run(&operands, scales, powers[digits < MOST ? digits : MOST], width, length, PyBytes_AsString(values), bits);
    go_on(paused);
    if (whole) result = Py_BuildValue("OO", validity == NULL ? Py_None : validity, values);
    going = whole ? -1 : 0;
done:
    close_columns(&operands);
    Py_XDECREF(values);
    Py_XDECREF(validity);
    return going == 0 ? Py_NewRef(Py_None) : result;
}
