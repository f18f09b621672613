/* Exact sums of floats, or of products of two, by group: each float is an integer in units of 2^-1074, each product one in
   units of 2^-2148, and integers add up in any order.

   A sum is a row of digits of 32 bits (engine.scalar.wide). While rows are added a digit lies in 64 bits, so nothing is
   carried. Only the digits are kept between the least and the greatest magnitude that occur. Most columns have values of
   much the same magnitude, or integers: their sums fit into one wide integer until the end. Without groups there is a
   wide integer for each exponent, to which the mantissas of its values are added. NaN and infinities are no such
   integers; the caller counts them apart. */

#include <math.h>

#include "columns.h"

#define WIDE 126 /* bits */
#define ONE 1074 /* 1 is 2^1074 units */
#define COUNTED 0x1p51
#define MIDDLE 0x1.8p52 /* added to a number of at most 2^51 it leaves the nearest integer in the lower bits */
#define MIDDLE_BITS INT64_C(0x4338000000000000)
#define BLOCK 1024
#define MOST_WEIGHT 1024 /* of a row, so that 2^30 rows do not overflow a digit */
#define MOST_ROWS (INT64_C(1) << 30)
#define MOST_DIGITS (INT64_C(1) << 24)
#define EXPONENTS 2048
#define TABLES 4
#define BELOW INT64_C(0xFFFFFFFF)

/* value = mantissa * 2^(shift - 1074); 0 for NaN and infinities, and 1 for the others. */
static inline int split(double value, int64_t *mantissa, int *shift) {
    uint64_t bits;
    int exponent;
    memcpy(&bits, &value, sizeof bits);
    exponent = (int)(bits >> 52 & 2047);
    *mantissa = (int64_t)(bits & UINT64_C(0xFFFFFFFFFFFFF)), *shift = 0;
    if (exponent) *mantissa |= INT64_C(1) << 52, *shift = exponent - 1;
    if (bits >> 63) *mantissa = -*mantissa;
    return exponent != 2047;
}

typedef struct {
    Columns values; /* one, or the two whose products are added up */
    Array diff, group;
    int64_t groups, first, count; /* the first digit of a sum, and how many */
    int64_t *digits;              /* digit after digit, of all groups */
    int least, most;              /* between which numbers the shifts of what is added lie */
    int unit[2], top[2];          /* of each column: its values are multiples of 2^unit units, and below 2^top */
    int integers;                 /* whether all values are integers of at most 51 bits */
} Sums;

/* What row i adds once, as mantissa * 2^shift units: 0 for NULL. */
static inline __int128 value_of(const Sums *sums, int64_t i, int *shift) {
    __int128 mantissa = 1;
    *shift = 0;
    for (Py_ssize_t c = 0; c < sums->values.count; c++) {
        int64_t factor;
        int more;
        if (!is_valid(sums->values.at + c, i)) return 0;
        split(float_at(sums->values.at + c, i), &factor, &more);
        mantissa *= factor, *shift += more;
    }
    return mantissa;
}

static int bits_of(int64_t number) { return 64 - __builtin_clzll((uint64_t)number | 1); }

/* So many values from number `from` on, 0 for NULL. */
static inline void take_block(const Column *column, int64_t from, int64_t size, double *block) {
    const double *values = (const double *)column->data + column->offset + from;
    if (column->valid == NULL && column->width == 8) memcpy(block, values, size * 8);
    else for (int64_t i = 0; i < size; i++) block[i] = is_valid(column, from + i) ? float_at(column, from + i) : 0;
}

/* Of a number of at most 2^51: the nearest integer. */
static inline int64_t nearest(double value) {
    int64_t bits;
    value += MIDDLE;
    memcpy(&bits, &value, sizeof bits);
    return bits - MIDDLE_BITS;
}

/* The most bits of a column's values if all are integers of at most 2^51, else -1. */
static int bits_of_integers(const Column *column) {
    double block[BLOCK], greatest = 0;
    for (int64_t from = 0, size; from < column->length; from += size) {
        int others = 0;
        size = column->length - from < BLOCK ? column->length - from : BLOCK;
        take_block(column, from, size, block);
        for (int64_t i = 0; i < size; i++) {
            double value = fabs(block[i]);
            others |= !(value <= COUNTED) | (value + MIDDLE - MIDDLE != value);
            greatest = value > greatest ? value : greatest;
        }
        if (others) return -1;
    }
    return bits_of((int64_t)greatest);
}

