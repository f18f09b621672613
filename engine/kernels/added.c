/* What updates add to sums of integers and numerics: update by update, or all together. Each adds its value, as often as
   its diff says; a row in which an argument is NULL adds nothing. */

#include "sums.h"

#define MOST_FACTOR (INT64_C(1) << 31) /* of a diff, and of the number of rows: then no half of a sum overflows */

#define BLOCK 1024
#define BELOW INT64_C(0xFFFFFFFF)

/* `values`: none, or one column that is added up; else rows are counted. */
typedef struct {
    Columns values, args;
    Array diff;
    const uint8_t *valid; /* of the only column that can be NULL, if there is one and no more */
    int64_t offset;
    int several; /* whether more than one column can be NULL */
} Terms;

static int open_terms(PyObject *values, PyObject *args, PyObject *diff, Terms *terms) {
    int going;
    if ((going = open_columns(values, &terms->values)) < 1 || (going = open_columns(args, &terms->args)) < 1) return going;
    if ((going = open_ints(diff, &terms->diff)) < 1) return going;
    if (terms->values.count > 1 || (terms->values.count == 1 && !summable(&terms->values.at[0]))) return 0;
    for (int side = 0; side < 2; side++) {
        const Columns *columns = side ? &terms->args : &terms->values;
        for (Py_ssize_t c = 0; c < columns->count; c++) {
            const Column *column = &columns->at[c];
            if (column->length != terms->diff.length) return 0;
            if (column->valid == NULL || (column->valid == terms->valid && column->offset == terms->offset)) continue;
            terms->several |= terms->valid != NULL;
            terms->valid = column->valid, terms->offset = column->offset;
        }
    }
    return 1;
}

static void close_terms(Terms *terms) {
    close_columns(&terms->values);
    close_columns(&terms->args);
    close_array(&terms->diff);
}

static inline int adds(const Terms *terms, int64_t i) {
    if (terms->valid == NULL) return 1;
    if (!terms->several) return terms->valid[(i + terms->offset) >> 3] >> ((i + terms->offset) & 7) & 1;
    for (Py_ssize_t c = 0; c < terms->values.count; c++)
        if (!is_valid(&terms->values.at[c], i)) return 0;
    for (Py_ssize_t c = 0; c < terms->args.count; c++)
        if (!is_valid(&terms->args.at[c], i)) return 0;
    return 1;
}

/* Whether row i adds a number of 64 bits, which it is. */
static inline int term_at(const Terms *terms, int64_t i, int64_t *term) {
    int64_t value = 1;
    *term = 0;
    if (!adds(terms, i)) return 1;
    if (terms->values.count) {
        Wide wide = wide_at(&terms->values.at[0], i);
        value = (int64_t)wide;
        if (value != wide) return 0;
    }
    return !__builtin_mul_overflow(value, int_at(&terms->diff, i), term);
}

/* added(values, args, diff): (what each update adds, the greatest absolute value), or None if one is no int64. */
PyObject *py_added(PyObject *self, PyObject *args) {
    PyObject *values, *others, *diff, *made = NULL, *result = NULL;
    Terms terms = {0};
    int64_t least = 0, most = 0;
    int going;
    if (!PyArg_ParseTuple(args, "OOO", &values, &others, &diff)) return NULL;
    if ((going = open_terms(values, others, diff, &terms)) < 1) goto done;
    going = -1;
    if ((made = PyByteArray_FromStringAndSize(NULL, terms.diff.length * 8)) == NULL) goto done;
    int64_t *out = (int64_t *)PyByteArray_AsString(made);
    PyThreadState *paused = pause_for(terms.diff.length);
    going = 1;
    for (int64_t i = 0; i < terms.diff.length && going; i++) {
        going = term_at(&terms, i, &out[i]);
        least = out[i] < least ? out[i] : least, most = out[i] > most ? out[i] : most;
    }
    go_on(paused);
    if (least == INT64_MIN) going = 0; /* it has no absolute value */
    if (going) result = Py_BuildValue("OL", made, (long long)(-least > most ? -least : most));
    going = going ? -1 : 0;
done:
    close_terms(&terms);
    Py_XDECREF(made);
    return going == 0 ? Py_NewRef(Py_None) : result;
}

/* The sum of the lower halves and of the higher ones, in which nothing overflows. */
typedef struct {
    Wide low, high;
} Halves;

static inline void add_value(const Column *column, int64_t i, int64_t times, Halves *sum) {
    if (column == NULL) sum->low += times;
    else if (column->kind == INTEGER) sum->low += (Wide)integer_at(column, i) * times;
    else {
        Wide value = decimal_at(column, i);
        sum->low += (Wide)(uint64_t)value * times, sum->high += (Wide)(int64_t)(value >> 64) * times;
    }
}

