/* The times and diffs of pairs that a lookup found, each a position in a stream and a row of a run. */

#include "rows.h"

/* The diff of a row: as netting has it, if it is among the ascending `netted` rows. */
static inline int64_t netted_diff(const Array *diff, const Array *netted, const Array *nets, int64_t row) {
    int64_t low = 0, high = netted->length;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (int_at(netted, middle) < row) low = middle + 1;
        else high = middle;
    }
    return low < netted->length && int_at(netted, low) == row ? int_at(nets, low) : int_at(diff, row);
}

/* The times and diffs of rows. 1; 0: there is no fast way; -1 with an exception. */
static int weigh(PyObject *sources, const Rows *rows, const int64_t *counts, int64_t *time, int64_t *diff) {
    int64_t from = 0;
    Py_ssize_t runs = PyList_Size(sources);
    int going = 1;
    for (Py_ssize_t run = 0; going == 1 && run < runs; from += counts[run++]) {
        PyObject *part[4];
        Array open[4] = {0};
        int count;
        if (!PyArg_ParseTuple(PyList_GetItem(sources, run), "OOOO", &part[0], &part[1], &part[2], &part[3])) return -1;
        count = part[2] == Py_None ? 2 : 4;
        for (int i = 0; going == 1 && i < count; i++) going = open_ints(part[i], &open[i]);
        if (going == 1) going = open[1].length == open[0].length && open[2].length == open[3].length;
        if (going == 1 && !inside(rows, from, from + counts[run], open[0].length)) {
            PyErr_SetString(PyExc_IndexError, "a row number beyond its run");
            going = -1;
        }
        if (going == 1) {
            PyThreadState *paused = pause_for(counts[run]);
            for (int64_t i = from; i < from + counts[run]; i++) {
                int64_t row = row_at(rows, i);
                time[i] = int_at(&open[0], row);
                diff[i] = count == 2 ? int_at(&open[1], row) : netted_diff(&open[1], &open[2], &open[3], row);
            }
            go_on(paused);
        }
        for (int i = 0; i < 4; i++) close_array(&open[i]);
    }
    return going;
}

PyObject *py_weights(PyObject *self, PyObject *args) {
    PyObject *sources, *given, *list, *times = NULL, *diffs = NULL, *result = NULL;
    Rows rows = {0};
    int64_t *counts = NULL;
    Py_ssize_t runs;
    int going = 0;
    if (!PyArg_ParseTuple(args, "OOO", &sources, &given, &list) || (runs = PyList_Size(sources)) < 0) return NULL;
    if (open_rows(given, &rows) < 1) {
        if (!PyErr_Occurred()) result = Py_NewRef(Py_None); /* numbers of another width */
        goto done;
    }
    if ((counts = read_counts(list, runs, rows.length)) == NULL) goto done;
    times = PyByteArray_FromStringAndSize(NULL, rows.length * 8);
    diffs = PyByteArray_FromStringAndSize(NULL, rows.length * 8);
    if (times == NULL || diffs == NULL) goto done;
    going = weigh(sources, &rows, counts, (int64_t *)PyByteArray_AsString(times), (int64_t *)PyByteArray_AsString(diffs));
    if (going == 1) result = PyTuple_Pack(2, times, diffs);
    if (going == 0) result = Py_NewRef(Py_None);
done:
    Py_XDECREF(times);
    Py_XDECREF(diffs);
    PyMem_Free(counts);
    close_rows(&rows);
    return result;
}

/* Later times and products of diffs, written over those of the partners. 1; 0: a product does not fit; -1: a position is
   beyond the stream, without an exception. */
static int multiply(const Array *positions, const Array *own_time, const Array *own_diff, int64_t *time, int64_t *diff) {
    for (int64_t i = 0; i < positions->length; i++) {
        int64_t at = int_at(positions, i), own;
        if ((uint64_t)at >= (uint64_t)own_time->length) return -1;
        own = int_at(own_time, at);
        if (own > time[i]) time[i] = own;
        if (__builtin_mul_overflow(int_at(own_diff, at), diff[i], &diff[i])) return 0;
    }
    return 1;
}

/* As `multiply`; answers the times and diffs, None, or NULL with an exception. */
static PyObject *products_of(const Array *positions, const Array *own_time, const Array *own_diff, PyObject *times,
                             PyObject *diffs) {
    int64_t *time = (int64_t *)PyByteArray_AsString(times), *diff = (int64_t *)PyByteArray_AsString(diffs);
    PyThreadState *paused = pause_for(positions->length);
    int going = multiply(positions, own_time, own_diff, time, diff);
    go_on(paused);
    if (going == -1) return PyErr_Format(PyExc_IndexError, "a position beyond the stream");
    return going ? PyTuple_Pack(2, times, diffs) : Py_NewRef(Py_None);
}

/* A copy of numbers, one beside the other. */
static PyObject *copy_of(const Array *numbers) {
    PyObject *copy = PyByteArray_FromStringAndSize(NULL, numbers->length * 8);
    if (copy != NULL) {
        int64_t *into = (int64_t *)PyByteArray_AsString(copy);
        for (int64_t i = 0; i < numbers->length; i++) into[i] = int_at(numbers, i);
    }
    return copy;
}

PyObject *py_products(PyObject *self, PyObject *args) {
    PyObject *part[5], *times = NULL, *diffs = NULL, *result = NULL;
    Array open[5] = {0}; /* positions; the stream's time and diff; the partners' time and diff */
    int going = 1;
    if (!PyArg_ParseTuple(args, "OOOOO", &part[0], &part[1], &part[2], &part[3], &part[4])) return NULL;
    for (int i = 0; going == 1 && i < 5; i++) going = open_ints(part[i], &open[i]);
    if (going == 1) {
        int64_t length = open[0].length;
        going = open[1].length == open[2].length && open[3].length == length && open[4].length == length;
    }
    if (going == 1 && (times = copy_of(&open[3])) != NULL && (diffs = copy_of(&open[4])) != NULL)
        result = products_of(&open[0], &open[1], &open[2], times, diffs);
    if (going == 0) result = Py_NewRef(Py_None);
    for (int i = 0; i < 5; i++) close_array(&open[i]);
    Py_XDECREF(times);
    Py_XDECREF(diffs);
    return result;
}
