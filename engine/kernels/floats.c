/* Exact sums of floats, or of products of two, by group: each float is an integer in units of 2^-1074, each product one in
   units of 2^-2148, and integers add up in any order.

   A sum is a row of digits of 32 bits (engine.scalar.wide). While rows are added a digit lies in 64 bits, so nothing is
   carried. Only the digits are kept between the least and the greatest magnitude that occur. NaN and infinities are no
   such integers; the caller counts them apart. */

#include "columns.h"

#define MOST_WEIGHT 1024 /* of a row, so that 2^30 rows do not overflow a digit */
#define MOST_ROWS (INT64_C(1) << 30)
#define MOST_DIGITS (INT64_C(1) << 24)

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
} Sums;

/* What row i adds once, as mantissa * 2^shift units: 0 for NULL. Returns 0 if a value is not finite. */
static inline int value_of(const Sums *sums, int64_t i, __int128 *mantissa, int *shift) {
    *mantissa = 1, *shift = 0;
    for (Py_ssize_t c = 0; c < sums->values.count; c++)
        if (!is_valid(sums->values.at + c, i)) *mantissa = 0;
    if (*mantissa == 0) return 1;
    for (Py_ssize_t c = 0; c < sums->values.count; c++) {
        int64_t factor;
        int more;
        if (!split(float_at(sums->values.at + c, i), &factor, &more)) return 0;
        *mantissa *= factor, *shift += more;
    }
    return 1;
}

/* Finds which digits the sums have; 0 if some value is not finite, or a weight or group has no place. */
static int find_digits(Sums *sums) {
    int least = INT32_MAX, most = 0;
    for (int64_t i = 0; i < sums->diff.length; i++) {
        int64_t weight = int_at(&sums->diff, i);
        __int128 mantissa;
        int shift;
        if (weight > MOST_WEIGHT || weight < -MOST_WEIGHT) return 0;
        if ((uint64_t)int_at(&sums->group, i) >= (uint64_t)sums->groups) return 0;
        if (!value_of(sums, i, &mantissa, &shift)) return 0;
        if (mantissa == 0) continue;
        if (shift < least) least = shift;
        if (shift > most) most = shift;
    }
    if (least > most) least = most;
    sums->first = least / 32, sums->count = most / 32 - sums->first + 5;
    return sums->count * sums->groups <= MOST_DIGITS;
}

static void add_rows(const Sums *sums) {
    const int64_t next = sums->groups;
    for (int64_t i = 0; i < sums->diff.length; i++) {
        __int128 mantissa, high;
        unsigned __int128 low;
        int shift;
        if (!value_of(sums, i, &mantissa, &shift) || mantissa == 0) continue;
        mantissa *= int_at(&sums->diff, i); /* at most 117 bits */
        low = (unsigned __int128)(uint64_t)mantissa << (shift & 31);
        high = (mantissa >> 64) * (INT64_C(1) << (shift & 31));
        int64_t *into = sums->digits + (shift / 32 - sums->first) * next + int_at(&sums->group, i);
        into[0] += (int64_t)(uint32_t)low;
        into[next] += (int64_t)(uint32_t)(low >> 32);
        into[2 * next] += (int64_t)(uint32_t)(low >> 64) + (int64_t)(uint32_t)high;
        into[3 * next] += (int64_t)(uint32_t)(high >> 32);
        into[4 * next] += (int64_t)(high >> 64);
    }
}

/* (first digit, digits): the sums of groups, or None. */
PyObject *py_float_sums(PyObject *self, PyObject *args) {
    PyObject *list, *diffs, *groups, *made = NULL, *result = NULL;
    Sums sums = {0};
    Py_ssize_t count;
    int going;
    if (!PyArg_ParseTuple(args, "OOOn", &list, &diffs, &groups, &count)) return NULL;
    if ((going = open_columns(list, &sums.values)) < 1 || (going = open_ints(diffs, &sums.diff)) < 1) goto done;
    if ((going = open_ints(groups, &sums.group)) < 1) goto done;
    going = (sums.values.count == 1 || sums.values.count == 2) && count > 0 && sums.diff.length == sums.group.length &&
            sums.diff.length < MOST_ROWS;
    for (Py_ssize_t c = 0; going == 1 && c < sums.values.count; c++)
        going = sums.values.at[c].kind == FLOATING && sums.values.at[c].length == sums.diff.length;
    if (going == 0) goto done;
    sums.groups = count;
    PyThreadState *paused = pause_for(sums.diff.length);
    going = find_digits(&sums);
    go_on(paused);
    if (going == 0) goto done;
    going = -1;
    if ((made = PyByteArray_FromStringAndSize(NULL, sums.count * sums.groups * 8)) == NULL) goto done;
    sums.digits = (int64_t *)PyByteArray_AsString(made);
    memset(sums.digits, 0, sums.count * sums.groups * 8);
    paused = pause_for(sums.diff.length);
    add_rows(&sums);
    go_on(paused);
    going = 1;
    result = Py_BuildValue("nO", (Py_ssize_t)sums.first, made);
done:
    close_columns(&sums.values);
    close_array(&sums.diff);
    close_array(&sums.group);
    Py_XDECREF(made);
    return going == 0 ? Py_NewRef(Py_None) : result;
}