/* All ones for a row that is not NULL. */
static inline int64_t marked(const Column *column, int64_t i) { return -(int64_t)(column->valid[i >> 3] >> (i & 7) & 1); }

/* Numbers of 64 bits: of fewer than 2^31 of them neither half overflows. */
#define ADD_ALL(type, MARKS)                                                                                           \
    for (int64_t i = from; i < to; i++) {                                                                              \
        int64_t value = ((const type *)column->data)[i] MARKS;                                                         \
        low += value & BELOW, high += value >> 32;                                                                     \
    }
#define ADD_VALUES(type)                                                                                               \
    if (column->valid == NULL) { ADD_ALL(type, ) }                                                                     \
    else { ADD_ALL(type, & marked(column, i)) }                                                                        \
    break;

/* As `add_up`, where each row counts once: plain loops over plain numbers. */
static void add_integers(const Column *column, Halves *sum) {
    const int64_t from = column->offset, to = from + column->length;
    int64_t low = 0, high = 0;
    switch (column->width) {
    case 1: ADD_VALUES(int8_t)
    case 2: ADD_VALUES(int16_t)
    case 4: ADD_VALUES(int32_t)
    default: ADD_VALUES(int64_t)
    }
    sum->low += (Wide)high * (BELOW + 1) + low;
}

#define ADD_BLOCK(MARKS)                                                                                               \
    for (int64_t i = from; i < to; i++) {                                                                              \
        int64_t value = words[2 * i] MARKS, above = words[2 * i + 1] MARKS;                                            \
        others |= above ^ (value >> 63);                                                                               \
        block[0] += value & BELOW, block[1] += value >> 32;                                                            \
    }

/* As `add_integers`, of numerics, most of which have 64 bits. */
static void add_decimals(const Column *column, Halves *sum) {
    const int64_t *words = (const int64_t *)column->data, end = column->offset + column->length;
    int64_t low = 0, high = 0;
    for (int64_t from = column->offset, to; from < end; from = to) {
        int64_t others = 0, block[2] = {0, 0};
        to = end - from < BLOCK ? end : from + BLOCK;
        if (column->valid == NULL) { ADD_BLOCK() }
        else { ADD_BLOCK(& marked(column, i)) }
        if (!others) low += block[0], high += block[1];
        else for (int64_t i = from - column->offset; i < to - column->offset; i++)
            if (is_valid(column, i)) add_value(column, i, 1, sum);
    }
    sum->low += (Wide)high * (BELOW + 1) + low;
}

/* 0 if some row counts too often. */
static int add_up(const Terms *terms, Halves *sum) {
    const Column *column = terms->values.count ? &terms->values.at[0] : NULL;
    const int64_t length = terms->diff.length;
    if (length >= MOST_FACTOR) return 0;
    if (column != NULL && !terms->several && terms->valid == column->valid
        && (terms->valid == NULL || terms->offset == column->offset) && terms->diff.step == 0 && length
        && int_at(&terms->diff, 0) == 1) {
        (column->kind == INTEGER ? add_integers : add_decimals)(column, sum);
        return 1;
    }
    for (int64_t i = 0; i < length; i++) {
        int64_t times = int_at(&terms->diff, i);
        if (times >= MOST_FACTOR || times <= -MOST_FACTOR) return 0;
        if (adds(terms, i)) add_value(column, i, times, sum);
    }
    return 1;
}

/* added_up(values, args, diff): what all updates add, 16 bytes; or None if that is too much. */
PyObject *py_added_up(PyObject *self, PyObject *args) {
    PyObject *values, *others, *diff, *result = NULL;
    Terms terms = {0};
    Halves sum = {0, 0};
    Wide total;
    int going;
    if (!PyArg_ParseTuple(args, "OOO", &values, &others, &diff)) return NULL;
    if ((going = open_terms(values, others, diff, &terms)) < 1) goto done;
    PyThreadState *paused = pause_for(terms.diff.length);
    going = add_up(&terms, &sum);
    go_on(paused);
    if (going && !__builtin_mul_overflow(sum.high, (Wide)1 << 64, &total) && !__builtin_add_overflow(total, sum.low, &total)) {
        result = PyBytes_FromStringAndSize((const char *)&total, sizeof total);
        going = -1;
    } else going = 0;
done:
    close_terms(&terms);
    return going == 0 ? Py_NewRef(Py_None) : result;
}
