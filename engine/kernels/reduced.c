/* What updates of one time make of groups whose sums are kept, by one call: the groups that they touch, the rows that are
   kept for these, the new sums, and the rows that go and come. engine.reduce.law and engine.reduce.aggregates say what they
   mean. */

#include "indexes.h"
#include "lookup.h"
#include "sums.h"
#include "table.h"

#define MOST_ARGUMENTS 4
#define MOST_ROWS (1 << 25) /* a column of sums of all groups, before and after, is one array */

/* A count of rows, or a sum of integers or numerics. A row in which an argument is NULL adds nothing. */
typedef struct {
    const Column *summed; /* NULL: rows are counted */
    const Column *args[MOST_ARGUMENTS];
    int count;
    Wide *was, *is; /* of each group */
} Part;

typedef struct {
    Columns columns; /* the keys, then the arguments */
    Py_ssize_t keys;
    Array diff, time;
    Part *parts; /* the first counts all rows */
    Py_ssize_t count;
    Table table;
    int64_t *group;          /* of each row */
    PyObject *made;          /* the buffers of the groups' keys */
    Lookup kept;             /* of the groups, in the rows that are kept */
    const Side **side_of;    /* of each group, the side of its row; NULL: none is kept */
    int64_t *row_of;
    int64_t found; /* rows that are kept for the groups, also those that cancel */
} Reduced;

static int open_parts(PyObject *parts, Reduced *out) {
    if ((out->count = PyTuple_Size(parts)) < 0) return -1;
    if ((out->parts = PyMem_Calloc(out->count ? out->count : 1, sizeof *out->parts)) == NULL) return PyErr_NoMemory(), -1;
    for (Py_ssize_t p = 0; p < out->count; p++) {
        Part *part = &out->parts[p];
        Py_ssize_t summed;
        PyObject *args;
        if (!PyArg_ParseTuple(PyTuple_GetItem(parts, p), "nO!", &summed, &PyTuple_Type, &args)) return -1;
        if (PyTuple_Size(args) > MOST_ARGUMENTS) return 0;
        for (; part->count < PyTuple_Size(args); part->count++) {
            Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(args, part->count));
            if (at < 0 || at >= out->columns.count) return PyErr_Occurred() ? -1 : 0;
            part->args[part->count] = &out->columns.at[at];
        }
        if (summed < 0) continue;
        if (summed >= out->columns.count || !summable(&out->columns.at[summed])) return 0;
        part->summed = &out->columns.at[summed];
    }
    return out->count > 0;
}

static int open_reduced(PyObject *columns, PyObject *parts, PyObject *times, PyObject *diffs, Reduced *out) {
    int going = open_columns(columns, &out->columns);
    if (going == 1) going = open_ints(times, &out->time);
    if (going == 1) going = open_ints(diffs, &out->diff);
    if (going == 1) going = open_parts(parts, out);
    if (going < 1) return going;
    if (out->keys < 1 || out->keys > 64 || out->keys > out->columns.count || out->time.length < 1) return 0;
    if (out->diff.length != out->time.length || out->time.length > MOST_ROWS) return 0;
    for (Py_ssize_t c = 0; c < out->columns.count; c++)
        if (out->columns.at[c].length != out->time.length || out->columns.at[c].kind == LARGE_TEXT) return 0;
    for (int64_t i = 1; out->time.step && i < out->time.length; i++)
        if (int_at(&out->time, i) != int_at(&out->time, 0)) return 0;
    return 1;
}

/* The group of each row, and the keys of the groups. 1, or -1 with an exception; 0: texts are too long. */
static int group_rows(Reduced *reduced) {
    const int64_t length = reduced->time.length;
    Columns keys = {reduced->columns.at, reduced->keys};
    Array none = {0};
    Rows firsts = {0};
    if (!open_table(&reduced->table, length) || (reduced->group = malloc(length * sizeof *reduced->group)) == NULL)
        return PyErr_NoMemory(), -1;
    PyThreadState *paused = pause_for(length);
    hash_rows(&reduced->table, &keys, &none, length);
    for (int64_t i = 0; i < length; i++) reduced->group[i] = group_of(&reduced->table, &keys, &none, i);
    go_on(paused);
    firsts.wide.at = reduced->table.firsts, firsts.wide.step = 1;
    firsts.wide.length = firsts.length = reduced->table.count;
    return gather_views(&keys, &firsts, &reduced->kept.keys, &reduced->made);
}

