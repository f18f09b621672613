/* Quotients of decimals of 128 bits, each rounded to the decimals that PostgreSQL gives it.

   `sql.functions.decimal_places` has the rule, and `engine.scalar.division` does the same without the kernel. The kernel gives up where a
   divisor is 0, a number of 128 bits is too short for a step, or the column has no room for a quotient. */

#include "columns.h"

typedef unsigned __int128 Word;

enum { GROUP = 4, SIGNIFICANT = 16, MOST = 38 };

static Word powers[MOST + 1];

/* Called once, before any thread reads them. */
void make_powers(void) {
    for (int i = 0; i <= MOST; i++) powers[i] = power_of_ten(i);
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
    made.first = (int)(made.number >> 64 ? made.number / powers[place] : (uint64_t)made.number / (uint64_t)powers[place]);
    return made;
}

/* number * 10^digits; 0 if that is too long. */
static inline int shift(Word number, int digits, Word *made) {
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

/* Whether all quotients were made. `width`: bytes of each. */
static int run(const Columns *operands, const int scales[3], Word limit, int width, int64_t length, char *out,
               uint8_t *bits) {
    const Column *left = &operands->at[0], *right = &operands->at[1];
    const int one = left->length == 1, other = right->length == 1;
    Operand a = one && length ? operand_of(decimal_at(left, 0), scales[0]) : (Operand){0};
    Operand b = other && length ? operand_of(decimal_at(right, 0), scales[1]) : (Operand){0};
    for (int64_t i = 0; i < length; i++) {
        __int128 made = 0;
        int there = is_valid(left, one ? 0 : i) && is_valid(right, other ? 0 : i);
        if (there) {
            if (!one) a = operand_of(decimal_at(left, i), scales[0]);
            if (!other) b = operand_of(decimal_at(right, i), scales[1]);
            if (b.number == 0 || !quotient(&a, &b, scales[0], scales[1], scales[2], limit, &made)) return 0;
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
