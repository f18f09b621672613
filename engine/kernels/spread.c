/* Variances, covariances and regressions from kept sums, group by group: exact, and rounded once (engine.scalar.spread).

   Groups that are not plain are left to the caller: with NaN, negative counts or variances, results that do not fit, and
   numbers of more than 2048 bits. */

#include <math.h>

#include "big.h"
#include "columns.h"

#define GROUP 4
#define SIGNIFICANT 16
#define MOST_POWERS 160
#define MOST_SUMS 5
#define FLOAT_UNIT 1074
#define FRACTION 66 /* bits of a quotient that is rounded to a float, at least; a root has as many */

typedef enum { POPULATION, SAMPLE, DIVIDED, SLOPE, INTERCEPT, CORRELATION } Formula;
typedef enum { LEFT, NOTHING, MADE } Outcome; /* to the caller; NULL; a result */

typedef struct {
    Formula formula;
    int root, exact, given, digits, made; /* decimals of the values; the digits and decimals of the type */
    double constant;                      /* the result where the second variable does not vary; NaN: NULL */
    int sums, units[MOST_SUMS];           /* and of each of them the power of its unit */
    Big powers[MOST_POWERS];              /* of 10 */
} Form;

typedef struct {
    Big over, under;
    int power; /* of the unit */
} Ratio;

/* n * xy - x * y */
static int centred(int64_t n, const Big *x, const Big *y, const Big *xy, Big *out) {
    Big count, one, other;
    big_of(n, &count);
    return big_product(&count, xy, &one) && big_product(x, y, &other) && big_difference(&one, &other, out);
}

static Outcome ratio_of(const Form *form, int64_t n, const Big *sum, Ratio *ratio, double *constant) {
    const Big *x = &sum[0], *y = form->sums == 2 ? x : &sum[1], *last = &sum[form->sums - 1];
    Big count, square, other, product;
    ratio->power = 2;
    big_of(n, &count);
    switch (form->formula) {
    case POPULATION: case SAMPLE: case DIVIDED:
        if (form->formula == SAMPLE && n == 1) return NOTHING;
        big_of(form->formula == DIVIDED ? n : (__int128)n * (form->formula == SAMPLE ? n - 1 : n), &ratio->under);
        return centred(n, x, y, last, &ratio->over) ? MADE : LEFT;
    case SLOPE: case INTERCEPT:
        if (!centred(n, x, x, &sum[2], &square) || !centred(n, x, y, last, &product)) return LEFT;
        if (square.count == 0) return NOTHING;
        ratio->power = 0, ratio->over = product, ratio->under = square;
        if (form->formula == SLOPE) return MADE;
        ratio->power = 1;
        return big_product(y, &square, &other) && big_product(x, &product, &count) &&
               big_difference(&other, &count, &ratio->over) &&
               (big_of(n, &count), big_product(&count, &square, &ratio->under)) ? MADE : LEFT;
    default:
        if (!centred(n, x, x, &sum[2], &square) || !centred(n, y, y, &sum[3], &other)) return LEFT;
        if (square.count == 0) return NOTHING;
        if (other.count == 0) {
            if (isnan(form->constant)) return NOTHING;
            *constant = form->constant;
            return MADE;
        }
        if (!centred(n, x, y, last, &product)) return LEFT;
        ratio->power = 0;
        if (!big_product(&product, &product, &ratio->over) || !big_product(&square, &other, &ratio->under)) return LEFT;
        ratio->over.negative = form->root && product.negative;
        return MADE;
    }
}

/* The nearest float of number * 2^exponent; `more`: there is a rest below it. 0 if it is none that is normal. */
static int nearest(const Big *number, int exponent, int more, double *out) {
    int drop = big_bits(number) - 64;
    Big top, back;
    uint64_t bits, rest;
    if (drop <= 0 || !big_shifted(number, -drop, &top) || !big_shifted(&top, drop, &back)) return 0;
    more |= big_compare(&back, number) != 0;
    bits = (uint64_t)top.word[1] << 32 | top.word[0];
    rest = bits & 2047, bits >>= 11;
    bits += rest > 1024 || (rest == 1024 && (more || (bits & 1)));
    exponent += drop + 11;
    if (exponent < -1022 || exponent > 1023 - 54) return 0;
    *out = ldexp((double)bits, exponent);
    return 1;
}

static Outcome as_float(const Form *form, const Ratio *ratio, int unit, double *out) {
    int shift = FRACTION * (1 + form->root) - big_bits(&ratio->over) + big_bits(&ratio->under) + 1;
    int exponent = unit * ratio->power, exact = 1, correlates = form->formula == CORRELATION;
    Big over, quotient, rest, root;
    if (ratio->over.count == 0) {
        *out = 0;
        return MADE;
    }
    if (form->root && !correlates && ratio->over.negative) return LEFT;
    shift = shift < 0 ? 0 : shift + (shift & 1);
    if (!big_shifted(&ratio->over, shift, &over) || !big_quotient(&over, &ratio->under, &quotient, &rest)) return LEFT;
    if (form->root) {
        if (!big_root(&quotient, &root, &exact)) return LEFT;
        quotient = root, exponent /= 2, shift /= 2;
    }
    if (!nearest(&quotient, exponent - shift, rest.count > 0 || !exact, out)) return LEFT;
    if (ratio->over.negative != ratio->under.negative) *out = -*out;
    return MADE;
}

