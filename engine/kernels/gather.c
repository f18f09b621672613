/* Gathers columns: the values at rows of several runs, one after the other, become one column. */

#include "rows.h"

int open_rows(PyObject *object, Rows *out) {
    int opened = open_numbers(object, &out->narrow);
    if (opened == 0) {
        close_array(&out->narrow);
        opened = open_ints(object, &out->wide);
    }
    out->length = out->narrow.open ? out->narrow.length : out->wide.length;
    return opened;
}

void close_rows(Rows *rows) {
    close_array(&rows->wide);
    close_array(&rows->narrow);
}

int inside(const Rows *rows, int64_t from, int64_t to, int64_t length) {
    int fine = 1;
    for (int64_t i = from; i < to; i++) fine &= (uint64_t)row_at(rows, i) < (uint64_t)length;
    return fine;
}

#define COPY(TYPE)                                                                              \
    {                                                                                           \
        const TYPE *source = (const TYPE *)column->data + column->offset;                       \
        TYPE *into = (TYPE *)target + from;                                                     \
        if (rows->narrow.open) {                                                                \
            const uint32_t *numbers = (const uint32_t *)rows->narrow.at + from;                 \
            for (int64_t i = 0; i < to - from; i++) into[i] = source[numbers[i]];               \
        } else {                                                                                \
            for (int64_t i = 0; i < to - from; i++) into[i] = source[row_at(rows, from + i)];   \
        }                                                                                       \
        break;                                                                                  \
    }

typedef struct {
    int64_t low, high;
} Sixteen;

static void copy_values(const Column *column, const Rows *rows, int64_t from, int64_t to, uint8_t *target) {
    switch (column->width) {
    case 1: COPY(uint8_t)
    case 2: COPY(uint16_t)
    case 4: COPY(uint32_t)
    case 8: COPY(uint64_t)
    case 16: COPY(Sixteen)
    default:
        for (int64_t i = from; i < to; i++)
            memcpy(target + i * column->width, column->data + (row_at(rows, i) + column->offset) * column->width,
                   column->width);
    }
}

/* The bits of what is not NULL; returns how many are NULL. */
static int64_t fill_valid(const Column **each, const int64_t *counts, Py_ssize_t runs, const Rows *rows, uint8_t *bits) {
    int64_t from = 0, nulls = 0;
    for (Py_ssize_t run = 0; run < runs; from += counts[run++])
        for (int64_t i = from; i < from + counts[run]; i++) {
            int here = is_valid(each[run], row_at(rows, i));
            bits[i >> 3] |= here << (i & 7), nulls += !here;
        }
    return nulls;
}

/* Where each text ends; returns their bytes, or -1 if they are too long for one column. */
static int64_t fill_ends(const Column **each, const int64_t *counts, Py_ssize_t runs, const Rows *rows, int32_t *ends) {
    int64_t from = 0, total = 0;
    const uint8_t *one;
    ends[0] = 0;
    for (Py_ssize_t run = 0; run < runs; from += counts[run++])
        for (int64_t i = from; i < from + counts[run]; i++) {
            total += text_at(each[run], row_at(rows, i), &one);
            if (total > INT32_MAX) return -1;
            ends[i + 1] = (int32_t)total;
        }
    return total;
}

/* The values; those of texts begin where `ends` says. Those of BITS are 0 before. */
static void fill_values(const Column **each, const int64_t *counts, Py_ssize_t runs, const Rows *rows,
                        const int32_t *ends, uint8_t *into) {
    int64_t from = 0;
    const uint8_t *one;
    for (Py_ssize_t run = 0; run < runs; from += counts[run++]) {
        if (ends == NULL && each[run]->kind != BITS) {
            copy_values(each[run], rows, from, from + counts[run], into);
            continue;
        }
        for (int64_t i = from; i < from + counts[run]; i++) {
            if (ends == NULL) {
                into[i >> 3] |= bit_at(each[run], row_at(rows, i)) << (i & 7);
            } else {
                int64_t size = text_at(each[run], row_at(rows, i), &one);
                if (size) memcpy(into + ends[i], one, size);
            }
        }
    }
}

