/* The check of a key: pairs insertions with deletions of the same row (engine.intake.key_pairs says why). */

#include "columns.h"

typedef struct {
    Columns columns;
    Array rows, wide, keys, time, diff;
} Place;

typedef struct {
    int64_t time, diff, row;
    int32_t place, used;
} Placed;

static inline int64_t row_of(const Place *place, int64_t i) {
    return place->rows.open ? ((const uint32_t *)place->rows.at)[i] : int_at(&place->wide, i);
}

static int open_place(PyObject *tuple, Place *out, int64_t count) {
    PyObject *columns, *rows, *keys, *time, *diff;
    int going;
    if (!PyArg_ParseTuple(tuple, "OOOOO", &columns, &rows, &keys, &time, &diff)) return -1;
    if ((going = open_columns(columns, &out->columns)) < 1) return going;
    going = open_numbers(rows, &out->rows);
    if (going == 0) {
        close_array(&out->rows);
        going = open_ints(rows, &out->wide);
    }
    if (going == 1) going = open_ints(keys, &out->keys);
    if (going == 1) going = open_ints(time, &out->time);
    if (going == 1) going = open_ints(diff, &out->diff);
    if (going < 1) return going;
    if ((out->rows.open ? out->rows.length : out->wide.length) != out->keys.length) return 0;
    for (int64_t i = 0; i < out->keys.length; i++) {
        if ((uint64_t)int_at(&out->keys, i) >= (uint64_t)count) return 0;
        if ((uint64_t)row_of(out, i) >= (uint64_t)out->time.length) return 0;
    }
    for (Py_ssize_t c = 0; c < out->columns.count; c++)
        if (out->columns.at[c].length != out->time.length) return 0;
    return out->time.length == out->diff.length;
}

static void close_place(Place *place) {
    close_columns(&place->columns);
    close_array(&place->rows);
    close_array(&place->wide);
    close_array(&place->keys);
    close_array(&place->time);
    close_array(&place->diff);
}

static int by_time(const void *left, const void *right) {
    const Placed *one = left, *other = right;
    if (one->time != other->time) return one->time < other->time ? -1 : 1;
    return (one->diff > other->diff) - (one->diff < other->diff);
}

/* Whether rows of one key are pairs of an insertion and the deletion of the same row, one after the other. */
static int cancel(const Place *places, Placed *rows, int64_t count) {
    if (count & 1) return 0;
    if (count > 2) qsort(rows, count, sizeof *rows, by_time);
    else if (count == 2 && by_time(&rows[0], &rows[1]) > 0) {
        Placed first = rows[0];
        rows[0] = rows[1], rows[1] = first;
    }
    for (int64_t i = 0; i < count; i += 2) {
        const Columns *came = &places[rows[i].place].columns, *gone = &places[rows[i + 1].place].columns;
        if (rows[i].diff != 1 || rows[i + 1].diff != -1) return 0;
        for (Py_ssize_t c = 0; c < came->count; c++)
            if (!equal_values(&came->at[c], rows[i].row, &gone->at[c], rows[i + 1].row)) return 0;
    }
    return 1;
}

/* Place 0 is the batch, the others are what the table holds. `ends` has room for a number of each key and one more. */
static int pair_up(const Place *places, Py_ssize_t count, int64_t keys, Placed *all, int64_t *ends, int64_t *begins,
                   char *sure, char *comes) {
    const Place *batch = &places[0];
    memset(sure, 1, keys);
    memset(comes, 0, keys); /* 0: the batch has no row of the key; 1: it deletes; 2: it inserts one */
    memset(ends, 0, (keys + 1) * sizeof *ends);
    for (int64_t i = 0; i < batch->keys.length; i++) {
        int64_t key = int_at(&batch->keys, i), row = row_of(batch, i);
        int64_t time = int_at(&batch->time, row), diff = int_at(&batch->diff, row);
        if (time == INT64_MAX) return 0;
        if (comes[key] == 0) begins[key] = time, comes[key] = 1;
        else if (begins[key] != time) sure[key] = 0;
        if (diff == 1) {
            if (comes[key] == 2) sure[key] = 0;
            comes[key] = 2;
        } else if (diff == -1) {
            ends[key + 1]++;
        } else {
            sure[key] = 0;
        }
    }
    for (Py_ssize_t p = 1; p < count; p++)
        for (int64_t i = 0; i < places[p].keys.length; i++) {
            int64_t key = int_at(&places[p].keys, i);
            if (comes[key] == 0) return 0; /* the caller asked for keys that the batch does not have */
            ends[key + 1]++;
        }
    for (int64_t key = 0; key < keys; key++) ends[key + 1] += ends[key];
    for (Py_ssize_t p = 0; p < count; p++)
        for (int64_t i = 0; i < places[p].keys.length; i++) {
            int64_t key = int_at(&places[p].keys, i), row = row_of(&places[p], i);
            int64_t time = int_at(&places[p].time, row), diff = int_at(&places[p].diff, row);
            if (p == 0 && diff != -1) continue;
            if (p > 0 && time > begins[key]) sure[key] = 0;
            all[ends[key]++] = (Placed){p == 0 ? time + 1 : time, diff, row, (int32_t)p, 0}; /* the batch's come last */
        }
    for (int64_t key = 0; key < keys; key++) {
        int64_t start = key == 0 ? 0 : ends[key - 1]; /* by now each end is where the next key starts */
        if (sure[key]) sure[key] = (char)cancel(places, all + start, ends[key] - start);
    }
    return 1;
}

PyObject *py_pairs(PyObject *self, PyObject *args) {
    PyObject *list, *result = NULL;
    Py_ssize_t keys, count, opened = 0;
    int64_t total = 0, *numbers = NULL;
    Place *places = NULL;
    Placed *all = NULL;
    char *comes = NULL;
    int going;
    if (!PyArg_ParseTuple(args, "On", &list, &keys) || (count = PyList_Size(list)) < 0) return NULL;
    if (count == 0) return PyErr_Format(PyExc_ValueError, "the first place is the batch");
    places = PyMem_Calloc(count, sizeof *places);
    if (places == NULL) return PyErr_NoMemory();
    going = keys >= 0 && keys < INT32_MAX;
    while (going == 1 && opened < count) {
        going = open_place(PyList_GetItem(list, opened), &places[opened], keys);
        opened++;
        if (going < 1) break;
        total += places[opened - 1].keys.length;
        going = places[opened - 1].columns.count == places[0].columns.count;
        for (Py_ssize_t c = 0; going == 1 && c < places[0].columns.count; c++)
            going = comparable(&places[0].columns.at[c], &places[opened - 1].columns.at[c]);
    }
    if (going == 1) {
        all = malloc((total ? total : 1) * sizeof *all);
        numbers = malloc((2 * keys + 1) * sizeof *numbers);
        comes = malloc(keys ? keys : 1);
        result = PyByteArray_FromStringAndSize(NULL, keys);
        if (all == NULL || numbers == NULL || comes == NULL || result == NULL) {
            if (!PyErr_Occurred()) PyErr_NoMemory();
            going = -1;
        } else {
            char *sure = PyByteArray_AsString(result);
            PyThreadState *paused = pause_for(total);
            going = pair_up(places, count, keys, all, numbers, numbers + keys + 1, sure, comes);
            go_on(paused);
        }
    }
    if (going < 1) Py_CLEAR(result);
    if (going == 0) result = Py_NewRef(Py_None);
    for (Py_ssize_t p = 0; p < opened; p++) close_place(&places[p]);
    PyMem_Free(places);
    free(all);
    free(numbers);
    free(comes);
    return result;
}
