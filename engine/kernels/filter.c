/* Which rows a filter leaves: by a mask, or by comparing columns with constants in place; and their columns.

   A block of rows is marked test by test, so each test is one loop over values of one type, without a branch. Then the
   numbers of the rows that are left are written down, and the columns are gathered by them. */

#include "rows.h"
#include "thresholds.h"

#define BLOCK 2048 /* rows */
#define LOWER 1
#define EQUAL 2
#define HIGHER 4

/* The values of `test` that are ordered to its constant as `allowed` says; for integers, those in [low, high], or those
   that are not. */
typedef struct {
    const Column *column, *constant;
    int64_t low, high;
    int allowed, outside;
} Test;

/* Of integers, the range that a test allows; an empty one is [1, 0]. */
static void find_range(Test *test) {
    int64_t limit = integer_at(test->constant, 0);
    test->low = INT64_MIN, test->high = INT64_MAX;
    test->outside = test->allowed == (LOWER | HIGHER);
    if (test->outside || test->allowed == EQUAL) {
        test->low = test->high = limit;
        return;
    }
    if (!(test->allowed & HIGHER)) test->high = limit;
    if (!(test->allowed & LOWER)) test->low = limit;
    if (test->allowed & EQUAL) return;
    if ((test->allowed == LOWER && limit == INT64_MIN) || (test->allowed == HIGHER && limit == INT64_MAX) ||
        test->allowed == 0) {
        test->low = 1, test->high = 0;
        return;
    }
    test->high -= test->allowed == LOWER, test->low += test->allowed == HIGHER;
}

#define MARK_RANGE(TYPE)                                                                            \
    {                                                                                               \
        const TYPE *values = (const TYPE *)column->data + column->offset + from;                    \
        for (int64_t i = 0; i < count; i++)                                                         \
            marks[i] &= ((values[i] >= low) & (values[i] <= high)) ^ outside;                       \
        break;                                                                                      \
    }

#define MARK_FLOATS(TYPE)                                                                           \
    {                                                                                               \
        const TYPE *values = (const TYPE *)column->data + column->offset + from;                    \
        for (int64_t i = 0; i < count; i++)                                                         \
            marks[i] &= ((values[i] < limit) & lower) | ((values[i] == limit) & equal) |            \
                        ((!(values[i] <= limit)) & higher); /* NaN is the greatest */                 \
        break;                                                                                      \
    }

