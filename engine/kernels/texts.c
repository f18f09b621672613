/* Texts that are like a pattern of parts with anything between them: LIKE '%a%b', without _ and escapes. */

#include "columns.h"

#define LONGEST 64 /* bytes of a part; the work of a text is at most so many times its length */

typedef struct {
    const uint8_t *at;
    int64_t size;
} Part;

/* Where a part begins for the first time, or NULL. */
static const uint8_t *first_of(const Part *part, const uint8_t *at, const uint8_t *end) {
    if (part->size == 0) return at;
    while (end - at >= part->size) {
        at = memchr(at, part->at[0], (size_t)(end - at - part->size + 1));
        if (at == NULL || memcmp(at, part->at, (size_t)part->size) == 0) return at;
        at++;
    }
    return NULL;
}

/* Whether a text begins with the first part, ends with the last one, and has the others between them, in order. The
   first place of each leaves most to those that follow. */
static int is_like(const uint8_t *at, int64_t size, const Part *parts, Py_ssize_t count) {
    const Part *last = &parts[count - 1];
    const uint8_t *end = at + size - last->size;
    if (size < parts[0].size + last->size) return 0;
    if (parts[0].size > 0 && memcmp(at, parts[0].at, (size_t)parts[0].size) != 0) return 0;
    if (last->size > 0 && memcmp(end, last->at, (size_t)last->size) != 0) return 0;
    at += parts[0].size;
    for (Py_ssize_t i = 1; i < count - 1; i++) {
        if ((at = first_of(&parts[i], at, end)) == NULL) return 0;
        at += parts[i].size;
    }
    return 1;
}

/* At least two parts as bytes, none of them longer than LONGEST: 1, 0 or -1 with an exception. */
static int open_parts(PyObject *tuple, Part **out, Py_ssize_t *count) {
    *count = PyTuple_Size(tuple);
    if (*count < 2) return *count < 0 ? -1 : 0;
    if ((*out = PyMem_Calloc((size_t)*count, sizeof(Part))) == NULL) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < *count; i++) {
        char *bytes;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(tuple, i), &bytes, &size) < 0) return -1;
        if (size > LONGEST) return 0;
        (*out)[i].at = (const uint8_t *)bytes, (*out)[i].size = size;
    }
    return 1;
}

PyObject *py_like(PyObject *self, PyObject *args) {
    PyObject *list, *tuple, *made = NULL;
    Columns columns = {0};
    Part *parts = NULL;
    Py_ssize_t count;
    int going;
    if (!PyArg_ParseTuple(args, "OO!", &list, &PyTuple_Type, &tuple)) return NULL;
    if ((going = open_parts(tuple, &parts, &count)) < 1) goto done;
    if ((going = open_columns(list, &columns)) < 1) goto done;
    if ((going = columns.count == 1 && columns.at[0].kind == TEXT) == 0) goto done;
    const Column *column = &columns.at[0];
    if ((made = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)column->length)) == NULL) goto done;
    uint8_t *marks = (uint8_t *)PyByteArray_AsString(made);
    PyThreadState *paused = pause_for(column->length);
    for (int64_t i = 0; i < column->length; i++) {
        const uint8_t *text;
        marks[i] = 0;
        if (!is_valid(column, i)) continue;
        int64_t size = text_at(column, i, &text);
        marks[i] = (uint8_t)is_like(text, size, parts, count);
    }
    go_on(paused);
done:
    PyMem_Free(parts);
    close_columns(&columns);
    if (going < 0) return NULL;
    return made == NULL && going == 0 ? Py_NewRef(Py_None) : made;
}
