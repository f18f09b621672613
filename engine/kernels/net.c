/* Nets a run: adds up its equal closed updates. engine.arrange.netting says what this means.

   Equal rows have equal codes, so one walk through an index finds them. Only the rows of a code are compared, and only
   where one of them is a deletion. */

#include "columns.h"

#define FEW 8 /* rows of a code; more are compared by their hashes first */

typedef struct {
    Columns columns;
    Array time, diff, codes, rows, there, netted, nets;
    int64_t size, removed; /* closed rows that remained; those of them that do no more */
    int64_t *sums;         /* how often each row counts */
    char *left, *open;     /* whether a row remains; whether it is closed and not yet added up */
    int64_t *group;        /* rows of one code */
    uint64_t *hashes;
    int32_t *slots;
} Net;

static int open_net(Net *net, PyObject *const given[8]) {
    int going = open_columns(given[0], &net->columns);
    if (going == 1) going = open_ints(given[1], &net->time);
    if (going == 1) going = open_ints(given[2], &net->diff);
    if (going == 1) going = open_ints(given[3], &net->codes);
    if (going == 1) going = open_numbers(given[4], &net->rows);
    if (going == 1 && given[5] != Py_None) going = open_flags(given[5], &net->there);
    if (going == 1) going = open_ints(given[6], &net->netted);
    if (going == 1) going = open_ints(given[7], &net->nets);
    if (going == 1) {
        int64_t length = net->time.length;
        going = length < INT32_MAX / 4 && net->diff.length == length && net->codes.length == net->rows.length &&
                (!net->there.open || net->there.length == length) && net->netted.length == net->nets.length;
        for (Py_ssize_t c = 0; going && c < net->columns.count; c++) going = net->columns.at[c].length == length;
    }
    return going;
}

static void close_net(Net *net) {
    close_columns(&net->columns);
    close_array(&net->time);
    close_array(&net->diff);
    close_array(&net->codes);
    close_array(&net->rows);
    close_array(&net->there);
    close_array(&net->netted);
    close_array(&net->nets);
    free(net->sums);
    free(net->left);
    free(net->open);
    free(net->group);
    free(net->hashes);
    free(net->slots);
}

static int take_memory(Net *net) {
    int64_t length = net->time.length + 1, size = 16;
    while (size < 2 * length) size *= 2;
    net->sums = malloc(length * sizeof *net->sums);
    net->left = malloc(length), net->open = malloc(length);
    net->group = malloc(length * sizeof *net->group), net->hashes = malloc(length * sizeof *net->hashes);
    net->slots = malloc(size * sizeof *net->slots);
    return net->sums != NULL && net->left != NULL && net->open != NULL && net->group != NULL && net->hashes != NULL &&
           net->slots != NULL;
}

/* What is known of each row. 1 if a closed row is a deletion; 0 if none is; -1: a netted row is beyond the run. */
static int look(Net *net, int64_t closed) {
    const char *there = net->there.open ? net->there.at : NULL;
    int goes = 0;
    for (int64_t row = 0; row < net->time.length; row++) net->sums[row] = int_at(&net->diff, row);
    for (int64_t i = 0; i < net->netted.length; i++) {
        int64_t row = int_at(&net->netted, i);
        if ((uint64_t)row >= (uint64_t)net->time.length) return -1;
        net->sums[row] = int_at(&net->nets, i);
    }
    for (int64_t row = 0; row < net->time.length; row++) {
        net->left[row] = there == NULL || there[row];
        net->open[row] = net->left[row] && int_at(&net->time, row) < closed;
        net->size += net->open[row];
        goes |= net->open[row] && net->sums[row] < 0;
    }
    return goes;
}

static int are_equal(const Net *net, int64_t one, int64_t other) {
    for (Py_ssize_t c = 0; c < net->columns.count; c++)
        if (!equal_values(&net->columns.at[c], one, &net->columns.at[c], other)) return 0;
    return 1;
}

/* The first of the distinct rows that equals a row: its position among them, or `found` if none does. */
static int64_t position_of(Net *net, int64_t row, int64_t found, int64_t mask) {
    int64_t slot, at;
    uint64_t hash;
    if (mask < 0) {
        for (at = 0; at < found && !are_equal(net, net->group[at], row);) at++;
        return at;
    }
    hash = hash_of_row(&net->columns, row), slot = (int64_t)(hash >> 32 ^ hash) & mask;
    for (; (at = net->slots[slot] - 1) >= 0; slot = (slot + 1) & mask)
        if (net->hashes[at] == hash && are_equal(net, net->group[at], row)) return at;
    net->hashes[found] = hash, net->slots[slot] = (int32_t)(found + 1);
    return found;
}

static int by_number(const void *one, const void *other) {
    int64_t left = *(const int64_t *)one, right = *(const int64_t *)other;
    return (left > right) - (left < right);
}

/* Adds up the equal ones of so many rows of one code; the first of them stands for all. 0: a sum does not fit. */
static int add_up(Net *net, int64_t count) {
    int64_t found = 0, mask = -1;
    int ordered = 1;
    for (int64_t i = 1; ordered && i < count; i++) ordered = net->group[i - 1] < net->group[i];
    if (!ordered) qsort(net->group, count, sizeof *net->group, by_number);
    if (count > FEW) {
        for (mask = 16; mask < 2 * count;) mask *= 2;
        memset(net->slots, 0, mask-- * sizeof *net->slots);
    }
    for (int64_t i = 0; i < count; i++) { /* the distinct ones are moved to the front */
        int64_t row = net->group[i], at = position_of(net, row, found, mask);
        if (at == found) {
            net->group[found++] = row;
        } else {
            int64_t *sum = &net->sums[net->group[at]];
            if (__builtin_add_overflow(*sum, net->sums[row], sum)) return 0;
            net->left[row] = 0, net->removed++;
        }
    }
    for (int64_t at = 0; at < found; at++)
        if (net->sums[net->group[at]] == 0) net->left[net->group[at]] = 0, net->removed++;
    return 1;
}

