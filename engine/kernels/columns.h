/* Views of what Python gives: Arrow columns and NumPy arrays, without a copy.

   A kernel opens its arguments, works on plain memory, and closes them. It answers None where it has no fast way (a
   type that it does not know, a sum that no int64 holds); then the caller takes the way through NumPy and Arrow. So a
   kernel is never the only one who knows an answer.

   The struct definitions of Arrow are those of its C data interface, which all versions share:
   https://arrow.apache.org/docs/format/CDataInterface.html */

#ifndef HALFJOIN_COLUMNS_H
#define HALFJOIN_COLUMNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_WORK 16384 /* rows; from here on a kernel lets other threads of Python run */

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

/* BITS: booleans. INTEGER: also dates and times. WORDS: decimals and intervals, 8 bytes a word. */
typedef enum { BITS, INTEGER, FLOATING, WORDS, TEXT, LARGE_TEXT } Kind;

typedef struct {
    Kind kind;
    int width; /* bytes of a value; 0 for BITS and texts */
    int64_t length, offset;
    const uint8_t *valid; /* a bit for each value, or NULL: none is NULL */
    const uint8_t *data;
    const void *offsets; /* of texts */
    const char *format;
    PyObject *held; /* the capsules; they own the format, and keep the memory alive */
} Column;

typedef struct {
    Column *at;
    Py_ssize_t count;
} Columns;

/* A one-dimensional array of NumPy. `step`: in elements; 0 where one value stands for all. */
typedef struct {
    Py_buffer buffer;
    const void *at;
    int64_t length, step;
    int open;
} Array;

/* All of them return 1; 0 if the kernel cannot work on it; or -1 with an exception. Closing what is not open is allowed. */
int open_columns(PyObject *list, Columns *out);
int open_ints(PyObject *object, Array *out);    /* int64, in any steps */
int open_numbers(PyObject *object, Array *out); /* uint32, one beside the other */
int open_flags(PyObject *object, Array *out);   /* booleans, one beside the other */
void close_columns(Columns *columns);
void close_array(Array *array);

int comparable(const Column *one, const Column *other);
int equal_values(const Column *one, int64_t i, const Column *other, int64_t j);
void hash_columns(const Columns *columns, int64_t length, uint64_t *hashes);
uint64_t hash_of_row(const Columns *columns, int64_t row);
void codes_of(const Columns *columns, int64_t length, int64_t *codes);

/* Whether values can be ordered to a constant here: signed numbers, floats (NaN is the greatest), decimals of 128 bits,
   dates and times, and texts by their bytes. */
int is_ordered(const Column *column, const Column *constant);
int order_of(const Column *column, int64_t row, const Column *constant); /* -1, 0 or 1 */

static inline int64_t int_at(const Array *array, int64_t i) { return ((const int64_t *)array->at)[i * array->step]; }

static inline int is_valid(const Column *column, int64_t i) {
    i += column->offset;
    return column->valid == NULL || (column->valid[i >> 3] >> (i & 7) & 1);
}

static inline int64_t integer_at(const Column *column, int64_t i) {
    i += column->offset;
    switch (column->width) {
    case 1: return ((const int8_t *)column->data)[i];
    case 2: return ((const int16_t *)column->data)[i];
    case 4: return ((const int32_t *)column->data)[i];
    default: return ((const int64_t *)column->data)[i];
    }
}

static inline double float_at(const Column *column, int64_t i) {
    i += column->offset;
    return column->width == 8 ? ((const double *)column->data)[i] : (double)((const float *)column->data)[i];
}

/* A decimal of 128 bits, without its point. */
static inline __int128 decimal_at(const Column *column, int64_t i) {
    __int128 value;
    memcpy(&value, column->data + (i + column->offset) * 16, 16);
    return value;
}

static inline unsigned __int128 power_of_ten(int digits) {
    unsigned __int128 made = 1;
    while (digits-- > 0) made *= 10;
    return made;
}

static inline int bit_at(const Column *column, int64_t i) {
    i += column->offset;
    return column->data[i >> 3] >> (i & 7) & 1;
}

static inline int64_t text_at(const Column *column, int64_t i, const uint8_t **text) {
    int64_t start, stop;
    i += column->offset;
    if (column->kind == TEXT) {
        start = ((const int32_t *)column->offsets)[i], stop = ((const int32_t *)column->offsets)[i + 1];
    } else {
        start = ((const int64_t *)column->offsets)[i], stop = ((const int64_t *)column->offsets)[i + 1];
    }
    *text = column->data + start;
    return stop - start;
}

/* Lets other threads of Python run while there is much to do; NULL: there is not. */
static inline PyThreadState *pause_for(int64_t work) { return work >= LARGE_WORK ? PyEval_SaveThread() : NULL; }

static inline void go_on(PyThreadState *paused) {
    if (paused != NULL) PyEval_RestoreThread(paused);
}

/* splitmix64's finaliser: every input bit reaches every output bit (Steele, Lea, Flood 2014). */
static inline uint64_t mixed(uint64_t word) {
    word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
    return word ^ (word >> 31);
}

/* The entry points of the module, one a file or two; module.c lists them with what they do. */
PyObject *py_bounds(PyObject *self, PyObject *values);
PyObject *py_sound(PyObject *self, PyObject *args);
PyObject *py_codes(PyObject *self, PyObject *args);
PyObject *py_find(PyObject *self, PyObject *args);
PyObject *py_count(PyObject *self, PyObject *args);
PyObject *py_gather(PyObject *self, PyObject *args);
PyObject *py_filtered(PyObject *self, PyObject *args);
PyObject *py_passing(PyObject *self, PyObject *args);
PyObject *py_side(PyObject *self, PyObject *args);
PyObject *py_half_joins(PyObject *self, PyObject *args);
PyObject *py_weights(PyObject *self, PyObject *args);
PyObject *py_products(PyObject *self, PyObject *args);
PyObject *py_groups(PyObject *self, PyObject *args);
PyObject *py_grouped(PyObject *self, PyObject *args);
PyObject *py_sums(PyObject *self, PyObject *args);
PyObject *py_unique(PyObject *self, PyObject *args);
PyObject *py_indexed(PyObject *self, PyObject *args);
PyObject *py_sorted(PyObject *self, PyObject *args);
PyObject *py_merged(PyObject *self, PyObject *args);
PyObject *py_net(PyObject *self, PyObject *args);
PyObject *py_split(PyObject *self, PyObject *args);
PyObject *py_starts(PyObject *self, PyObject *args);
PyObject *py_moments(PyObject *self, PyObject *args);
PyObject *py_totals(PyObject *self, PyObject *args);
PyObject *py_kept(PyObject *self, PyObject *numbers);
PyObject *py_read_kept(PyObject *self, PyObject *list);
PyObject *py_reduced(PyObject *self, PyObject *args);
PyObject *py_decimals(PyObject *self, PyObject *args);
PyObject *py_arithmetic(PyObject *self, PyObject *args);
PyObject *py_quotients(PyObject *self, PyObject *args);
void make_powers(void);
PyObject *py_float_sums(PyObject *self, PyObject *args);
PyObject *py_added(PyObject *self, PyObject *args);
PyObject *py_added_up(PyObject *self, PyObject *args);
PyObject *py_extreme(PyObject *self, PyObject *args);
PyObject *py_compared(PyObject *self, PyObject *args);
PyObject *py_order(PyObject *self, PyObject *args);
PyObject *py_spread(PyObject *self, PyObject *args);
PyObject *py_like(PyObject *self, PyObject *args);
PyObject *py_firsts(PyObject *self, PyObject *args);

#endif
