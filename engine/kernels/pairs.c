/* The check of a key: the batch's index by the key, and whether its keys stay unique. It pairs insertions with deletions
   of the same row (engine.intake.key_pairs says why). */

#include "indexes.h"
#include "side.h"

/* Some rows, and the numbers of their keys: place 0 is the batch, the others are what runs of the table hold. */
typedef struct {
    const Columns *columns;
    const uint32_t *rows;
    const int64_t *keys;
    int64_t count;
    const Array *time, *diff;
    const Side *side; /* NULL: the batch */
} Place;

typedef struct {
    int64_t time, diff, row;
    int32_t place;
} Placed;

static inline int64_t diff_of(const Place *place, int64_t row) {
    return place->side == NULL ? int_at(place->diff, row) : weight_of(place->side, row);
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
        const Columns *came = places[rows[i].place].columns, *gone = places[rows[i + 1].place].columns;
        if (rows[i].diff != 1 || rows[i + 1].diff != -1) return 0;
        for (Py_ssize_t c = 0; c < came->count; c++)
            if (!equal_values(&came->at[c], rows[i].row, &gone->at[c], rows[i + 1].row)) return 0;
    }
    return 1;
}

/* `ends` has room for a number of each key and one more. 0: there is no fast way. */
static int pair_up(const Place *places, Py_ssize_t count, int64_t keys, Placed *all, int64_t *ends, int64_t *begins,
                   char *sure, char *comes) {
    const Place *batch = &places[0];
    memset(sure, 1, keys);
    memset(comes, 0, keys); /* 0: the batch has no row of the key; 1: it deletes; 2: it inserts one */
    memset(ends, 0, (keys + 1) * sizeof *ends);
    for (int64_t i = 0; i < batch->count; i++) {
        int64_t key = batch->keys[i], row = batch->rows[i];
        int64_t time = int_at(batch->time, row), diff = int_at(batch->diff, row);
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
        for (int64_t i = 0; i < places[p].count; i++) ends[places[p].keys[i] + 1]++;
    for (int64_t key = 0; key < keys; key++) ends[key + 1] += ends[key];
    for (Py_ssize_t p = 0; p < count; p++)
        for (int64_t i = 0; i < places[p].count; i++) {
            int64_t key = places[p].keys[i], row = places[p].rows[i];
            int64_t time = int_at(places[p].time, row), diff = diff_of(&places[p], row);
            if (p == 0 && diff != -1) continue;
            if (p > 0 && time > begins[key]) sure[key] = 0;
            all[ends[key]++] = (Placed){p == 0 ? time + 1 : time, diff, row, (int32_t)p}; /* the batch's come last */
        }
    for (int64_t key = 0; key < keys; key++) {
        int64_t start = key == 0 ? 0 : ends[key - 1]; /* by now each end is where the next key starts */
        if (sure[key]) sure[key] = (char)cancel(places, all + start, ends[key] - start);
    }
    return 1;
}

typedef struct {
    Columns keys, columns; /* of the batch */
    Array time, diff;
    const Side **sides;
    Py_ssize_t count;
    Entry *entries; /* the batch's rows by their keys */
    int64_t *codes, *numbers, distinct; /* the distinct codes; the number of each entry's key among them */
    uint32_t *rows;                     /* of the entries */
    Found found;
    int64_t *counts;
} Check;

static int open_check(PyObject *const part[5], Check *out) {
    int going;
    if ((going = open_columns(part[0], &out->keys)) < 1 || (going = open_columns(part[1], &out->columns)) < 1 ||
        (going = open_ints(part[2], &out->time)) < 1 || (going = open_ints(part[3], &out->diff)) < 1)
        return going;
    if ((out->sides = sides_of(part[4], &out->count)) == NULL) return -1;
    if (out->time.length != out->diff.length || out->time.length >= INT32_MAX || out->keys.count < 1) return 0;
    for (Py_ssize_t c = 0; c < out->keys.count; c++)
        if (out->keys.at[c].length != out->time.length) return 0;
    for (Py_ssize_t c = 0; c < out->columns.count; c++)
        if (out->columns.at[c].length != out->time.length) return 0;
    for (Py_ssize_t s = 0; s < out->count; s++) {
        if (out->sides[s]->fetched.count != out->columns.count) return 0;
        for (Py_ssize_t c = 0; c < out->columns.count; c++)
            if (!comparable(&out->columns.at[c], &out->sides[s]->fetched.at[c])) return 0;
    }
    return 1;
}

/* Sorts the batch by its keys, and finds what the table holds of them. 1; 0: more than `most`; -1 with an exception. */
static int look_up(Check *check, int64_t most) {
    const int64_t length = check->time.length;
    Array probes = {.step = 1};
    int going = 1, inside = 1;
    check->entries = entries_of(&check->keys, length);
    check->codes = malloc((length + 1) * sizeof *check->codes);
    check->numbers = malloc((length + 1) * sizeof *check->numbers);
    check->rows = malloc((length + 1) * sizeof *check->rows);
    check->counts = calloc(check->count + 1, sizeof *check->counts);
    if (check->entries == NULL) return -1;
    if (check->codes == NULL || check->numbers == NULL || check->rows == NULL || check->counts == NULL) goto failed;
    for (int64_t i = 0; i < length; i++) {
        if (i == 0 || check->entries[i].code != check->entries[i - 1].code)
            check->codes[check->distinct++] = check->entries[i].code;
        check->numbers[i] = check->distinct - 1, check->rows[i] = check->entries[i].row;
    }
    probes.at = check->codes, probes.length = check->distinct;
    PyThreadState *paused = pause_for(length * check->count);
    for (Py_ssize_t s = 0; going == 1 && s < check->count; s++) {
        int64_t before = check->found.count;
        if (check->sides[s]->index.codes.length) going = find_in(&check->sides[s]->index, &probes, most, &check->found);
        check->counts[s] = check->found.count - before;
        for (int64_t i = before; i < check->found.count; i++)
            inside &= check->found.rows[i] < check->sides[s]->time.length;
    }
    go_on(paused);
    if (!inside) return PyErr_SetString(PyExc_IndexError, "a row number beyond its run"), -1;
    if (going != -1) return going;
failed:
    PyErr_NoMemory();
    return -1;
}

/* Whether the batch only adds keys that nobody has. */
static int only_new(const Check *check) {
    if (check->found.count || check->distinct < check->time.length) return 0;
    for (int64_t i = 0; i < check->time.length; i++)
        if (int_at(&check->diff, i) != 1) return 0;
    return 1;
}

/* Marks the keys that plainly stay unique. 1; 0: there is no fast way; -1 with an exception. */
static int mark(const Check *check, char *sure) {
    const int64_t length = check->time.length, keys = check->distinct;
    Place *places = malloc((check->count + 1) * sizeof *places);
    Placed *all = malloc((length + check->found.count + 1) * sizeof *all);
    int64_t *numbers = malloc((2 * keys + 2) * sizeof *numbers), from = 0;
    char *comes = malloc(keys + 1);
    int going = -1;
    if (places != NULL && all != NULL && numbers != NULL && comes != NULL) {
        places[0] = (Place){&check->columns, check->rows, check->numbers, length, &check->time, &check->diff, NULL};
        for (Py_ssize_t s = 0; s < check->count; from += check->counts[s++]) {
            const Side *side = check->sides[s];
            places[s + 1] = (Place){&side->fetched, check->found.rows + from, check->found.positions + from,
                                    check->counts[s], &side->time, NULL, side};
        }
        PyThreadState *paused = pause_for(length + check->found.count);
        going = pair_up(places, check->count + 1, keys, all, numbers, numbers + keys + 1, sure, comes);
        go_on(paused);
    } else {
        PyErr_NoMemory();
    }
    free(places);
    free(all);
    free(numbers);
    free(comes);
    return going;
}

PyObject *py_unique(PyObject *self, PyObject *args) {
    PyObject *part[5], *index = NULL, *sure = NULL, *result = NULL;
    Check check = {0};
    Py_ssize_t most;
    int going;
    if (!PyArg_ParseTuple(args, "OOOOOn", &part[0], &part[1], &part[2], &part[3], &part[4], &most)) return NULL;
    going = open_check(part, &check);
    if (going == 1) going = look_up(&check, most);
    if (going == 1 && !only_new(&check)) {
        if ((sure = PyByteArray_FromStringAndSize(NULL, check.distinct)) == NULL) going = -1;
        else going = mark(&check, PyByteArray_AsString(sure));
        if (going == 1 && memchr(PyByteArray_AsString(sure), 0, check.distinct) == NULL) Py_CLEAR(sure);
    }
    if (going == 1 && (index = columns_of(check.entries, check.time.length)) != NULL)
        result = PyTuple_Pack(2, index, sure == NULL ? Py_None : sure);
    if (going == 0) result = Py_NewRef(Py_None);
    close_columns(&check.keys);
    close_columns(&check.columns);
    close_array(&check.time);
    close_array(&check.diff);
    PyMem_Free(check.sides);
    free(check.entries);
    free(check.codes);
    free(check.numbers);
    free(check.rows);
    free(check.counts);
    free(check.found.positions);
    free(check.found.rows);
    Py_XDECREF(index);
    Py_XDECREF(sure);
    return result;
}