PyObject *gather_column(const Column **each, const int64_t *counts, Py_ssize_t runs, const Rows *rows) {
    int64_t length = rows->length, nulls = 0, size = length * each[0]->width;
    PyObject *valid = NULL, *values = NULL, *offsets = NULL, *result = NULL;
    PyThreadState *paused;
    int32_t *ends = NULL;
    uint8_t *into;
    int nullable = 0;
    for (Py_ssize_t run = 0; run < runs; run++) nullable |= each[run]->valid != NULL;
    if (nullable) {
        if ((valid = PyBytes_FromStringAndSize(NULL, (length + 7) / 8)) == NULL) goto done;
        into = (uint8_t *)PyBytes_AsString(valid);
        memset(into, 0, (length + 7) / 8);
        paused = pause_for(length);
        nulls = fill_valid(each, counts, runs, rows, into);
        go_on(paused);
    }
    if (each[0]->kind == TEXT) {
        if ((offsets = PyBytes_FromStringAndSize(NULL, (length + 1) * 4)) == NULL) goto done;
        ends = (int32_t *)PyBytes_AsString(offsets);
        paused = pause_for(length);
        size = fill_ends(each, counts, runs, rows, ends);
        go_on(paused);
        if (size < 0) {
            result = Py_NewRef(Py_None);
            goto done;
        }
    }
    if (each[0]->kind == BITS) size = (length + 7) / 8;
    if ((values = PyBytes_FromStringAndSize(NULL, size)) == NULL) goto done;
    into = (uint8_t *)PyBytes_AsString(values);
    if (each[0]->kind == BITS) memset(into, 0, size);
    paused = pause_for(length);
    fill_values(each, counts, runs, rows, ends, into);
    go_on(paused);
    if (ends != NULL) {
        result = PyTuple_Pack(3, nulls ? valid : Py_None, offsets, values);
    } else {
        result = PyTuple_Pack(2, nulls ? valid : Py_None, values);
    }
done:
    Py_XDECREF(valid);
    Py_XDECREF(values);
    Py_XDECREF(offsets);
    return result;
}

int64_t *read_counts(PyObject *list, Py_ssize_t runs, int64_t total) {
    int64_t *counts, left = total;
    Py_ssize_t run = 0;
    if (PyList_Size(list) != runs) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "one count for each run");
        return NULL;
    }
    counts = PyMem_Calloc(runs ? runs : 1, sizeof *counts);
    if (counts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (; run < runs; run++) {
        counts[run] = PyLong_AsLongLong(PyList_GetItem(list, run));
        if (counts[run] < 0 || counts[run] > left) break;
        left -= counts[run];
    }
    if (run == runs && left == 0) return counts;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "counts that do not add up to the rows");
    PyMem_Free(counts);
    return NULL;
}

PyObject *gather_columns(PyObject *sources, const Rows *rows, const int64_t *counts) {
    PyObject *result = NULL;
    int64_t from = 0;
    Py_ssize_t runs = PyList_Size(sources), opened = 0, width = 0;
    Columns *columns = PyMem_Calloc(runs, sizeof *columns);
    const Column **each = PyMem_Calloc(runs, sizeof *each);
    if (columns == NULL || each == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (; opened < runs; from += counts[opened++]) {
        int going = open_columns(PyList_GetItem(sources, opened), &columns[opened]);
        if (going == -1) {
            opened++;
            goto done;
        }
        if (going == 0) { /* some type is not ours */
            opened++, result = Py_NewRef(Py_None);
            goto done;
        }
        if (opened == 0) width = columns[0].count;
        if (columns[opened].count != width) {
            PyErr_SetString(PyExc_ValueError, "the same columns of each run"), opened++;
            goto done;
        }
        for (Py_ssize_t c = 0; c < width; c++) {
            const Column *column = &columns[opened].at[c];
            if (column->kind == LARGE_TEXT || strcmp(column->format, columns[0].at[c].format) != 0) {
                opened++, result = Py_NewRef(Py_None);
                goto done;
            }
            if ((c == 0 || column->length != column[-1].length) &&
                !inside(rows, from, from + counts[opened], column->length)) {
                PyErr_SetString(PyExc_IndexError, "a row number beyond its run"), opened++;
                goto done;
            }
        }
    }
    if ((result = PyList_New(width)) == NULL) goto done;
    for (Py_ssize_t c = 0; c < width; c++) {
        PyObject *made;
        for (Py_ssize_t run = 0; run < runs; run++) each[run] = &columns[run].at[c];
        if ((made = gather_column(each, counts, runs, rows)) == NULL) {
            Py_CLEAR(result);
            goto done;
        }
        PyList_SetItem(result, c, made);
    }
done:
    for (Py_ssize_t run = 0; columns != NULL && run < opened; run++) close_columns(&columns[run]);
    PyMem_Free(columns);
    PyMem_Free(each);
    return result;
}

PyObject *py_gather(PyObject *self, PyObject *args) {
    PyObject *sources, *given, *list, *result = NULL;
    Rows rows = {0};
    int64_t *counts = NULL;
    Py_ssize_t runs;
    if (!PyArg_ParseTuple(args, "OOO", &sources, &given, &list) || (runs = PyList_Size(sources)) < 0) return NULL;
    if (runs == 0) return PyErr_Format(PyExc_ValueError, "no runs");
    if (open_rows(given, &rows) < 1) {
        if (!PyErr_Occurred()) result = Py_NewRef(Py_None); /* numbers of another width */
    } else if ((counts = read_counts(list, runs, rows.length)) != NULL) {
        result = gather_columns(sources, &rows, counts);
    }
    PyMem_Free(counts);
    close_rows(&rows);
    return result;
}
