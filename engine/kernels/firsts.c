/* What the output of groups that keep their first row must change in a round, and in which later rounds it may differ.
   engine.loop.first says what that means. */

#include "columns.h"

#define SMALL 16 /* entries; so few are sorted by insertion */
#define NOWHERE (-1) /* the place of the first row of a group without rows */

/* An update of a group's rows, or of its output (`made`). */
typedef struct {
    int64_t round, place, diff;
    int made;
} Entry;

typedef struct {
    Array group, round, place, diff;
} History;

/* What each place counts, of the rows of one group; and a heap of places, the least first, with all that count more than
   zero among them. `below`: how many places count less than zero. */
typedef struct {
    int64_t *counts, *heap, size, below;
} Rows;

/* What each place counts of the first row less the output; `left`: how many places do not count zero. */
typedef struct {
    int64_t *counts, left;
} Differing;

/* Entries of groups, one group after the other; what is found: groups, places and diffs in the round, and groups and
   rounds to look at again. */
typedef struct {
    int64_t groups, round, *starts;
    Entry *entries;
    Rows rows;
    Differing differing;
    int64_t *now, *place, *diff, changes, *again, *later, due;
} Firsts;

static int open_history(PyObject *parts, History *out) {
    Array *all[] = {&out->group, &out->round, &out->place, &out->diff};
    for (int i = 0; i < 4; i++) {
        int going = open_ints(PyTuple_GetItem(parts, i), all[i]);
        if (going != 1 || all[i]->length != out->group.length) return going == 1 ? 0 : going;
    }
    return 1;
}

static void close_history(History *history) {
    close_array(&history->group);
    close_array(&history->round);
    close_array(&history->place);
    close_array(&history->diff);
}

/* 0: a group or a place is not one. */
static int count_entries(const History *history, int64_t width, Firsts *out) {
    for (int64_t i = 0; i < history->group.length; i++) {
        int64_t group = int_at(&history->group, i), place = int_at(&history->place, i);
        if (group < 0 || group >= out->groups || place < 0 || place >= width) return 0;
        out->starts[group + 1]++;
    }
    return 1;
}

static void place_entries(const History *history, int made, int64_t *next, Firsts *out) {
    for (int64_t i = 0; i < history->group.length; i++) {
        Entry *entry = &out->entries[next[int_at(&history->group, i)]++];
        int64_t round = int_at(&history->round, i);
        entry->round = round < out->round ? out->round : round;
        entry->place = int_at(&history->place, i);
        entry->diff = int_at(&history->diff, i);
        entry->made = made;
    }
}

static int by_round(const void *left, const void *right) {
    int64_t one = ((const Entry *)left)->round, other = ((const Entry *)right)->round;
    return (one > other) - (one < other);
}

static void sort_entries(Entry *entries, int64_t count) {
    if (count > SMALL) {
        qsort(entries, count, sizeof *entries, by_round);
        return;
    }
    for (int64_t i = 1; i < count; i++) {
        Entry moved = entries[i];
        int64_t at = i;
        for (; at > 0 && entries[at - 1].round > moved.round; at--) entries[at] = entries[at - 1];
        entries[at] = moved;
    }
}

static void push(Rows *rows, int64_t place) {
    int64_t at = rows->size++;
    for (; at > 0 && rows->heap[(at - 1) / 2] > place; at = (at - 1) / 2) rows->heap[at] = rows->heap[(at - 1) / 2];
    rows->heap[at] = place;
}

static void pop(Rows *rows) {
    int64_t moved = rows->heap[--rows->size], at = 0, child;
    while ((child = 2 * at + 1) < rows->size) {
        if (child + 1 < rows->size && rows->heap[child + 1] < rows->heap[child]) child++;
        if (rows->heap[child] >= moved) break;
        rows->heap[at] = rows->heap[child], at = child;
    }
    rows->heap[at] = moved;
}

/* 0: the sum does not fit. */
static int add_row(Rows *rows, int64_t place, int64_t diff) {
    int64_t before = rows->counts[place], after;
    if (__builtin_add_overflow(before, diff, &after)) return 0;
    rows->counts[place] = after;
    rows->below += (after < 0) - (before < 0);
    if (before <= 0 && after > 0) push(rows, place);
    return 1;
}

static int64_t first_of(Rows *rows) {
    while (rows->size > 0 && rows->counts[rows->heap[0]] <= 0) pop(rows);
    return rows->size > 0 ? rows->heap[0] : NOWHERE;
}

static int differ(Differing *differing, int64_t place, int64_t diff) {
    int64_t before = differing->counts[place], after;
    if (__builtin_add_overflow(before, diff, &after)) return 0;
    differing->counts[place] = after;
    differing->left += (after != 0) - (before != 0);
    return 1;
}

/* An output row that counts more goes, so the difference counts less. */
static int add_entry(Firsts *firsts, const Entry *entry) {
    if (!entry->made) return add_row(&firsts->rows, entry->place, entry->diff);
    return entry->diff != INT64_MIN && differ(&firsts->differing, entry->place, -entry->diff);
}

/* Another row is the first one. */
static int move_first(Differing *differing, int64_t from, int64_t to) {
    if (from == to) return 1;
    return (from == NOWHERE || differ(differing, from, -1)) && (to == NOWHERE || differ(differing, to, 1));
}

static int by_place(const void *left, const void *right) {
    int64_t one = *(const int64_t *)left, other = *(const int64_t *)right;
    return (one > other) - (one < other);
}

