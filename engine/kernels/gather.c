/* Gathers the values of pairs: rows of several runs, one after the other, become one column.

   `rows` are the row numbers in run 0, then those in run 1, and so on; `counts` says how many there are of each. */

#include "columns.h"

typedef struct {
    PyObject *object;
    Array wide, narrow; /* int64 or uint32, as given */
    int64_t length;
} Rows;

static int open_rows(PyObject *object, Rows *out) {
    int opened = open_numbers(object, &out->narrow);
    if (opened == 0) {
        close_array(&out->narrow);
        opened = open_ints(object, &out->wide);
    }
    out->length = out->narrow.open ? out->narrow.length : out->wide.length;
    return opened;
}

static void close_rows(Rows *rows) {
    close_array(&rows->wide);
    close_array(&rows->narrow);
}

static inline int64_t row_at(const Rows *rows, int64_t i) {
    return rows->narrow.open ? ((const uint32_t *)rows->narrow.at)[i] : int_at(&rows->wide, i);
}

/* Whether rows `from` to `to` are below a length, and not negative. */
static int inside(const Rows *rows, int64_t from, int64_t to, int64_t length) {
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

/* A column of Arrow, as its buffers: (validity or None, values) or (validity or None, offsets, values). `each`: the
   column of each run. None if the texts are too long for one column. */
static PyObject *gather_column(const Column **each, const int64_t *counts, Py_ssize_t runs, const Rows *rows) {
    int64_t length = rows->length, from, nulls = 0;
    PyObject *valid = NULL, *values = NULL, *offsets = NULL, *result = NULL;
    int nullable = 0, text = each[0]->kind == TEXT;
    for (Py_ssize_t run = 0; run < runs; run++) nullable |= each[run]->valid != NULL;
    if (nullable) {
        uint8_t *bits;
        if ((valid = PyBytes_FromStringAndSize(NULL, (length + 7) / 8)) == NULL) goto done;
        bits = (uint8_t *)PyBytes_AsString(valid);
        memset(bits, 0, (length + 7) / 8);
        from = 0;
        for (Py_ssize_t run = 0; run < runs; from += counts[run++])
            for (int64_t i = from; i < from + counts[run]; i++) {
                int here = is_valid(each[run], row_at(rows, i));
                bits[i >> 3] |= here << (i & 7), nulls += !here;
            }
    }
    if (text) {
        int32_t *ends;
        int64_t total = 0;
        uint8_t *bytes;
        const uint8_t *one;
        if ((offsets = PyBytes_FromStringAndSize(NULL, (length + 1) * 4)) == NULL) goto done;
        ends = (int32_t *)PyBytes_AsString(offsets);
        ends[0] = 0, from = 0;
        for (Py_ssize_t run = 0; run < runs; from += counts[run++])
            for (int64_t i = from; i < from + counts[run]; i++) {
                total += text_at(each[run], row_at(rows, i), &one);
                if (total > INT32_MAX) {
                    result = Py_NewRef(Py_None);
                    goto done;
                }
                ends[i + 1] = (int32_t)total;
            }
        if ((values = PyBytes_FromStringAndSize(NULL, total)) == NULL) goto done;
        bytes = (uint8_t *)PyBytes_AsString(values);
        from = 0;
        for (Py_ssize_t run = 0; run < runs; from += counts[run++])
            for (int64_t i = from; i < from + counts[run]; i++) {
                int64_t size = text_at(each[run], row_at(rows, i), &one);
                if (size) memcpy(bytes + ends[i], one, size);
            }
    } else if (each[0]->kind == BITS) {
        uint8_t *bits;
        if ((values = PyBytes_FromStringAndSize(NULL, (length + 7) / 8)) == NULL) goto done;
        bits = (uint8_t *)PyBytes_AsString(values);
        memset(bits, 0, (length + 7) / 8);
        from = 0;
        for (Py_ssize_t run = 0; run < runs; from += counts[run++])
            for (int64_t i = from; i < from + counts[run]; i++)
                bits[i >> 3] |= bit_at(each[run], row_at(rows, i)) << (i & 7);
    } else {
        if ((values = PyBytes_FromStringAndSize(NULL, length * each[0]->width)) == NULL) goto done;
        from = 0;
        for (Py_ssize_t run = 0; run < runs; from += counts[run++])
            copy_values(each[run], rows, from, from + counts[run], (uint8_t *)PyBytes_AsString(values));
    }
    if (text) {
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

/* The counts as numbers; NULL with an exception, also if they do not add up to `total`. */
static int64_t *read_counts(PyObject *list, Py_ssize_t runs, int64_t total) {
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

PyObject *py_gather(PyObject *self, PyObject *args) {
    PyObject *sources, *given, *list, *result = NULL;
    Rows rows = {0};
    Columns *columns = NULL;
    const Column **each = NULL;
    int64_t *counts = NULL, from = 0;
    Py_ssize_t runs, opened = 0, width = 0;
    if (!PyArg_ParseTuple(args, "OOO", &sources, &given, &list) || (runs = PyList_Size(sources)) < 0) return NULL;
    if (runs == 0) return PyErr_Format(PyExc_ValueError, "no runs");
    if (open_rows(given, &rows) < 1) {
        if (!PyErr_Occurred()) result = Py_NewRef(Py_None); /* numbers of another width */
        goto done;
    }
    if ((counts = read_counts(list, runs, rows.length)) == NULL) goto done;
    columns = PyMem_Calloc(runs, sizeof *columns);
    each = PyMem_Calloc(runs, sizeof *each);
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
                !inside(&rows, from, from + counts[opened], column->length)) {
                PyErr_SetString(PyExc_IndexError, "a row number beyond its run"), opened++;
                goto done;
            }
        }
    }
    if ((result = PyList_New(width)) == NULL) goto done;
    for (Py_ssize_t c = 0; c < width; c++) {
        PyObject *made;
        for (Py_ssize_t run = 0; run < runs; run++) each[run] = &columns[run].at[c];
        if ((made = gather_column(each, counts, runs, &rows)) == NULL) {
            Py_CLEAR(result);
            goto done;
        }
        PyList_SetItem(result, c, made);
    }
done:
    for (Py_ssize_t run = 0; columns != NULL && run < opened; run++) close_columns(&columns[run]);
    PyMem_Free(columns);
    PyMem_Free(each);
    PyMem_Free(counts);
    close_rows(&rows);
    return result;
}

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

PyObject *py_weights(PyObject *self, PyObject *args) {
    PyObject *sources, *given, *list, *times = NULL, *diffs = NULL, *result = NULL;
    Rows rows = {0};
    int64_t *counts = NULL, from = 0;
    Py_ssize_t runs;
    if (!PyArg_ParseTuple(args, "OOO", &sources, &given, &list) || (runs = PyList_Size(sources)) < 0) return NULL;
    if (open_rows(given, &rows) < 1) {
        if (!PyErr_Occurred()) result = Py_NewRef(Py_None); /* numbers of another width */
        goto done;
    }
    if ((counts = read_counts(list, runs, rows.length)) == NULL) goto done;
    times = PyByteArray_FromStringAndSize(NULL, rows.length * 8);
    diffs = PyByteArray_FromStringAndSize(NULL, rows.length * 8);
    if (times == NULL || diffs == NULL) goto done;
    for (Py_ssize_t run = 0; run < runs; from += counts[run++]) {
        PyObject *part[4];
        Array open[4] = {0};
        int going = 1, count;
        int64_t *time = (int64_t *)PyByteArray_AsString(times), *diff = (int64_t *)PyByteArray_AsString(diffs);
        if (!PyArg_ParseTuple(PyList_GetItem(sources, run), "OOOO", &part[0], &part[1], &part[2], &part[3])) goto done;
        count = part[2] == Py_None ? 2 : 4;
        for (int i = 0; going == 1 && i < count; i++) going = open_ints(part[i], &open[i]);
        if (going == 1) going = open[1].length == open[0].length && open[2].length == open[3].length;
        if (going == 1 && !inside(&rows, from, from + counts[run], open[0].length)) {
            PyErr_SetString(PyExc_IndexError, "a row number beyond its run");
            going = -1;
        }
        for (int64_t i = from; going == 1 && i < from + counts[run]; i++) {
            int64_t row = row_at(&rows, i);
            time[i] = int_at(&open[0], row);
            diff[i] = count == 2 ? int_at(&open[1], row) : netted_diff(&open[1], &open[2], &open[3], row);
        }
        for (int i = 0; i < 4; i++) close_array(&open[i]);
        if (going == 0) result = Py_NewRef(Py_None);
        if (going < 1) goto done;
    }
    result = PyTuple_Pack(2, times, diffs);
done:
    Py_XDECREF(times);
    Py_XDECREF(diffs);
    PyMem_Free(counts);
    close_rows(&rows);
    return result;
}

PyObject *py_products(PyObject *self, PyObject *args) {
    PyObject *part[5], *times = NULL, *diffs = NULL, *result = NULL;
    Array open[5] = {0}; /* positions; the stream's time and diff; the partners' time and diff */
    int going = 1;
    if (!PyArg_ParseTuple(args, "OOOOO", &part[0], &part[1], &part[2], &part[3], &part[4])) return NULL;
    for (int i = 0; going == 1 && i < 5; i++) going = open_ints(part[i], &open[i]);
    if (going == 1) {
        int64_t length = open[0].length, *time, *diff;
        going = open[1].length == open[2].length && open[3].length == length && open[4].length == length;
        times = PyByteArray_FromStringAndSize(NULL, length * 8);
        diffs = PyByteArray_FromStringAndSize(NULL, length * 8);
        if (times == NULL || diffs == NULL) goto done;
        time = (int64_t *)PyByteArray_AsString(times), diff = (int64_t *)PyByteArray_AsString(diffs);
        for (int64_t i = 0; going == 1 && i < length; i++) {
            int64_t at = int_at(&open[0], i), own, other = int_at(&open[3], i);
            if ((uint64_t)at >= (uint64_t)open[1].length) {
                PyErr_SetString(PyExc_IndexError, "a position beyond the stream");
                goto done;
            }
            own = int_at(&open[1], at);
            time[i] = own > other ? own : other;
            going = !__builtin_mul_overflow(int_at(&open[2], at), int_at(&open[4], i), &diff[i]);
        }
    }
    if (going == 1) result = PyTuple_Pack(2, times, diffs);
    if (going == 0) result = Py_NewRef(Py_None);
done:
    for (int i = 0; i < 5; i++) close_array(&open[i]);
    Py_XDECREF(times);
    Py_XDECREF(diffs);
    return result;
}

PyObject *py_equal(PyObject *self, PyObject *args) {
    PyObject *left, *given_positions, *sources, *given, *list, *result = NULL;
    Array positions = {0};
    Rows rows = {0};
    Columns mine = {0}, theirs = {0};
    int64_t *counts = NULL, from = 0;
    Py_ssize_t runs;
    char *mask;
    int going;
    if (!PyArg_ParseTuple(args, "OOOOO", &left, &given_positions, &sources, &given, &list)) return NULL;
    if ((runs = PyList_Size(sources)) < 0) return NULL;
    if ((going = open_columns(left, &mine)) < 1 || (going = open_ints(given_positions, &positions)) < 1 ||
        (going = open_rows(given, &rows)) < 1)
        goto done;
    if ((counts = read_counts(list, runs, rows.length)) == NULL) goto done;
    if ((going = positions.length == rows.length) == 0) goto done;
    if ((result = PyByteArray_FromStringAndSize(NULL, rows.length)) == NULL) goto done;
    mask = PyByteArray_AsString(result);
    memset(mask, 1, rows.length);
    for (Py_ssize_t run = 0; run < runs; from += counts[run++]) {
        if ((going = open_columns(PyList_GetItem(sources, run), &theirs)) < 1) break;
        if ((going = theirs.count == mine.count) == 0) break;
        for (Py_ssize_t c = 0; going == 1 && c < mine.count; c++) {
            const Column *one = &mine.at[c], *other = &theirs.at[c];
            if ((going = comparable(one, other)) == 0) break;
            for (int64_t i = from; i < from + counts[run]; i++) {
                int64_t at = int_at(&positions, i), row = row_at(&rows, i);
                if ((uint64_t)at >= (uint64_t)one->length || (uint64_t)row >= (uint64_t)other->length) {
                    PyErr_SetString(PyExc_IndexError, "a row number beyond its run");
                    going = -1;
                    break;
                }
                if (mask[i]) mask[i] = (char)equal_values(one, at, other, row);
            }
        }
        if (going < 1) break;
        close_columns(&theirs);
    }
done:
    close_columns(&mine);
    close_columns(&theirs);
    close_array(&positions);
    close_rows(&rows);
    PyMem_Free(counts);
    if (going < 1) Py_CLEAR(result);
    if (going == 0 && !PyErr_Occurred()) result = Py_NewRef(Py_None);
    return result;
}
