/* Running sums of groups, as `engine.reduce` keeps them: what a group had, and what its updates add at each moment.

   Sums are 128 bits wide while they are added up. What does not fit into them has no kernel, and neither have sums of
   floats with NaN or infinities among them. `engine.scalar.kept` says in which bytes a sum is kept. */

#include "sums.h"

typedef struct {
    Columns summed, args, old; /* the values (none: rows are counted); the arguments; what groups had (none: nothing) */
    Array diff, rows, starts, group, was;
    int begins;
} Sums;

/* What rows `from` to `to` add; 0 if it does not fit. */
static int add_rows(const Sums *given, int64_t from, int64_t to, Wide *total) {
    for (int64_t i = from; i < to; i++) {
        int64_t row = int_at(&given->rows, i);
        int there = (uint64_t)row < (uint64_t)given->diff.length;
        Wide added;
        for (Py_ssize_t c = 0; there && c < given->args.count; c++) {
            if (row >= given->args.at[c].length) return 0;
            there = is_valid(&given->args.at[c], row);
        }
        if (!there) continue;
        added = int_at(&given->diff, row);
        if (given->summed.count) {
            if (row >= given->summed.at[0].length || !is_valid(&given->summed.at[0], row)) return 0;
            if (__builtin_mul_overflow(added, wide_at(&given->summed.at[0], row), &added)) return 0;
        }
        if (__builtin_add_overflow(*total, added, total)) return 0;
    }
    return 1;
}

/* What a group had; 0 if it does not fit. */
static int read_old(const Sums *given, int64_t group, Wide *total) {
    const uint8_t *text;
    const Column *old = given->old.at;
    *total = 0;
    if (given->old.count == 0) return 1;
    if ((uint64_t)group >= (uint64_t)old->length) return 0;
    if (!is_valid(old, group)) return 1;
    if (given->summed.count == 0) {
        *total = integer_at(old, group);
        return 1;
    }
    int64_t size = text_at(old, group, &text);
    return read_sum(text, size, total);
}

/* The sum at each moment; 0 if one does not fit. Counts are written to `counts`; other sums to `body`, with `ends`. */
static int run(const Sums *given, int64_t *counts, int32_t *ends, uint8_t *body, int64_t *size) {
    const char *was = given->was.at;
    int64_t segment = 0, begins = given->begins;
    Wide total = 0;
    *size = 0;
    for (int64_t i = 0; i < given->group.length; i++) {
        if (was[i]) {
            if (!read_old(given, int_at(&given->group, i), &total)) return 0;
        } else if (begins) {
            begins = 0; /* the moment in which a group without updates comes to be there */
        } else {
            int64_t from, to;
            if (segment >= given->starts.length) return 0;
            from = int_at(&given->starts, segment++);
            to = segment < given->starts.length ? int_at(&given->starts, segment) : given->rows.length;
            if (from < 0 || to > given->rows.length || !add_rows(given, from, to, &total)) return 0;
        }
        if (counts != NULL) {
            if (total != (int64_t)total) return 0;
            counts[i] = (int64_t)total;
        } else {
            *size += write_sum(total, body + *size);
            if (*size > INT32_MAX) return 0;
            ends[i + 1] = (int32_t)*size;
        }
    }
    return 1;
}

static int open_sums(PyObject *const *part, Sums *out) {
    int going = open_columns(part[0], &out->summed);
    if (going == 1) going = open_columns(part[1], &out->args);
    if (going == 1) going = open_columns(part[2], &out->old);
    if (going == 1) going = open_ints(part[3], &out->diff);
    if (going == 1) going = open_ints(part[4], &out->rows);
    if (going == 1) going = open_ints(part[5], &out->starts);
    if (going == 1) going = open_ints(part[6], &out->group);
    if (going == 1) going = open_flags(part[7], &out->was);
    if (going < 1) return going;
    if (out->summed.count > 1 || (out->summed.count && !summable(out->summed.at))) return 0;
    if (out->old.count > 1) return 0;
    if (out->old.count && out->summed.count && out->old.at->kind != TEXT) return 0;
    if (out->old.count && !out->summed.count && strcmp(out->old.at->format, "l") != 0) return 0;
    return out->was.length == out->group.length;
}