/* Finds between which magnitudes the values of a column lie. 0 if some value is not finite. */
static int measure(Sums *sums, Py_ssize_t c) {
    const Column *column = &sums->values.at[c];
    int unit = INT32_MAX, top = 0, least = INT32_MAX, most = 0, size = bits_of_integers(column);
    if (size >= 0) {
        sums->unit[c] = ONE, sums->top[c] = ONE + size;
        sums->least += ONE - 52, sums->most += ONE + size - 53;
        return 1;
    }
    sums->integers = 0;
    for (int64_t i = 0; i < column->length; i++) {
        int64_t mantissa;
        int shift, low, high;
        if (!is_valid(column, i)) continue;
        if (!split(float_at(column, i), &mantissa, &shift)) return 0;
        if (mantissa == 0) continue;
        low = shift + __builtin_ctzll((uint64_t)mantissa);
        high = shift + 64 - __builtin_clzll((uint64_t)(mantissa < 0 ? -mantissa : mantissa));
        unit = low < unit ? low : unit, top = high > top ? high : top;
        least = shift < least ? shift : least, most = shift > most ? shift : most;
    }
    sums->unit[c] = unit < top ? unit : top, sums->top[c] = top;
    sums->least += least < most ? least : most, sums->most += most;
    return 1;
}

/* Whether the two columns are one. */
static int is_square(const Columns *values) {
    const Column *one = &values->at[0], *other = &values->at[1];
    return values->count == 2 && one->data == other->data && one->valid == other->valid && one->offset == other->offset &&
           one->width == other->width;
}

/* Finds which digits the sums have. 0 if some value is not finite, or a weight or group has no place; else how many bits
   the sums have, counted from the least unit of what is added. */
static int find_digits(Sums *sums) {
    int size = bits_of(MOST_WEIGHT) + bits_of(sums->diff.length), unit = 0;
    sums->integers = 1;
    for (int64_t i = 0; i < (sums->diff.step ? sums->diff.length : sums->diff.length > 0); i++) {
        int64_t weight = int_at(&sums->diff, i);
        if (weight > MOST_WEIGHT || weight < -MOST_WEIGHT) return 0;
    }
    for (int64_t i = 0; i < (sums->group.step ? sums->group.length : sums->group.length > 0); i++)
        if ((uint64_t)int_at(&sums->group, i) >= (uint64_t)sums->groups) return 0;
    for (Py_ssize_t c = 0; c < sums->values.count; c++) {
        if (c == 1 && is_square(&sums->values))
            sums->unit[1] = sums->unit[0], sums->top[1] = sums->top[0], sums->least *= 2, sums->most *= 2;
        else if (!measure(sums, c)) return 0;
        size += sums->top[c] - sums->unit[c], unit += sums->unit[c];
    }
    if (size < WIDE) sums->first = unit / 32, sums->count = 5;
    else sums->first = sums->least / 32, sums->count = sums->most / 32 - sums->first + 5;
    return sums->count * sums->groups <= MOST_DIGITS ? size : 0;
}

/* Adds mantissa * 2^shift units to the sum of a group. */
static inline void add(const Sums *sums, int64_t group, __int128 mantissa, int shift) {
    const int64_t next = sums->groups;
    unsigned __int128 low = (unsigned __int128)(uint64_t)mantissa << (shift & 31);
    __int128 high = (mantissa >> 64) * (INT64_C(1) << (shift & 31));
    int64_t *into = sums->digits + (shift / 32 - sums->first) * next + group;
    into[0] += (int64_t)(uint32_t)low;
    into[next] += (int64_t)(uint32_t)(low >> 32);
    into[2 * next] += (int64_t)(uint32_t)(low >> 64) + (int64_t)(uint32_t)high;
    into[3 * next] += (int64_t)(uint32_t)(high >> 32);
    into[4 * next] += (int64_t)(high >> 64);
}

static void add_rows(const Sums *sums) {
    for (int64_t i = 0; i < sums->diff.length; i++) {
        int shift;
        __int128 mantissa = value_of(sums, i, &shift);
        if (mantissa != 0) add(sums, int_at(&sums->group, i), mantissa * int_at(&sums->diff, i), shift);
    }
}

