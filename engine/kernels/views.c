/* Columns over buffers that were gathered, for kernels that go on with them. */

#include "rows.h"

static const void *bytes_of(PyObject *buffers, Py_ssize_t at) {
    PyObject *buffer = PyTuple_GetItem(buffers, at);
    return buffer == Py_None ? NULL : PyBytes_AsString(buffer);
}

Column view_of(PyObject *buffers, const Column *like, int64_t length) {
    Column column = *like;
    column.held = NULL, column.offset = 0, column.length = length;
    column.valid = bytes_of(buffers, 0);
    column.offsets = column.kind == TEXT ? bytes_of(buffers, 1) : NULL;
    column.data = bytes_of(buffers, column.kind == TEXT ? 2 : 1);
    return column;
}

int gather_views(const Columns *from, const Rows *rows, Columns *out, PyObject **made) {
    out->at = PyMem_Calloc(from->count ? from->count : 1, sizeof *out->at);
    if (out->at == NULL) return PyErr_NoMemory(), -1;
    if ((*made = PyList_New(from->count)) == NULL) return -1;
    for (out->count = 0; out->count < from->count; out->count++) {
        const Column *one = &from->at[out->count];
        PyObject *buffers = gather_column(&one, &rows->length, 1, rows);
        if (buffers == NULL) return -1;
        PyList_SetItem(*made, out->count, buffers);
        if (buffers == Py_None) return 0;
        out->at[out->count] = view_of(buffers, one, rows->length);
    }
    return 1;
}
