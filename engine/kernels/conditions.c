/* Which pairs of a lookup meet a condition, given as a column of booleans. */

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