/* A value in units of 2^unit. */
static inline __int128 integer_of(double value, int unit) {
    int64_t mantissa;
    int shift;
    split(value, &mantissa, &shift);
    if (shift < unit) return mantissa >> (unit - shift > 63 ? 63 : unit - shift); /* it has so many zeros, or is 0 */
    return (__int128)mantissa * ((__int128)1 << (shift - unit));
}

/* Adds rows whose sums fit into 126 bits: as integers, which are put into digits at the end. */
static void add_narrow(const Sums *sums, __int128 *totals) {
    const Column *one = &sums->values.at[0], *other = &sums->values.at[sums->values.count - 1];
    const int two = sums->values.count == 2, low = sums->unit[0], high = two ? sums->unit[1] : 0;
    for (int64_t i = 0; i < sums->diff.length; i++) {
        __int128 value;
        if (!is_valid(one, i) || !is_valid(other, i)) continue;
        value = integer_of(float_at(one, i), low) * int_at(&sums->diff, i);
        if (two) value *= integer_of(float_at(other, i), high);
        totals[int_at(&sums->group, i)] += value;
    }
}

/* As `add_narrow`, of values that are integers of at most 51 bits. `size`: the most bits of a sum. */
static void add_integers(const Sums *sums, __int128 *totals, int size) {
    const Column *one = &sums->values.at[0], *other = &sums->values.at[sums->values.count - 1];
    const int two = sums->values.count == 2, together = sums->group.step == 0 && sums->diff.step == 0;
    double block[BLOCK], more[BLOCK];
    for (int64_t from = 0, count; from < sums->diff.length; from += count) {
        count = sums->diff.length - from < BLOCK ? sums->diff.length - from : BLOCK;
        take_block(one, from, count, block);
        if (two) take_block(other, from, count, more);
        if (together && size < 63) {
            int64_t total = 0;
            if (two) for (int64_t i = 0; i < count; i++) total += nearest(block[i]) * nearest(more[i]);
            else for (int64_t i = 0; i < count; i++) total += nearest(block[i]);
            totals[int_at(&sums->group, 0)] += (__int128)total * int_at(&sums->diff, 0);
        } else for (int64_t i = 0; i < count; i++) {
            __int128 value = nearest(block[i]) * int_at(&sums->diff, from + i);
            totals[int_at(&sums->group, from + i)] += two ? value * nearest(more[i]) : value;
        }
    }
}

/* What has been added of an exponent: the lower 32 bits of mantissas, and the rest. */
typedef struct {
    int64_t low, high;
} Mantissas;

/* Adds mantissas up by their exponents, where all rows count the same: rows beside each other into tables of their own,
   so that none waits for another. 0 if a value is not finite. */
static int add_alike(const Sums *sums, __int128 *totals) {
    const Column *column = &sums->values.at[0];
    const int plain = column->valid == NULL && column->width == 8;
    const double *values = (const double *)column->data + column->offset;
    Mantissas(*tables)[EXPONENTS] = calloc(TABLES, sizeof *tables);
    int finite = tables != NULL;
    for (int64_t i = 0; finite && i < sums->diff.length; i++) {
        double value = plain ? values[i] : is_valid(column, i) ? float_at(column, i) : 0;
        int64_t mantissa;
        int shift;
        Mantissas *into;
        finite = split(value, &mantissa, &shift);
        into = &tables[i % TABLES][shift];
        into->low += mantissa & BELOW, into->high += mantissa >> 32;
    }
    for (int shift = 0; finite && shift < EXPONENTS; shift++) {
        for (int table = 0; table < TABLES; table++)
            totals[shift] += (__int128)tables[table][shift].high * (BELOW + 1) + tables[table][shift].low;
        totals[shift] *= int_at(&sums->diff, 0);
    }
    free(tables);
    return finite;
}

/* As `add_alike`, also of rows that count differently. 0 too if one counts too often. */
static int add_by_exponent(const Sums *sums, __int128 *totals) {
    const Column *column = &sums->values.at[0];
    for (int64_t i = 0; i < (sums->diff.step ? sums->diff.length : sums->diff.length > 0); i++) {
        int64_t times = int_at(&sums->diff, i);
        if (times > MOST_WEIGHT || times < -MOST_WEIGHT) return 0;
    }
    if (sums->diff.step == 0) return sums->diff.length == 0 || add_alike(sums, totals);
    for (int64_t i = 0; i < sums->diff.length; i++) {
        int64_t mantissa;
        int shift;
        if (!is_valid(column, i)) continue;
        if (!split(float_at(column, i), &mantissa, &shift)) return 0;
        totals[shift] += (__int128)mantissa * int_at(&sums->diff, i);
    }
    return 1;
}