/* Adds up code by code. 1; 0: a sum does not fit; -1: a row is beyond the run. */
static int walk(Net *net) {
    const int64_t length = net->codes.length;
    const uint32_t *rows = net->rows.at;
    for (int64_t start = 0, stop; start < length; start = stop) {
        int64_t code = int_at(&net->codes, start), count = 0;
        int goes = 0;
        for (stop = start + 1; stop < length && int_at(&net->codes, stop) == code;) stop++;
        if (stop - start < 2) continue;
        for (int64_t entry = start; entry < stop; entry++) {
            if (rows[entry] >= (uint64_t)net->time.length) return -1;
            goes |= net->open[rows[entry]] && net->sums[rows[entry]] < 0;
        }
        for (int64_t entry = start; goes && entry < stop; entry++) {
            if (!net->open[rows[entry]]) continue;
            net->open[rows[entry]] = 0; /* a row with several keys is added up once */
            net->group[count++] = rows[entry];
        }
        if (count > 1 && !add_up(net, count)) return 0;
    }
    return 1;
}

/* The net: how many closed rows remain, which rows remain, and how often those count that do not count their diff. */
static PyObject *shown(const Net *net) {
    int64_t length = net->time.length, count = 0, size = net->size - net->removed;
    PyObject *there, *rows = NULL, *diffs = NULL, *result = NULL;
    if (!net->removed) return Py_BuildValue("(LOOO)", (long long)size, Py_None, Py_None, Py_None);
    for (int64_t row = 0; row < length; row++) count += net->left[row] && net->sums[row] != int_at(&net->diff, row);
    there = PyByteArray_FromStringAndSize(net->left, length);
    rows = PyByteArray_FromStringAndSize(NULL, count * 8), diffs = PyByteArray_FromStringAndSize(NULL, count * 8);
    if (there != NULL && rows != NULL && diffs != NULL) {
        int64_t *number = (int64_t *)PyByteArray_AsString(rows), *sum = (int64_t *)PyByteArray_AsString(diffs);
        for (int64_t row = 0; row < length; row++)
            if (net->left[row] && net->sums[row] != int_at(&net->diff, row)) *number++ = row, *sum++ = net->sums[row];
        result = Py_BuildValue("(LOOO)", (long long)size, there, rows, diffs);
    }
    Py_XDECREF(there);
    Py_XDECREF(rows);
    Py_XDECREF(diffs);
    return result;
}

PyObject *py_net(PyObject *self, PyObject *args) {
    PyObject *given[8], *result = NULL;
    long long closed;
    Net net = {0};
    int going, inside = 1;
    if (!PyArg_ParseTuple(args, "OOOLOOOOO", &given[0], &given[1], &given[2], &closed, &given[3], &given[4], &given[5],
                          &given[6], &given[7]))
        return NULL;
    going = open_net(&net, given);
    if (going == 1 && !take_memory(&net)) PyErr_NoMemory(), going = -1;
    if (going == 1) {
        PyThreadState *paused = pause_for(net.time.length);
        int goes = look(&net, closed), done = goes == 1 ? walk(&net) : 1;
        go_on(paused);
        inside = goes >= 0 && done >= 0, going = done;
    }
    if (!inside) PyErr_SetString(PyExc_IndexError, "a row number beyond its run");
    else if (going == 1) result = shown(&net);
    else if (going == 0) result = Py_NewRef(Py_None);
    close_net(&net);
    return result;
}

/* The entries of an index whose rows are marked, and the other ones: codes and rows of each. */
PyObject *py_split(PyObject *self, PyObject *args) {
    PyObject *given[3], *made[4] = {NULL}, *result = NULL;
    Array codes = {0}, rows = {0}, mask = {0};
    int going;
    if (!PyArg_ParseTuple(args, "OOO", &given[0], &given[1], &given[2])) return NULL;
    if ((going = open_ints(given[0], &codes)) == 1 && (going = open_numbers(given[1], &rows)) == 1)
        going = open_flags(given[2], &mask);
    if (going == 1) going = codes.length == rows.length;
    if (going == 1) {
        const uint32_t *numbers = rows.at;
        const char *marked = mask.at;
        int64_t counts[2] = {0}, *code[2];
        uint32_t *row[2];
        int inside = 1;
        for (int64_t i = 0; inside && i < rows.length; i++)
            if ((inside = numbers[i] < (uint64_t)mask.length)) counts[!marked[numbers[i]]]++;
        if (!inside) PyErr_SetString(PyExc_IndexError, "a row number beyond its run");
        for (int i = 0; inside && i < 4; i++)
            inside = (made[i] = PyByteArray_FromStringAndSize(NULL, counts[i / 2] * (i % 2 ? 4 : 8))) != NULL;
        if (inside) {
            for (int i = 0; i < 2; i++)
                code[i] = (int64_t *)PyByteArray_AsString(made[2 * i]), row[i] = (uint32_t *)PyByteArray_AsString(made[2 * i + 1]);
            for (int64_t i = 0; i < rows.length; i++) {
                int other = !marked[numbers[i]];
                *code[other]++ = int_at(&codes, i), *row[other]++ = numbers[i];
            }
            result = PyTuple_Pack(4, made[0], made[1], made[2], made[3]);
        }
    }
    if (going == 0) result = Py_NewRef(Py_None);
    for (int i = 0; i < 4; i++) Py_XDECREF(made[i]);
    close_array(&codes);
    close_array(&rows);
    close_array(&mask);
    return result;
}
