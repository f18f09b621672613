/* Kept sums of integers as decimals: the sums themselves, or divided by counts as PostgreSQL divides numerics.

   A quotient has the decimals that weights and first digits of base 10000 promise (sql.functions.decimal_places), is
   rounded once, halves away from zero, and gets zeros up to the decimals of its column. */

#include "sums.h"

#define GROUP 4
#define SIGNIFICANT 16
#define MOST_DIGITS 38

typedef struct {
    int digits;      /* of a result, at most */
    int divides;     /* by the counts */
    int given, made; /* decimals of the sums, and of the results */
    Wide powers[MOST_DIGITS + 1]; /* of 10 */
} Form;

static int has_digits(const Form *form, Wide number, int most) {
    return number < form->powers[most] && number > -form->powers[most];
}

static int floor_group(int exponent) { return exponent >= 0 ? exponent / GROUP : -((GROUP - 1 - exponent) / GROUP); }

/* The weight and the value of the first digit in base 10000 of a number with so many decimals; 0 and 0 of 0. */
static void leading(const Form *form, Wide number, int decimals, int *weight, Wide *first) {
    int length = 0, shift;
    *weight = 0, *first = 0;
    if (number == 0) return;
    while (length <= MOST_DIGITS && number >= form->powers[length]) length++;
    *weight = floor_group(length - 1 - decimals);
    shift = GROUP * *weight + decimals;
    *first = shift >= 0 ? number / form->powers[shift] : number * form->powers[-shift];
}

/* The average in units of its column; 0 if some number on the way has more than 128 bits. */
static int divide(const Form *form, Wide sum, int64_t count, Wide *result) {
    Wide dividend = sum < 0 ? -sum : sum, divisor = count < 0 ? -(Wide)count : count, first[2], quotient, factor;
    int weight[2], places;
    leading(form, dividend, form->given, &weight[0], &first[0]);
    leading(form, divisor, 0, &weight[1], &first[1]);
    places = SIGNIFICANT - GROUP * (weight[0] - weight[1] - (first[0] <= first[1]));
    if (places < form->given) places = form->given;
    if (places > form->made) places = form->made;
    factor = form->powers[places > form->given ? places - form->given : form->given - places];
    if (__builtin_mul_overflow(places > form->given ? dividend : divisor, factor,
                               places > form->given ? &dividend : &divisor))
        return 0;
    quotient = dividend / divisor;
    quotient += dividend % divisor >= divisor - dividend % divisor;
    if (__builtin_mul_overflow(quotient, form->powers[form->made - places], &quotient)) return 0;
    *result = (sum < 0) == (count < 0) ? quotient : -quotient;
    return 1;
}

/* (validity or None, values). What has no count, or a count of 0, is NULL. None if a result has more digits than its type, or
   a number on the way does not fit into 128 bits. */
PyObject *py_decimals(PyObject *self, PyObject *args) {
    PyObject *lists[2], *valid = NULL, *values = NULL, *result = NULL;
    Columns counts = {0}, totals = {0};
    Form form;
    int64_t length, nulls = 0;
    int going;
    if (!PyArg_ParseTuple(args, "OOipii", &lists[0], &lists[1], &form.digits, &form.divides, &form.given, &form.made))
        return NULL;
    if ((going = open_columns(lists[0], &counts)) < 1 || (going = open_columns(lists[1], &totals)) < 1) goto done;
    going = counts.count == 1 && totals.count == 1 && strcmp(counts.at->format, "l") == 0 && totals.at->kind == TEXT &&
            counts.at->length == totals.at->length && form.digits > 0 && form.digits <= MOST_DIGITS && form.given >= 0 &&
            form.given <= MOST_DIGITS && form.made >= 0 && form.made <= MOST_DIGITS;
    if (going == 0) goto done;
    form.powers[0] = 1;
    for (int i = 0; i < MOST_DIGITS; i++) form.powers[i + 1] = form.powers[i] * 10;
    length = totals.at->length;
    valid = PyBytes_FromStringAndSize(NULL, (length + 7) / 8), values = PyBytes_FromStringAndSize(NULL, length * 16);
    if (valid == NULL || values == NULL) goto done;
    uint8_t *bits = (uint8_t *)PyBytes_AsString(valid), *into = (uint8_t *)PyBytes_AsString(values);
    memset(bits, 0, (length + 7) / 8);
    PyThreadState *paused = pause_for(length);
    for (int64_t i = 0; going == 1 && i < length; i++) {
        const uint8_t *text;
        Wide sum = 0;
        int64_t count = is_valid(counts.at, i) ? integer_at(counts.at, i) : 0;
        int there = count != 0 && is_valid(totals.at, i);
        if (there) {
            int64_t size = text_at(totals.at, i, &text);
            going = read_sum(text, size, &sum) && has_digits(&form, sum, MOST_DIGITS) &&
                    (!form.divides || divide(&form, sum, count, &sum)) && has_digits(&form, sum, form.digits);
        }
        bits[i >> 3] |= there << (i & 7), nulls += !there;
        memcpy(into + 16 * i, &sum, 16);
    }
    go_on(paused);
    if (going == 1) result = PyTuple_Pack(2, nulls ? valid : Py_None, values);
done:
    if (going == 0) result = Py_NewRef(Py_None);
    close_columns(&counts);
    close_columns(&totals);
    Py_XDECREF(valid);
    Py_XDECREF(values);
    return result;
}