static int floor_group(int exponent) { return exponent >= 0 ? exponent / GROUP : -((GROUP - 1 - exponent) / GROUP); }

/* The weight and the value of the first digit in base 10000 (sql.functions.decimal_places); 0 if it is too long. */
static int leading(const Form *form, const Big *number, int decimals, int *weight, int64_t *first) {
    int length = (int)((big_bits(number) - 1) * 0.30102), shift;
    Big quotient, rest;
    *weight = 0, *first = 0;
    if (number->count == 0) return 1;
    while (length < MOST_POWERS && big_compare(number, &form->powers[length]) >= 0) length++;
    if (length == MOST_POWERS) return 0;
    *weight = floor_group(length - 1 - decimals);
    shift = GROUP * *weight + decimals;
    if (shift >= MOST_POWERS || -shift >= MOST_POWERS) return 0;
    if (shift < 0 ? !big_product(number, &form->powers[-shift], &quotient)
                  : !big_quotient(number, &form->powers[shift], &quotient, &rest)) return 0;
    *first = quotient.count ? quotient.word[0] : 0;
    return 1;
}

/* over / under with so many decimals, halves away from zero; `given`: the decimals of what is divided. */
static int rounded(const Form *form, const Ratio *ratio, int given, int decimals, Big *out) {
    const int more = decimals - given;
    Big over, under, rest, one;
    if (more >= MOST_POWERS || -more >= MOST_POWERS) return 0;
    if (!big_product(&ratio->over, &form->powers[more > 0 ? more : 0], &over)) return 0;
    if (!big_product(&ratio->under, &form->powers[more < 0 ? -more : 0], &under)) return 0;
    if (!big_quotient(&over, &under, out, &rest) || !big_shifted(&rest, 1, &one)) return 0;
    if (big_compare(&one, &under) < 0) return 1;
    over = *out;
    big_of(-1, &one);
    return big_difference(&over, &one, out);
}

static Outcome as_decimal(const Form *form, const Ratio *ratio, __int128 *out) {
    const int given = ratio->power * form->given;
    int weight[2], places, kept, exact;
    int64_t first[2];
    Big whole, some, twice;
    if (ratio->over.negative) return LEFT;
    if (!leading(form, &ratio->over, given, &weight[0], &first[0])) return LEFT;
    if (!leading(form, &ratio->under, 0, &weight[1], &first[1])) return LEFT;
    places = SIGNIFICANT - GROUP * (weight[0] - weight[1] - (first[0] <= first[1]));
    places = places > given ? places : given, places = places > 0 ? places : 0;
    kept = places < form->made ? places : form->made;
    if (!form->root) {
        if (!rounded(form, ratio, given, kept, &whole)) return LEFT;
    } else {
        const int more = 2 * kept - places; /* decimals that the square gets, or loses */
        if (more >= MOST_POWERS || -more >= MOST_POWERS || !rounded(form, ratio, given, places, &some)) return LEFT;
        if (!big_product(&some, &form->powers[more > 0 ? more : 0], &twice)) return LEFT; /* the square */
        if (!big_quotient(&twice, &form->powers[more < 0 ? -more : 0], &some, &whole)) return LEFT;
        if (!big_root(&some, &whole, &exact)) return LEFT;
        /* It is rounded up if (2 * root + 1)^2 is at most four times the square. */
        Big odd, one, square;
        big_of(-1, &one);
        if (!big_shifted(&whole, 1, &some) || !big_difference(&some, &one, &odd)) return LEFT;
        if (!big_product(&odd, &odd, &some) || !big_product(&some, &form->powers[more < 0 ? -more : 0], &square)) return LEFT;
        if (!big_shifted(&twice, 2, &some)) return LEFT;
        if (big_compare(&square, &some) <= 0) {
            if (!big_difference(&whole, &one, &odd)) return LEFT;
            whole = odd;
        }
    }
    if (!big_product(&whole, &form->powers[form->made - kept], &some)) return LEFT;
    if (big_compare(&some, &form->powers[form->digits]) >= 0) return LEFT;
    *out = 0;
    for (int i = some.count - 1; i >= 0; i--) *out = *out << 32 | some.word[i];
    return MADE;
}