/* As `py_float_sums`, of one group and one column. */
static PyObject *sum_alone(Sums *sums) {
    PyObject *made, *result = NULL;
    int least = EXPONENTS, most = 0;
    __int128 *totals = PyMem_Calloc(EXPONENTS, sizeof *totals);
    if (totals == NULL) return PyErr_NoMemory();
    PyThreadState *paused = pause_for(sums->diff.length);
    int finite = add_by_exponent(sums, totals);
    go_on(paused);
    if (!finite) {
        PyMem_Free(totals);
        return Py_NewRef(Py_None);
    }
    for (int shift = 0; shift < EXPONENTS; shift++)
        if (totals[shift] != 0) most = shift, least = least < shift ? least : shift;
    least = least < most ? least : most;
    sums->first = least / 32, sums->count = most / 32 - sums->first + 5;
    if ((made = PyByteArray_FromStringAndSize(NULL, sums->count * 8)) != NULL) {
        sums->digits = (int64_t *)PyByteArray_AsString(made);
        memset(sums->digits, 0, sums->count * 8);
        for (int shift = least; shift <= most; shift++)
            if (totals[shift] != 0) add(sums, 0, totals[shift], shift);
        result = Py_BuildValue("nO", (Py_ssize_t)sums->first, made);
        Py_DECREF(made);
    }
    PyMem_Free(totals);
    return result;
}

/* (first digit, digits): the sums of groups, or None. */
PyObject *py_float_sums(PyObject *self, PyObject *args) {
    PyObject *list, *diffs, *groups, *made = NULL, *result = NULL;
    Sums sums = {0};
    __int128 *totals = NULL;
    Py_ssize_t count;
    int going, size;
    if (!PyArg_ParseTuple(args, "OOOn", &list, &diffs, &groups, &count)) return NULL;
    if ((going = open_columns(list, &sums.values)) < 1 || (going = open_ints(diffs, &sums.diff)) < 1) goto done;
    if ((going = open_ints(groups, &sums.group)) < 1) goto done;
    going = (sums.values.count == 1 || sums.values.count == 2) && count > 0 && sums.diff.length == sums.group.length &&
            sums.diff.length < MOST_ROWS;
    for (Py_ssize_t c = 0; going == 1 && c < sums.values.count; c++)
        going = sums.values.at[c].kind == FLOATING && sums.values.at[c].length == sums.diff.length;
    if (going == 0) goto done;
    sums.groups = count;
    if (count == 1 && sums.values.count == 1 && sums.group.step == 0) {
        going = sums.group.length == 0 || int_at(&sums.group, 0) == 0;
        if (going) result = sum_alone(&sums), going = -1;
        goto done;
    }
    PyThreadState *paused = pause_for(sums.diff.length);
    going = size = find_digits(&sums);
    go_on(paused);
    if (going == 0) goto done;
    going = -1;
    if (size < WIDE && (totals = PyMem_Calloc(sums.groups, sizeof *totals)) == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    if ((made = PyByteArray_FromStringAndSize(NULL, sums.count * sums.groups * 8)) == NULL) goto done;
    sums.digits = (int64_t *)PyByteArray_AsString(made);
    memset(sums.digits, 0, sums.count * sums.groups * 8);
    paused = pause_for(sums.diff.length);
    if (totals == NULL) add_rows(&sums);
    else if (sums.integers) add_integers(&sums, totals, size);
    else add_narrow(&sums, totals);
    for (Py_ssize_t i = 0; totals != NULL && i < count; i++)
        add(&sums, i, totals[i], sums.unit[0] + (sums.values.count == 2 ? sums.unit[1] : 0));
    go_on(paused);
    going = 1;
    result = Py_BuildValue("nO", (Py_ssize_t)sums.first, made);
done:
    PyMem_Free(totals);
    close_columns(&sums.values);
    close_array(&sums.diff);
    close_array(&sums.group);
    Py_XDECREF(made);
    return going == 0 ? Py_NewRef(Py_None) : result;
}