/* Finds the row that is kept for each group. 1; 0: there is no fast way; -1 with an exception. */
static int find_kept(Reduced *reduced, PyObject *sides, Py_ssize_t most) {
    Lookup *kept = &reduced->kept;
    const int64_t groups = reduced->table.count;
    int64_t i = 0;
    int going;
    kept->null_safe = ~0ULL, kept->time.length = groups;
    reduced->side_of = calloc(groups, sizeof *reduced->side_of), reduced->row_of = malloc(groups * sizeof(int64_t));
    if (reduced->side_of == NULL || reduced->row_of == NULL) return PyErr_NoMemory(), -1;
    if ((kept->sides = sides_of(sides, &kept->count)) == NULL) return -1;
    if ((kept->counts = PyMem_Calloc(kept->count + 1, sizeof *kept->counts)) == NULL) return PyErr_NoMemory(), -1;
    for (Py_ssize_t s = 0; s < kept->count; s++) {
        const Columns *fetched = &kept->sides[s]->fetched;
        if (fetched->count != reduced->keys + reduced->count) return 0;
        for (Py_ssize_t p = 0; p < reduced->count; p++) {
            const Column *column = &fetched->at[reduced->keys + p];
            if (reduced->parts[p].summed == NULL ? strcmp(column->format, "l") != 0 : column->kind != TEXT) return 0;
        }
    }
    if ((going = find_pairs(kept, most)) < 1) return going;
    reduced->found = kept->found.count;
    if ((going = cancel_pairs(kept)) == -1) PyErr_NoMemory();
    if (going < 1) return going;
    for (Py_ssize_t s = 0; s < kept->count; s++)
        for (int64_t end = i + kept->counts[s]; i < end; i++) {
            int64_t group = kept->found.positions[i];
            if (reduced->side_of[group] != NULL || weight_of_pair(kept, kept->sides[s], i) != 1) return 0;
            reduced->side_of[group] = kept->sides[s], reduced->row_of[group] = kept->found.rows[i];
        }
    return 1;
}

/* What was kept of a sum for each group. 0: it does not fit. */
static int read_kept(const Reduced *reduced, Py_ssize_t p) {
    const Part *part = &reduced->parts[p];
    for (int64_t g = 0; g < reduced->table.count; g++) {
        const uint8_t *text;
        const Side *side = reduced->side_of[g];
        part->was[g] = 0;
        if (side != NULL) {
            const Column *column = &side->fetched.at[reduced->keys + p];
            int64_t row = reduced->row_of[g], size;
            if (!is_valid(column, row)) return 0;
            if (part->summed == NULL) part->was[g] = integer_at(column, row);
            else if (size = text_at(column, row, &text), !read_sum(text, size, &part->was[g])) return 0;
        }
        part->is[g] = part->was[g];
    }
    return 1;
}

/* Adds what the rows add to a sum. 0: it does not fit. */
static int add_rows(const Reduced *reduced, const Part *part) {
    for (int64_t i = 0; i < reduced->time.length; i++) {
        Wide added = int_at(&reduced->diff, i);
        int there = 1;
        for (int a = 0; there && a < part->count; a++) there = is_valid(part->args[a], i);
        if (!there) continue;
        if (part->summed != NULL && __builtin_mul_overflow(added, wide_at(part->summed, i), &added)) return 0;
        if (__builtin_add_overflow(part->is[reduced->group[i]], added, &part->is[reduced->group[i]])) return 0;
    }
    return 1;
}

