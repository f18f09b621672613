/* The rows that pairs make: the stream's columns beside the partners', the later times, the products of the diffs. */

#include "lookup.h"

/* The times and diffs of the joined rows. 0: a product does not fit. */
static int multiply(const Lookup *lookup, int64_t *time, int64_t *diff) {
    int64_t i = 0;
    for (Py_ssize_t s = 0; s < lookup->count; s++) {
        const Side *side = lookup->sides[s];
        for (int64_t end = i + lookup->counts[s]; i < end; i++) {
            int64_t at = lookup->found.positions[i];
            int64_t own = int_at(&lookup->time, at), other = int_at(&side->time, lookup->found.rows[i]);
            time[i] = own > other ? own : other;
            if (__builtin_mul_overflow(int_at(&lookup->diff, at), weight_of_pair(lookup, side, i), &diff[i])) return 0;
        }
    }
    return 1;
}

/* Adds the bytes of the texts of a column at the found rows, or positions. */
static int64_t text_bytes(const Column *column, const Lookup *lookup, int64_t from, int64_t to, int theirs) {
    const uint8_t *text;
    int64_t total = 0;
    if (column->kind != TEXT) return 0;
    for (; from < to; from++)
        total += text_at(column, theirs ? lookup->found.rows[from] : lookup->found.positions[from], &text);
    return total;
}

int gatherable(const Lookup *lookup, int64_t most) {
    int64_t from = 0, total = 0;
    for (Py_ssize_t c = 0; c < lookup->kept.count; c++) {
        const Column *column = &lookup->kept.at[c];
        if (column->kind == LARGE_TEXT || column->length != lookup->time.length) return 0;
        total += text_bytes(column, lookup, 0, lookup->found.count, 0);
    }
    for (Py_ssize_t s = 0; s < lookup->count; from += lookup->counts[s++]) {
        const Columns *fetched = &lookup->sides[s]->fetched, *first = &lookup->sides[0]->fetched;
        if (fetched->count != first->count) return 0;
        for (Py_ssize_t c = 0; c < fetched->count; c++) {
            if (fetched->at[c].kind == LARGE_TEXT || strcmp(fetched->at[c].format, first->at[c].format) != 0) return 0;
            total += text_bytes(&fetched->at[c], lookup, from, from + lookup->counts[s], 1);
        }
    }
    return total <= most;
}

const Column *column_like(const Lookup *lookup, Py_ssize_t c) {
    return c < lookup->kept.count ? &lookup->kept.at[c] : &lookup->sides[0]->fetched.at[c - lookup->kept.count];
}

Py_ssize_t width(const Lookup *lookup) {
    return lookup->kept.count + (lookup->count ? lookup->sides[0]->fetched.count : 0);
}

/* The buffers of all columns of the joined rows. */
static PyObject *gather_both(const Lookup *lookup) {
    Rows mine = {.wide = {.at = lookup->found.positions, .length = lookup->found.count, .step = 1}};
    Rows theirs = {.narrow = {.at = lookup->found.rows, .length = lookup->found.count, .step = 1, .open = 1}};
    Py_ssize_t own = lookup->kept.count, count = width(lookup);
    const Column **each = PyMem_Calloc(lookup->count + 1, sizeof *each);
    PyObject *result = each == NULL ? PyErr_NoMemory() : PyList_New(count);
    mine.length = theirs.length = lookup->found.count;
    for (Py_ssize_t c = 0; result != NULL && c < count; c++) {
        PyObject *made;
        if (c < own) each[0] = &lookup->kept.at[c];
        else for (Py_ssize_t s = 0; s < lookup->count; s++) each[s] = &lookup->sides[s]->fetched.at[c - own];
        made = c < own ? gather_column(each, &mine.length, 1, &mine)
                       : gather_column(each, lookup->counts, lookup->count, &theirs);
        if (made == NULL) Py_CLEAR(result);
        else PyList_SetItem(result, c, made);
    }
    PyMem_Free(each);
    return result;
}

PyObject *join(const Lookup *lookup) {
    PyObject *times, *diffs, *made = NULL, *result = NULL;
    int64_t size = lookup->found.count * 8;
    times = PyByteArray_FromStringAndSize(NULL, size), diffs = PyByteArray_FromStringAndSize(NULL, size);
    if (times != NULL && diffs != NULL) {
        PyThreadState *paused = pause_for(lookup->found.count);
        int fits = multiply(lookup, (int64_t *)PyByteArray_AsString(times), (int64_t *)PyByteArray_AsString(diffs));
        go_on(paused);
        if (fits && (made = gather_both(lookup)) != NULL) result = PyTuple_Pack(3, made, times, diffs);
    }
    Py_XDECREF(made);
    Py_XDECREF(times);
    Py_XDECREF(diffs);
    return result;
}
