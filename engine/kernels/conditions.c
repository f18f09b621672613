/* Which pairs of a lookup meet a condition: a column of booleans, or a comparison of a run's column with a constant. */

#include "rows.h"

/* Pairs of a position in a stream and a row, run after run. */
typedef struct {
    PyObject *given[3]; /* positions, rows and counts */
    Array positions, rows;
    int64_t *counts;
    Py_ssize_t runs;
    char *passes; /* for each pair, whether it is kept */
} Pairs;

/* As the functions of columns.h. */
static int open_pairs(Pairs *out) {
    int going = 1;
    if ((out->runs = PyList_Size(out->given[2])) < 0) return -1;
    if ((going = open_ints(out->given[0], &out->positions)) < 1) return going;
    if ((going = open_numbers(out->given[1], &out->rows)) < 1) return going;
    if ((out->counts = read_counts(out->given[2], out->runs, out->rows.length)) == NULL) return -1;
    if (out->positions.length != out->rows.length) return 0;
    if ((out->passes = PyMem_Malloc(out->rows.length + 1)) != NULL) return 1;
    PyErr_NoMemory();
    return -1;
}

static void close_pairs(Pairs *pairs) {
    close_array(&pairs->positions);
    close_array(&pairs->rows);
    PyMem_Free(pairs->counts);
    PyMem_Free(pairs->passes);
}

/* The pairs that pass: positions, rows and counts; those that are given if all do. */
static PyObject *passed(Pairs *pairs) {
    int64_t from = 0, total = 0, length = pairs->rows.length;
    PyObject *positions = PyByteArray_FromStringAndSize(NULL, length * 8), *numbers = NULL, *result = NULL;
    PyObject *rows = PyByteArray_FromStringAndSize(NULL, length * 4);
    if (positions == NULL || rows == NULL) goto done;
    int64_t *kept_positions = (int64_t *)PyByteArray_AsString(positions);
    uint32_t *kept_rows = (uint32_t *)PyByteArray_AsString(rows);
    PyThreadState *paused = pause_for(length);
    for (Py_ssize_t run = 0; run < pairs->runs; run++) {
        int64_t until = from + pairs->counts[run], before = total;
        for (; from < until; from++) {
            kept_positions[total] = int_at(&pairs->positions, from);
            kept_rows[total] = ((const uint32_t *)pairs->rows.at)[from];
            total += pairs->passes[from];
        }
        pairs->counts[run] = total - before;
    }
    go_on(paused);
    if (total == length) {
        result = PyTuple_Pack(3, pairs->given[0], pairs->given[1], pairs->given[2]);
        goto done;
    }
    if (PyByteArray_Resize(positions, total * 8) < 0 || PyByteArray_Resize(rows, total * 4) < 0) goto done;
    if ((numbers = PyList_New(pairs->runs)) == NULL) goto done;
    for (Py_ssize_t run = 0; run < pairs->runs; run++) {
        PyObject *number = PyLong_FromLongLong(pairs->counts[run]);
        if (number == NULL) goto done;
        PyList_SetItem(numbers, run, number);
    }
    result = PyTuple_Pack(3, positions, rows, numbers);
done:
    Py_XDECREF(positions);
    Py_XDECREF(rows);
    Py_XDECREF(numbers);
    return result;
}

PyObject *py_passing(PyObject *self, PyObject *args) {
    PyObject *list, *result = NULL;
    Pairs pairs = {0};
    Columns mask = {0};
    int going;
    if (!PyArg_ParseTuple(args, "OOOO", &list, &pairs.given[0], &pairs.given[1], &pairs.given[2])) return NULL;
    if ((going = open_columns(list, &mask)) < 1 || (going = open_pairs(&pairs)) < 1) goto done;
    going = mask.count == 1 && mask.at->kind == BITS && mask.at->length == pairs.rows.length;
    if (going == 0) goto done;
    PyThreadState *paused = pause_for(pairs.rows.length);
    for (int64_t i = 0; i < pairs.rows.length; i++) pairs.passes[i] = is_valid(mask.at, i) && bit_at(mask.at, i);
    go_on(paused);
    result = passed(&pairs);
done:
    close_columns(&mask);
    close_pairs(&pairs);
    return going == 0 ? Py_NewRef(Py_None) : result;
}

/* -1, 0 or 1: how a value is ordered to a constant. */
static inline int order_of(const Column *column, int64_t row, const Column *constant) {
    const uint8_t *left, *right;
    int64_t size, other, common;
    int order;
    if (column->kind == INTEGER) {
        int64_t value = integer_at(column, row), limit = integer_at(constant, 0);
        return (value > limit) - (value < limit);
    }
    size = text_at(column, row, &left), other = text_at(constant, 0, &right);
    common = size < other ? size : other;
    order = common ? memcmp(left, right, common) : 0;
    return order ? (order > 0) - (order < 0) : (size > other) - (size < other);
}

/* Marks the pairs of a run whose value is ordered to the constant as `allowed` says. 1; 0: there is no fast way; -1 with
   an exception. */
static int compare(Pairs *pairs, int64_t from, int64_t to, const Column *column, const Column *constant, int allowed) {
    PyThreadState *paused;
    int going = 1;
    int is_text = column->kind == TEXT || column->kind == LARGE_TEXT;
    if (is_text ? 0 : column->kind != INTEGER || strchr("CSIL", column->format[0]) != NULL)
        return 0; /* an unsigned number, or a value of another kind */
    if (strcmp(column->format, constant->format) != 0) return 0;
    paused = pause_for(to - from);
    for (int64_t i = from; i < to; i++) {
        uint32_t row = ((const uint32_t *)pairs->rows.at)[i];
        if ((int64_t)row >= column->length) {
            going = -1;
            break;
        }
        pairs->passes[i] = is_valid(column, row) && is_valid(constant, 0) &&
                           (allowed >> (order_of(column, row, constant) + 1) & 1);
    }
    go_on(paused);
    if (going < 0) PyErr_SetString(PyExc_IndexError, "a row number beyond its run");
    return going;
}

PyObject *py_meeting(PyObject *self, PyObject *args) {
    PyObject *sources, *list, *result = NULL;
    Pairs pairs = {0};
    Columns constant = {0}, columns = {0};
    int64_t from = 0;
    int allowed, going;
    if (!PyArg_ParseTuple(args, "OOiOOO", &sources, &list, &allowed, &pairs.given[0], &pairs.given[1], &pairs.given[2]))
        return NULL;
    if ((going = open_columns(list, &constant)) < 1 || (going = open_pairs(&pairs)) < 1) goto done;
    if ((going = constant.count == 1 && constant.at->length == 1) == 0) goto done;
    if (PyList_Size(sources) != pairs.runs) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a column of each run");
        going = -1;
    }
    for (Py_ssize_t run = 0; going == 1 && run < pairs.runs; from += pairs.counts[run++]) {
        going = open_columns(PyList_GetItem(sources, run), &columns);
        if (going == 1) going = columns.count == 1;
        if (going == 1) going = compare(&pairs, from, from + pairs.counts[run], columns.at, constant.at, allowed);
        close_columns(&columns);
    }
    if (going == 1) result = passed(&pairs);
done:
    close_columns(&constant);
    close_pairs(&pairs);
    return going == 0 ? Py_NewRef(Py_None) : result;
}