/* The sums of all groups. 1; 0: one does not fit, or a group's rows do not cancel; -1: no memory, without an exception. */
static int add_up(const Reduced *reduced) {
    const int64_t groups = reduced->table.count;
    for (Py_ssize_t p = 0; p < reduced->count; p++) {
        Part *part = &reduced->parts[p];
        part->was = malloc(groups * sizeof(Wide)), part->is = malloc(groups * sizeof(Wide));
        if (part->was == NULL || part->is == NULL) return -1;
        if (!read_kept(reduced, p) || !add_rows(reduced, part)) return 0;
        for (int64_t g = 0; g < groups; g++) {
            if (p == 0 && reduced->side_of[g] != NULL && part->was[g] == 0) return 0;
            if (part->summed == NULL && part->is[g] != (int64_t)part->is[g]) return 0;
            if (p && reduced->parts[0].is[g] == 0 && part->is[g] != 0) return 0;
        }
    }
    return 1;
}

static int has_changed(const Reduced *reduced, int64_t group) {
    for (Py_ssize_t p = 0; p < reduced->count; p++)
        if (reduced->parts[p].was[group] != reduced->parts[p].is[group]) return 1;
    return 0;
}

/* A column of sums of the rows that go and come: (None, values), or (None, offsets, values). NULL with an exception. */
static PyObject *column_of(const Part *part, const int64_t *groups, const int64_t *diffs, int64_t count) {
    PyObject *values, *offsets, *result = NULL;
    if (part->summed == NULL) {
        if ((values = PyBytes_FromStringAndSize(NULL, count * 8)) == NULL) return NULL;
        int64_t *into = (int64_t *)PyBytes_AsString(values);
        for (int64_t i = 0; i < count; i++) into[i] = (int64_t)(diffs[i] < 0 ? part->was : part->is)[groups[i]];
        result = PyTuple_Pack(2, Py_None, values);
        Py_DECREF(values);
        return result;
    }
    uint8_t *body = malloc(count * MOST_SUM_BYTES + 1);
    if (body == NULL) return PyErr_NoMemory();
    if ((offsets = PyBytes_FromStringAndSize(NULL, (count + 1) * 4)) != NULL) {
        int32_t *ends = (int32_t *)PyBytes_AsString(offsets);
        ends[0] = 0;
        for (int64_t i = 0; i < count; i++)
            ends[i + 1] = ends[i] + write_sum((diffs[i] < 0 ? part->was : part->is)[groups[i]], body + ends[i]);
        if ((values = PyBytes_FromStringAndSize((char *)body, ends[count])) != NULL) {
            result = PyTuple_Pack(3, Py_None, offsets, values);
            Py_DECREF(values);
        }
        Py_DECREF(offsets);
    }
    free(body);
    return result;
}

/* The index of rows by their keys, which are the first of these buffers. NULL with an exception. */
static PyObject *index_of(const Reduced *reduced, PyObject *columns, int64_t length) {
    Columns keys = {PyMem_Calloc(reduced->keys, sizeof *keys.at), reduced->keys};
    PyObject *result = NULL;
    if (keys.at == NULL) return PyErr_NoMemory();
    for (Py_ssize_t c = 0; c < keys.count; c++)
        keys.at[c] = view_of(PyList_GetItem(columns, c), &reduced->kept.keys.at[c], length);
    Entry *entries = entries_of(&keys, length);
    if (entries != NULL) result = columns_of(entries, length);
    free(entries);
    close_columns(&keys);
    return result;
}

/* These rows, opened for the lookups of the next updates. NULL with an exception. */
static PyObject *opened(const Reduced *reduced, PyObject *index, PyObject *columns, PyObject *diffs) {
    static const Column count = {.kind = INTEGER, .width = 8, .format = "l"}, sum = {.kind = TEXT, .format = "z"};
    const Py_ssize_t keys = reduced->keys;
    Column *like = PyMem_Calloc(keys + reduced->count, sizeof *like);
    int64_t time = int_at(&reduced->time, 0);
    PyObject *times = PyByteArray_FromStringAndSize((char *)&time, sizeof time), *side = NULL;
    if (like == NULL) PyErr_NoMemory();
    for (Py_ssize_t c = 0; like != NULL && c < keys + reduced->count; c++)
        like[c] = c < keys ? reduced->columns.at[c] : reduced->parts[c - keys].summed == NULL ? count : sum;
    if (like != NULL && times != NULL) side = made_side(index, columns, like, keys, times, diffs);
    PyMem_Free(like);
    Py_XDECREF(times);
    return side;
}