/* Takes what differs in the round, in order of places, and leaves nothing of it. */
static void take_changes(Firsts *firsts, int64_t group, const Entry *entries, int64_t count, int64_t first) {
    int64_t *places = firsts->place + firsts->changes, many = 0, kept = 0;
    if (firsts->differing.left == 0) return;
    for (int64_t i = 0; i < count; i++)
        if (entries[i].made) places[many++] = entries[i].place;
    if (first != NOWHERE) places[many++] = first;
    qsort(places, many, sizeof *places, by_place);
    for (int64_t i = 0; i < many; i++) {
        int64_t place = places[i], *left = &firsts->differing.counts[place];
        if (*left == 0) continue;
        firsts->now[firsts->changes + kept] = group;
        firsts->diff[firsts->changes + kept] = *left;
        places[kept++] = place;
        *left = 0;
    }
    firsts->changes += kept;
    firsts->differing.left = 0;
}

/* 0: a row counts less than zero times in the round, or a sum does not fit. */
static int look_at(Firsts *firsts, int64_t group) {
    Entry *entries = firsts->entries + firsts->starts[group];
    int64_t count = firsts->starts[group + 1] - firsts->starts[group], at = 0, first;
    sort_entries(entries, count);
    firsts->rows.size = firsts->rows.below = firsts->differing.left = 0;
    for (; at < count && entries[at].round == firsts->round; at++)
        if (!add_entry(firsts, &entries[at])) return 0;
    first = first_of(&firsts->rows);
    if (firsts->rows.below || !move_first(&firsts->differing, NOWHERE, first)) return 0;
    take_changes(firsts, group, entries, at, first);
    while (at < count) {
        int64_t round = entries[at].round, before = first;
        for (; at < count && entries[at].round == round; at++)
            if (!add_entry(firsts, &entries[at])) return 0;
        first = first_of(&firsts->rows);
        if (!move_first(&firsts->differing, before, first)) return 0;
        if (firsts->differing.left == 0 && firsts->rows.below == 0) continue;
        firsts->again[firsts->due] = group;
        firsts->later[firsts->due++] = round;
    }
    for (int64_t i = 0; i < count; i++) {
        firsts->rows.counts[entries[i].place] = 0;
        firsts->differing.counts[entries[i].place] = 0;
    }
    return 1;
}

static int look_at_all(const History *rows, const History *made, int64_t width, int64_t *next, Firsts *out) {
    if (!count_entries(rows, width, out) || !count_entries(made, width, out)) return 0;
    for (int64_t group = 0; group < out->groups; group++) {
        out->starts[group + 1] += out->starts[group];
        next[group] = out->starts[group];
    }
    place_entries(rows, 0, next, out);
    place_entries(made, 1, next, out);
    for (int64_t group = 0; group < out->groups; group++)
        if (!look_at(out, group)) return 0;
    return 1;
}

static PyObject *bytes_of(const int64_t *numbers, int64_t count) {
    return PyByteArray_FromStringAndSize((const char *)numbers, count * 8);
}

/* What is found, or None. */
PyObject *py_firsts(PyObject *self, PyObject *args) {
    Py_ssize_t groups, width;
    long long round;
    PyObject *first, *second, *result = NULL;
    History rows = {{{0}}}, made = {{{0}}};
    Firsts firsts = {0};
    int64_t *memory = NULL;
    int going;
    if (!PyArg_ParseTuple(args, "nLnO!O!", &groups, &round, &width, &PyTuple_Type, &first, &PyTuple_Type, &second)) return NULL;
    if (PyTuple_Size(first) != 4 || PyTuple_Size(second) != 4) return PyErr_SetString(PyExc_ValueError, "no history"), NULL;
    going = groups < 0 || width < 0 ? 0 : open_history(first, &rows);
    if (going == 1) going = open_history(second, &made);
    if (going == 1) {
        int64_t count = rows.group.length + made.group.length, most = groups + count;
        memory = calloc(2 * (groups + 1) + 2 * width + 6 * most, sizeof *memory);
        firsts.entries = malloc((count ? count : 1) * sizeof *firsts.entries);
        if (memory == NULL || firsts.entries == NULL) PyErr_NoMemory(), going = -1;
        else {
            int64_t *next = memory + groups + 1;
            PyThreadState *paused = pause_for(most);
            firsts.groups = groups, firsts.round = round, firsts.starts = memory;
            firsts.rows.counts = next + groups + 1, firsts.differing.counts = firsts.rows.counts + width;
            firsts.rows.heap = firsts.differing.counts + width;
            firsts.now = firsts.rows.heap + most, firsts.place = firsts.now + most, firsts.diff = firsts.place + most;
            firsts.again = firsts.diff + most, firsts.later = firsts.again + most;
            going = look_at_all(&rows, &made, width, next, &firsts);
            go_on(paused);
        }
    }
    if (going == 1)
        result = Py_BuildValue("NNNNN", bytes_of(firsts.now, firsts.changes), bytes_of(firsts.place, firsts.changes),
                               bytes_of(firsts.diff, firsts.changes), bytes_of(firsts.again, firsts.due),
                               bytes_of(firsts.later, firsts.due));
    free(firsts.entries);
    free(memory);
    close_history(&rows);
    close_history(&made);
    return going == 0 ? Py_NewRef(Py_None) : result;
}