static Outcome result_of(const Form *form, const Columns *columns, int64_t i, uint8_t *into) {
    const uint8_t *text[MOST_SUMS];
    int64_t size[MOST_SUMS], n = is_valid(columns->at, i) ? integer_at(columns->at, i) : 0;
    int dropped = INT32_MAX;
    double value = NAN;
    Big sum[MOST_SUMS];
    Ratio ratio;
    for (int s = 0; s < form->sums; s++) {
        if (!is_valid(&columns->at[s + 1], i)) return NOTHING;
        size[s] = text_at(&columns->at[s + 1], i, &text[s]);
        if (size[s] && text[s][0] / form->units[s] < dropped) dropped = text[s][0] / form->units[s];
    }
    if (n <= 0) return n ? LEFT : NOTHING;
    if (form->exact || dropped == INT32_MAX) dropped = 0;
    for (int s = 0; s < form->sums; s++)
        if (!big_read(text[s], size[s], dropped * form->units[s], &sum[s])) return LEFT;
    Outcome outcome = ratio_of(form, n, sum, &ratio, &value);
    if (outcome != MADE) return outcome;
    if (form->exact) {
        __int128 number;
        outcome = as_decimal(form, &ratio, &number);
        if (outcome == MADE) memcpy(into + 16 * i, &number, 16);
        return outcome;
    }
    if (isnan(value)) outcome = as_float(form, &ratio, 32 * dropped - FLOAT_UNIT, &value);
    if (outcome == MADE) memcpy(into + 8 * i, &value, 8);
    return outcome;
}

static const struct {
    const char *name;
    Formula formula;
    int root, sums, units[MOST_SUMS];
    double constant;
} KNOWN[] = {
    {"var_pop", POPULATION, 0, 2, {1, 2}, NAN},
    {"var_samp", SAMPLE, 0, 2, {1, 2}, NAN},
    {"stddev_pop", POPULATION, 1, 2, {1, 2}, NAN},
    {"stddev_samp", SAMPLE, 1, 2, {1, 2}, NAN},
    {"regr_sxx", DIVIDED, 0, 2, {1, 2}, NAN},
    {"regr_sxy", DIVIDED, 0, 3, {1, 1, 2}, NAN},
    {"covar_pop", POPULATION, 0, 3, {1, 1, 2}, NAN},
    {"covar_samp", SAMPLE, 0, 3, {1, 1, 2}, NAN},
    {"regr_slope", SLOPE, 0, 4, {1, 1, 2, 2}, NAN},
    {"regr_intercept", INTERCEPT, 0, 4, {1, 1, 2, 2}, NAN},
    {"regr_r2", CORRELATION, 0, 5, {1, 1, 2, 2, 2}, 1},
    {"corr", CORRELATION, 1, 5, {1, 1, 2, 2, 2}, NAN},
};

/* (a byte for each result that is there, values, a byte for each row that is left to the caller), or None. */
PyObject *py_spread(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *list, *there = NULL, *values = NULL, *left = NULL, *result = NULL;
    Columns columns = {0};
    Form *form = PyMem_Calloc(1, sizeof *form);
    size_t known = 0;
    int going = 1;
    if (form == NULL) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "sOpiii", &name, &list, &form->exact, &form->given, &form->digits, &form->made)) goto done;
    while (known < sizeof KNOWN / sizeof *KNOWN && strcmp(KNOWN[known].name, name)) known++;
    if (known == sizeof KNOWN / sizeof *KNOWN) going = 0;
    if (going == 1) going = open_columns(list, &columns);
    if (going < 1) goto done;
    form->formula = KNOWN[known].formula, form->root = KNOWN[known].root, form->sums = KNOWN[known].sums;
    form->constant = KNOWN[known].constant;
    memcpy(form->units, KNOWN[known].units, sizeof form->units);
    going = columns.count == form->sums + 1 && strcmp(columns.at->format, "l") == 0 && form->given >= 0 &&
            form->digits >= 0 && form->digits <= 38 && form->made >= 0 && form->made <= 38;
    for (int s = 1; going && s <= form->sums; s++)
        going = columns.at[s].kind == TEXT && columns.at[s].length == columns.at->length;
    if (going == 0) goto done;
    big_of(1, &form->powers[0]);
    Big ten;
    big_of(10, &ten);
    for (int i = 1; i < MOST_POWERS; i++) big_product(&form->powers[i - 1], &ten, &form->powers[i]);
    const int64_t length = columns.at->length;
    there = PyByteArray_FromStringAndSize(NULL, length), left = PyByteArray_FromStringAndSize(NULL, length);
    values = PyByteArray_FromStringAndSize(NULL, length * (form->exact ? 16 : 8));
    if (there == NULL || left == NULL || values == NULL) goto done;
    uint8_t *made = (uint8_t *)PyByteArray_AsString(there), *others = (uint8_t *)PyByteArray_AsString(left);
    uint8_t *into = (uint8_t *)PyByteArray_AsString(values);
    memset(into, 0, length * (form->exact ? 16 : 8));
    PyThreadState *paused = pause_for(length);
    for (int64_t i = 0; i < length; i++) {
        Outcome outcome = result_of(form, &columns, i, into);
        made[i] = outcome == MADE, others[i] = outcome == LEFT;
    }
    go_on(paused);
    result = PyTuple_Pack(3, there, values, left);
done:
    if (going == 0) result = Py_NewRef(Py_None);
    close_columns(&columns);
    PyMem_Free(form);
    Py_XDECREF(there);
    Py_XDECREF(values);
    Py_XDECREF(left);
    return result;
}