/* The rows that go and come: (buffers of the columns, diffs, their index, how many kept rows were found, and the rows
   opened by their index). */
static PyObject *changes_of(const Reduced *reduced) {
    const int64_t groups = reduced->table.count;
    int64_t *which = malloc((2 * groups + 1) * sizeof *which), *diffs = malloc((2 * groups + 1) * sizeof *diffs), count = 0;
    PyObject *columns = NULL, *weights = NULL, *index = NULL, *side = NULL, *made = NULL, *result = NULL;
    Rows rows = {0};
    if (which == NULL || diffs == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (int64_t g = 0; g < groups; g++) {
        if (!has_changed(reduced, g)) continue;
        if (reduced->side_of[g] != NULL) which[count] = g, diffs[count++] = -1;
        if (reduced->parts[0].is[g] != 0) which[count] = g, diffs[count++] = 1;
    }
    rows.wide.at = which, rows.wide.step = 1, rows.wide.length = rows.length = count;
    if ((columns = PyList_New(reduced->keys + reduced->count)) == NULL) goto done;
    for (Py_ssize_t c = 0; c < reduced->keys + reduced->count; c++) {
        const Column *key = c < reduced->keys ? &reduced->kept.keys.at[c] : NULL;
        made = key != NULL ? gather_column(&key, &count, 1, &rows)
                           : column_of(&reduced->parts[c - reduced->keys], which, diffs, count);
        if (made == NULL) goto done;
        if (made == Py_None) { /* texts of the keys, before and after, are too long for one array */
            result = made;
            goto done;
        }
        PyList_SetItem(columns, c, made);
    }
    weights = PyByteArray_FromStringAndSize((char *)diffs, count * 8);
    if (weights != NULL && (index = index_of(reduced, columns, count)) != NULL &&
        (side = opened(reduced, index, columns, weights)) != NULL)
        result = Py_BuildValue("(OOOLO)", columns, weights, index, (long long)reduced->found, side);
done:
    Py_XDECREF(columns);
    Py_XDECREF(weights);
    Py_XDECREF(index);
    Py_XDECREF(side);
    free(which);
    free(diffs);
    return result;
}

PyObject *py_reduced(PyObject *self, PyObject *args) {
    PyObject *columns, *parts, *times, *diffs, *sides, *result = NULL;
    Reduced reduced = {0};
    Py_ssize_t most;
    int going;
    if (!PyArg_ParseTuple(args, "OnOOOOn", &columns, &reduced.keys, &parts, &times, &diffs, &sides, &most)) return NULL;
    going = open_reduced(columns, parts, times, diffs, &reduced);
    if (going == 1) going = group_rows(&reduced);
    if (going == 1) going = find_kept(&reduced, sides, most);
    if (going == 1) {
        PyThreadState *paused = pause_for(reduced.time.length);
        going = add_up(&reduced);
        go_on(paused);
        if (going == -1) PyErr_NoMemory();
    }
    if (going == 1) result = changes_of(&reduced);
    if (going == 0) result = Py_NewRef(Py_None);
    for (Py_ssize_t p = 0; reduced.parts != NULL && p < reduced.count; p++) free(reduced.parts[p].was), free(reduced.parts[p].is);
    PyMem_Free(reduced.parts);
    close_lookup(&reduced.kept);
    close_table(&reduced.table);
    close_columns(&reduced.columns);
    close_array(&reduced.diff);
    close_array(&reduced.time);
    Py_XDECREF(reduced.made);
    free(reduced.group);
    free(reduced.side_of);
    free(reduced.row_of);
    return result;
}
