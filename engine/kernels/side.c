/* Opens runs for lookups. A run does not change, and many batches look it up, so it is opened once for each kind of
   lookup and kept as a capsule, which holds what it reads. */

#include "side.h"

#define NAME "halfjoin.side"

static void close_side(Side *side) {
    close_index(&side->index);
    close_columns(&side->keys);
    close_columns(&side->tested);
    close_columns(&side->fetched);
    close_array(&side->time);
    close_array(&side->diff);
    close_array(&side->netted);
    close_array(&side->nets);
    close_array(&side->mask);
    PyMem_Free(side);
}

static void release(PyObject *capsule) {
    Side *side = PyCapsule_GetPointer(capsule, NAME);
    if (side != NULL) close_side(side);
}

static int are_long(const Columns *columns, int64_t length) {
    for (Py_ssize_t c = 0; c < columns->count; c++)
        if (columns->at[c].length != length) return 0;
    return 1;
}

static int open_side(PyObject *index, PyObject *const lists[3], PyObject *weights, PyObject *mask, Side *out) {
    PyObject *part[4];
    int going;
    if (!PyArg_ParseTuple(weights, "OOOO", &part[0], &part[1], &part[2], &part[3])) return -1;
    if ((going = open_index(index, &out->index)) < 1) return going;
    if (!make_filter(&out->index)) return PyErr_NoMemory(), -1;
    if ((going = open_columns(lists[0], &out->keys)) < 1) return going;
    if ((going = open_columns(lists[1], &out->tested)) < 1) return going;
    if ((going = open_columns(lists[2], &out->fetched)) < 1) return going;
    if ((going = open_ints(part[0], &out->time)) < 1 || (going = open_ints(part[1], &out->diff)) < 1) return going;
    if (part[2] != Py_None) {
        if ((going = open_ints(part[2], &out->netted)) < 1 || (going = open_ints(part[3], &out->nets)) < 1) return going;
    }
    if (mask != Py_None && (going = open_flags(mask, &out->mask)) < 1) return going;
    return out->diff.length == out->time.length && (!out->mask.open || out->mask.length == out->time.length) &&
           out->netted.length == out->nets.length &&
           are_long(&out->keys, out->time.length) && are_long(&out->tested, out->time.length) &&
           are_long(&out->fetched, out->time.length);
}

PyObject *py_side(PyObject *self, PyObject *args) {
    PyObject *index, *lists[3], *weights, *mask, *capsule = NULL;
    Side *side;
    int exact, going;
    if (!PyArg_ParseTuple(args, "OpOOOOO", &index, &exact, &lists[0], &lists[1], &lists[2], &weights, &mask)) return NULL;
    if ((side = PyMem_Calloc(1, sizeof *side)) == NULL) return PyErr_NoMemory();
    side->exact = exact;
    if ((going = open_side(index, lists, weights, mask, side)) == 1 && (capsule = PyCapsule_New(side, NAME, release)) != NULL)
        return capsule;
    close_side(side);
    return going == 0 ? Py_NewRef(Py_None) : NULL;
}

/* Holds a bytearray as numbers of so many bytes. 0 with an exception. */
static int hold(PyObject *bytes, int64_t size, Array *out) {
    if (PyObject_GetBuffer(bytes, &out->buffer, PyBUF_SIMPLE) < 0) return 0;
    out->open = 1, out->at = out->buffer.buf, out->length = out->buffer.len / size, out->step = 1;
    return 1;
}

/* Views of the first `count` columns, which hold their buffers, and the schema with the format of the column that each is
   like, but not its rows. 0 with an exception. */
static int hold_columns(PyObject *buffers, const Column *like, Py_ssize_t count, int64_t length, Columns *out) {
    if ((out->at = PyMem_Calloc(count ? count : 1, sizeof *out->at)) == NULL) return PyErr_NoMemory(), 0;
    for (; out->count < count; out->count++) {
        PyObject *held = like[out->count].held, *parts = PyList_GetItem(buffers, out->count);
        PyObject *schema = held == NULL ? Py_None : PyTuple_GetItem(held, 0);
        Column *column = &out->at[out->count];
        *column = view_of(parts, &like[out->count], length);
        if ((column->held = PyTuple_Pack(2, parts, schema)) == NULL) return 0;
    }
    return 1;
}

PyObject *made_side(PyObject *index, PyObject *buffers, const Column *like, Py_ssize_t keys, PyObject *time, PyObject *diff) {
    const int64_t length = PyByteArray_Size(diff) / 8;
    PyObject *capsule = NULL;
    Side *side = PyMem_Calloc(1, sizeof *side);
    if (side == NULL) return PyErr_NoMemory();
    if (!hold(PyTuple_GetItem(index, 0), 8, &side->index.codes) || !hold(PyTuple_GetItem(index, 1), 4, &side->index.rows) ||
        !hold(time, 8, &side->time) || !hold(diff, 8, &side->diff) ||
        !hold_columns(buffers, like, keys, length, &side->keys) ||
        !hold_columns(buffers, like, PyList_Size(buffers), length, &side->fetched)) goto done;
    side->time.length = length, side->time.step = 0;
    side->exact = keys == 1 && (like->kind == INTEGER || like->kind == BITS) && side->keys.at->valid == NULL;
    if (make_filter(&side->index)) capsule = PyCapsule_New(side, NAME, release);
    else PyErr_NoMemory();
done:
    if (capsule == NULL) close_side(side);
    return capsule;
}

const Side **sides_of(PyObject *list, Py_ssize_t *count) {
    const Side **sides;
    if ((*count = PyList_Size(list)) < 0) return NULL;
    if ((sides = PyMem_Calloc(*count ? *count : 1, sizeof *sides)) == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < *count; i++)
        if ((sides[i] = PyCapsule_GetPointer(PyList_GetItem(list, i), NAME)) == NULL) {
            PyMem_Free(sides);
            return NULL;
        }
    return sides;
}