/* Clears the marks of rows whose value is another one. */
static void mark_values(const Test *test, int64_t from, int64_t count, uint8_t *marks) {
    const Column *column = test->column;
    const int lower = test->allowed & LOWER, equal = (test->allowed & EQUAL) != 0, higher = (test->allowed & HIGHER) != 0;
    if (column->kind == INTEGER) {
        const int64_t low = test->low, high = test->high;
        const uint8_t outside = (uint8_t)test->outside;
        switch (column->width) {
        case 1: MARK_RANGE(int8_t)
        case 2: MARK_RANGE(int16_t)
        case 4: MARK_RANGE(int32_t)
        default: MARK_RANGE(int64_t)
        }
        return;
    }
    if (column->kind == FLOATING) {
        const double limit = float_at(test->constant, 0);
        if (limit == limit) {
            if (column->width == 4) do MARK_FLOATS(float) while (0);
            else do MARK_FLOATS(double) while (0);
            return;
        }
    }
    if (column->kind == TEXT && test->allowed == EQUAL) { /* most texts have another length */
        const uint8_t *wanted, *text;
        const int64_t size = text_at(test->constant, 0, &wanted);
        for (int64_t i = 0; i < count; i++)
            marks[i] = marks[i] && text_at(column, from + i, &text) == size && (size == 0 || memcmp(text, wanted, size) == 0);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        marks[i] = marks[i] && (test->allowed >> (order_of(column, from + i, test->constant) + 1) & 1);
}

/* Clears the marks of rows that are NULL. */
static void mark_valid(const Column *column, int64_t from, int64_t count, uint8_t *marks) {
    if (column->valid == NULL) return;
    from += column->offset;
    for (int64_t i = 0; i < count; i++) marks[i] &= column->valid[(from + i) >> 3] >> ((from + i) & 7);
}

static void mark_true(const Column *column, int64_t from, int64_t count, uint8_t *marks) {
    from += column->offset;
    for (int64_t i = 0; i < count; i++) marks[i] &= column->data[(from + i) >> 3] >> ((from + i) & 7);
}

/* The numbers of the rows that are left, in order; returns how many. Without tests, those for which `mask` is true. */
static int64_t choose(const Column *mask, const Test *tests, Py_ssize_t count, int64_t length, uint32_t *left) {
    uint8_t marks[BLOCK];
    int64_t found = 0;
    for (int64_t from = 0; from < length; from += BLOCK) {
        int64_t size = length - from < BLOCK ? length - from : BLOCK;
        memset(marks, 1, size);
        if (count == 0) {
            mark_valid(mask, from, size, marks);
            mark_true(mask, from, size, marks);
        }
        for (Py_ssize_t test = 0; test < count; test++) {
            mark_valid(tests[test].column, from, size, marks);
            mark_values(&tests[test], from, size, marks);
        }
        for (int64_t i = 0; i < size; i++) {
            left[found] = (uint32_t)(from + i);
            found += marks[i];
        }
    }
    return found;
}

/* 0: there is no fast way. `never`: some constant is NULL, so no row meets it. */
static int open_tests(const Columns *tested, const Thresholds *thresholds, int64_t length, Test *tests, int *never) {
    int masked = thresholds->constants.count == 0;
    if (masked ? tested->count != 1 || tested->at->kind != BITS : !are_ordered(tested, thresholds)) return 0;
    for (Py_ssize_t c = 0; c < tested->count; c++) {
        Test *test = &tests[c];
        if (tested->at[c].length != length) return 0;
        if (masked) continue;
        test->column = &tested->at[c], test->constant = &thresholds->constants.at[c];
        test->allowed = thresholds->allowed[c];
        if (!is_valid(test->constant, 0)) *never = 1;
        else if (test->column->kind == INTEGER) find_range(test);
    }
    return 1;
}

/* Times or diffs of the rows that are left; None if all are one. */
static PyObject *numbers_at(const Array *array, const uint32_t *rows, int64_t count) {
    PyObject *made;
    int64_t *into;
    if (array->step == 0) return Py_NewRef(Py_None);
    if ((made = PyByteArray_FromStringAndSize(NULL, count * 8)) == NULL) return NULL;
    into = (int64_t *)PyByteArray_AsString(made);
    for (int64_t row = 0; row < count; row++) into[row] = int_at(array, rows[row]);
    return made;
}

/* The rows that are left: how many; the buffers of their columns; their times and diffs, None where all are one. True if
   these are all rows. */
PyObject *py_filtered(PyObject *self, PyObject *args) {
    PyObject *list, *part[2], *tested_list, *constant_list, *allowed;
    PyObject *single = NULL, *made = NULL, *weights[2] = {NULL}, *number = NULL, *result = NULL;
    Array open[2] = {0}; /* times and diffs */
    Columns tested = {0};
    Thresholds thresholds = {0};
    Test tests[MOST_THRESHOLDS] = {0};
    Rows rows = {0};
    uint32_t *left = NULL;
    int64_t length, count = 0;
    int going, never = 0;
    if (!PyArg_ParseTuple(args, "OOOOOO", &list, &part[0], &part[1], &tested_list, &constant_list, &allowed)) return NULL;
    going = open_columns(tested_list, &tested);
    if (going == 1) going = open_thresholds(constant_list, allowed, &thresholds);
    for (int i = 0; going == 1 && i < 2; i++) going = open_ints(part[i], &open[i]);
    if (going < 1) goto done;
    length = open[0].length;
    if ((going = open[1].length == length && length <= UINT32_MAX) == 0) goto done;
    if ((going = open_tests(&tested, &thresholds, length, tests, &never)) < 1) goto done;
    if ((left = malloc((length + 1) * sizeof *left)) == NULL) {
        PyErr_NoMemory();
        going = -1;
        goto done;
    }
    if (!never) {
        PyThreadState *paused = pause_for(length);
        count = choose(tested.at, tests, thresholds.constants.count, length, left);
        go_on(paused);
    }
    if (count == length) {
        result = Py_NewRef(Py_True);
        goto done;
    }
    going = -1;
    rows.narrow.at = left, rows.narrow.open = rows.narrow.step = 1, rows.narrow.length = rows.length = count;
    if ((single = PyList_New(1)) == NULL) goto done;
    PyList_SetItem(single, 0, Py_NewRef(list));
    if ((made = gather_columns(single, &rows, &rows.length)) == NULL) goto done;
    for (int i = 0; i < 2; i++)
        if ((weights[i] = numbers_at(&open[i], left, count)) == NULL) goto done;
    if ((number = PyLong_FromLongLong(count)) == NULL) goto done;
    going = made != Py_None;
    if (going == 1) result = PyTuple_Pack(4, number, made, weights[0], weights[1]);
done:
    for (int i = 0; i < 2; i++) {
        close_array(&open[i]);
        Py_XDECREF(weights[i]);
    }
    close_columns(&tested);
    close_thresholds(&thresholds);
    free(left);
    Py_XDECREF(single);
    Py_XDECREF(made);
    Py_XDECREF(number);
    return going == 0 ? Py_NewRef(Py_None) : result;
}