PyObject *py_totals(PyObject *self, PyObject *args) {
    PyObject *part[8], *result = NULL, *made = NULL, *offsets = NULL;
    Sums given = {0};
    uint8_t *body = NULL;
    int64_t size, length;
    int going;
    if (!PyArg_ParseTuple(args, "OOOOOOOOp", &part[0], &part[1], &part[2], &part[3], &part[4], &part[5], &part[6], &part[7],
                          &given.begins))
        return NULL;
    if ((going = open_sums(part, &given)) < 1) goto done;
    length = given.group.length;
    if (given.summed.count == 0) {
        PyThreadState *paused;
        int64_t *counts;
        if ((made = PyBytes_FromStringAndSize(NULL, length * 8)) == NULL) goto done;
        counts = (int64_t *)PyBytes_AsString(made);
        paused = pause_for(given.rows.length + length);
        going = run(&given, counts, NULL, NULL, &size);
        go_on(paused);
        if (going == 1) result = PyTuple_Pack(2, Py_None, made);
    } else {
        PyThreadState *paused;
        int32_t *ends;
        if ((offsets = PyBytes_FromStringAndSize(NULL, (length + 1) * 4)) == NULL) goto done;
        if ((body = malloc(length * MOST_SUM_BYTES + 1)) == NULL) {
            PyErr_NoMemory();
            goto done;
        }
        ends = (int32_t *)PyBytes_AsString(offsets);
        ends[0] = 0;
        paused = pause_for(given.rows.length + length);
        going = run(&given, NULL, ends, body, &size);
        go_on(paused);
        if (going == 1 && (made = PyBytes_FromStringAndSize((char *)body, size)) != NULL)
            result = PyTuple_Pack(3, Py_None, offsets, made);
    }
done:
    if (going == 0) result = Py_NewRef(Py_None);
    close_columns(&given.summed);
    close_columns(&given.args);
    close_columns(&given.old);
    close_array(&given.diff);
    close_array(&given.rows);
    close_array(&given.starts);
    close_array(&given.group);
    close_array(&given.was);
    free(body);
    Py_XDECREF(made);
    Py_XDECREF(offsets);
    return result;
}

/* Integers as sums are kept: the buffers of a column of binary. None if they are too many for one. */
PyObject *py_kept(PyObject *self, PyObject *numbers) {
    PyObject *offsets = NULL, *made = NULL, *result = NULL;
    Array given = {0};
    uint8_t *body = NULL;
    int going = open_ints(numbers, &given);
    if (going == 1) going = given.length < INT32_MAX / MOST_INT64_BYTES;
    if (going == 1 && (offsets = PyBytes_FromStringAndSize(NULL, (given.length + 1) * 4)) != NULL) {
        int32_t *ends = (int32_t *)PyBytes_AsString(offsets);
        if ((body = malloc(given.length * MOST_INT64_BYTES + 1)) == NULL) {
            PyErr_NoMemory();
        } else {
            PyThreadState *paused = pause_for(given.length);
            ends[0] = 0;
            for (int64_t i = 0; i < given.length; i++) ends[i + 1] = ends[i] + write_sum(int_at(&given, i), body + ends[i]);
            go_on(paused);
            if ((made = PyBytes_FromStringAndSize((char *)body, ends[given.length])) != NULL)
                result = PyTuple_Pack(3, Py_None, offsets, made);
        }
    }
    if (going == 0) result = Py_NewRef(Py_None);
    free(body);
    Py_XDECREF(offsets);
    Py_XDECREF(made);
    close_array(&given);
    return result;
}

/* The integers of kept sums, 0 for NULL. None if one does not fit into 64 bits. */
PyObject *py_read_kept(PyObject *self, PyObject *list) {
    PyObject *made = NULL, *result = NULL;
    Columns given = {0};
    int going = open_columns(list, &given);
    if (going == 1) going = given.count == 1 && given.at->kind == TEXT;
    if (going == 1 && (made = PyByteArray_FromStringAndSize(NULL, given.at->length * 8)) != NULL) {
        int64_t *values = (int64_t *)PyByteArray_AsString(made);
        PyThreadState *paused = pause_for(given.at->length);
        for (int64_t i = 0; going == 1 && i < given.at->length; i++) {
            const uint8_t *text;
            Wide value = 0;
            if (is_valid(given.at, i)) {
                int64_t size = text_at(given.at, i, &text);
                going = read_sum(text, size, &value) && value == (int64_t)value;
            }
            values[i] = (int64_t)value;
        }
        go_on(paused);
        if (going == 1) result = Py_NewRef(made);
    }
    if (going == 0) result = Py_NewRef(Py_None);
    Py_XDECREF(made);
    close_columns(&given);
    return result;
}
