/* Groups of equal keys and what their rows add to sums, exactly, in one pass over the rows of several pieces. */

#include "keyed.h"
#include "sums.h"

#define MOST_ARGUMENTS 4
#define MOST_PARTS 64

/* What is added up: the product of the first `factors` arguments (none: rows are counted) of rows that have them all. */
typedef struct {
    int factors, count;
    int at[MOST_ARGUMENTS]; /* positions among the columns of a piece */
} Part;

typedef struct {
    Py_ssize_t pieces, parts;
    Columns *keys, *columns; /* of each piece */
    Array *diffs;
    Part part[MOST_PARTS];
    Keyed keyed;
    Wide *sums; /* of each group its sums, one beside the other */
    int64_t room, rows;
} Grouped;

static int open_parts(PyObject *list, Grouped *out) {
    if ((out->parts = PyList_Size(list)) < 0) return -1;
    if (out->parts > MOST_PARTS) return 0;
    for (Py_ssize_t p = 0; p < out->parts; p++) {
        Part *part = &out->part[p];
        PyObject *positions;
        if (!PyArg_ParseTuple(PyList_GetItem(list, p), "iO!", &part->factors, &PyTuple_Type, &positions)) return -1;
        if (PyTuple_Size(positions) > MOST_ARGUMENTS || part->factors < 0 || part->factors > 2) return 0;
        for (; part->count < PyTuple_Size(positions); part->count++) {
            Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(positions, part->count));
            if (at == -1 && PyErr_Occurred()) return -1;
            for (Py_ssize_t piece = 0; piece < out->pieces; piece++) {
                const Columns *columns = &out->columns[piece];
                if (at < 0 || at >= columns->count) return 0;
                if (part->count < part->factors && !summable(&columns->at[at])) return 0;
            }
            part->at[part->count] = (int)at;
        }
        if (part->factors > part->count) return 0;
    }
    return 1;
}

static int open_pieces(PyObject *list, Grouped *out) {
    Py_ssize_t pieces = PyList_Size(list);
    int going = 1;
    if (pieces < 0) return -1;
    out->keys = PyMem_Calloc(pieces + 1, sizeof *out->keys);
    out->columns = PyMem_Calloc(pieces + 1, sizeof *out->columns);
    out->diffs = PyMem_Calloc(pieces + 1, sizeof *out->diffs);
    if (out->keys == NULL || out->columns == NULL || out->diffs == NULL) return PyErr_NoMemory(), -1;
    out->pieces = pieces;
    for (Py_ssize_t p = 0; p < pieces && going == 1; p++) {
        PyObject *keys, *columns, *diff;
        if (!PyArg_ParseTuple(PyList_GetItem(list, p), "OOO", &keys, &columns, &diff)) return -1;
        if ((going = open_columns(keys, &out->keys[p])) == 1) going = open_columns(columns, &out->columns[p]);
        if (going == 1) going = open_ints(diff, &out->diffs[p]);
        if (going < 1) break;
        out->rows += out->diffs[p].length;
        going = out->keys[p].count > 0 && out->keys[p].count == out->keys[0].count;
        for (Py_ssize_t c = 0; going && c < out->keys[p].count; c++)
            going = out->keys[p].at[c].length == out->diffs[p].length && comparable(&out->keys[0].at[c], &out->keys[p].at[c]);
        for (Py_ssize_t c = 0; going && c < out->columns[p].count; c++)
            going = out->columns[p].at[c].length == out->diffs[p].length;
    }
    return going;
}

static void close_grouped(Grouped *given) {
    for (Py_ssize_t p = 0; p < given->pieces; p++) {
        close_columns(&given->keys[p]);
        close_columns(&given->columns[p]);
        close_array(&given->diffs[p]);
    }
    PyMem_Free(given->keys);
    PyMem_Free(given->columns);
    PyMem_Free(given->diffs);
    close_keyed(&given->keyed);
    free(given->sums);
}

#define ADD_EACH(VALUE)                                                                                                \
    for (int64_t i = 0; i < size; i++) {                                                                               \
        Wide *sum = &sums[group[i] * step];                                                                            \
        over |= __builtin_add_overflow(*sum, (VALUE) * times, sum);                                                    \
    }                                                                                                                  \
    break;

/* As `add_part`, where all rows count equally often, and add an integer that is there, or count. */
static int add_plain(const Column *column, int64_t from, int64_t size, int64_t times, const int32_t *group, Wide *sums,
                      Py_ssize_t step) {
    const uint8_t *data = column == NULL ? NULL : column->data + (from + column->offset) * column->width;
    int over = 0;
    switch (column == NULL ? 0 : column->width) {
    case 0: ADD_EACH((Wide)1)
    case 1: ADD_EACH((Wide)((const int8_t *)data)[i])
    case 2: ADD_EACH((Wide)((const int16_t *)data)[i])
    case 4: ADD_EACH((Wide)((const int32_t *)data)[i])
    default: ADD_EACH((Wide)((const int64_t *)data)[i])
    }
    return !over;
}

#define LOAD_EACH(TYPE)                                                                                                \
    for (int64_t i = 0; i < size; i++) values[i] = ((const TYPE *)data)[i];                                            \
    return 1;

/* The values of a block; 0 if one is wider than 64 bits. What lies below a NULL is some value. */
static int load(const Column *column, int64_t from, int64_t size, int64_t *values) {
    const uint8_t *data = column->data + (from + column->offset) * column->width;
    int64_t wide = 0;
    switch (column->width) {
    case 1: LOAD_EACH(int8_t)
    case 2: LOAD_EACH(int16_t)
    case 4: LOAD_EACH(int32_t)
    case 8: LOAD_EACH(int64_t)
    default: /* two words */
        for (int64_t i = 0; i < size; i++) {
            values[i] = ((const int64_t *)data)[2 * i];
            wide |= ((const int64_t *)data)[2 * i + 1] ^ (values[i] >> 63);
        }
        return wide == 0;
    }
}

/* How often each row of a block counts, in 32 bits; never, if an argument is NULL. 0 if one counts more often. */
static int load_times(const Array *diff, const Column **args, int count, int64_t from, int64_t size, int64_t *times) {
    int64_t wide = 0;
    for (int64_t i = 0; i < size; i++) {
        times[i] = int_at(diff, from + i);
        wide |= times[i] ^ (int32_t)times[i];
    }
    for (int a = 0; a < count; a++) {
        const uint8_t *valid = args[a]->valid;
        const int64_t at = from + args[a]->offset;
        for (int64_t i = 0; valid != NULL && i < size; i++)
            times[i] &= -(int64_t)(valid[(at + i) >> 3] >> ((at + i) & 7) & 1);
    }
    return wide == 0;
}

/* As `add_part`, of values of at most 64 bits, and products of these; 0 if some are wider, and nothing is added. */
static int add_narrow(const Part *part, const Column **args, const Array *diff, int64_t from, int64_t size,
                      const int32_t *group, Wide *sums, Py_ssize_t step, int *over) {
    int64_t times[KEYED_BLOCK], values[KEYED_BLOCK], others[KEYED_BLOCK];
    if (!load_times(diff, args, part->count, from, size, times)) return 0;
    if (part->factors > 0 && !load(args[0], from, size, values)) return 0;
    if (part->factors > 1) {
        int64_t wide = 0;
        if (!load(args[1], from, size, others)) return 0;
        for (int64_t i = 0; i < size; i++) wide |= others[i] ^ (int32_t)others[i];
        if (wide) return 0;
        for (int64_t i = 0; i < size; i++) times[i] *= others[i];
    }
    for (int64_t i = 0; i < size; i++) {
        Wide *sum = &sums[group[i] * step];
        *over |= __builtin_add_overflow(*sum, part->factors ? (Wide)values[i] * times[i] : times[i], sum);
    }
    return 1;
}

/* What the rows of a block add to a sum of their groups; 0 if some sum does not fit. */
static int add_part(const Grouped *given, const Part *part, Py_ssize_t piece, int64_t from, int64_t size,
                    const int32_t *group, Wide *sums) {
    const Column *args[MOST_ARGUMENTS];
    const Array *diff = &given->diffs[piece];
    int asked = 0, over = 0;
    for (int a = 0; a < part->count; a++) {
        args[a] = &given->columns[piece].at[part->at[a]];
        asked |= args[a]->valid != NULL;
    }
    if (diff->step == 0 && !asked && (part->factors == 0 || (part->factors == 1 && args[0]->kind == INTEGER))
        && int_at(diff, 0) == (int32_t)int_at(diff, 0))
        return add_plain(part->factors ? args[0] : NULL, from, size, int_at(diff, 0), group, sums, given->parts);
    if (add_narrow(part, args, diff, from, size, group, sums, given->parts, &over)) return !over;
    for (int64_t i = 0; i < size; i++) {
        Wide *sum = &sums[group[i] * given->parts], value = 1;
        int64_t times = int_at(diff, from + i);
        int there = 1;
        for (int a = 0; asked && there && a < part->count; a++) there = is_valid(args[a], from + i);
        if (!there) continue;
        for (int a = 0; a < part->factors; a++) {
            Wide factor = wide_at(args[a], from + i);
            if (a == 0) value = factor;
            else if (__builtin_mul_overflow(value, factor, &value)) return 0;
        }
        if (times != 1 && __builtin_mul_overflow(value, times, &value)) return 0;
        if (__builtin_add_overflow(*sum, value, sum)) return 0;
    }
    return 1;
}

/* Room for the sums of all groups, of which those from `first` on are new. */
static int make_room(Grouped *given, int64_t first) {
    if (given->keyed.count > given->room) {
        Wide *sums = realloc(given->sums, given->keyed.room * given->parts * sizeof *sums + 1);  /* of no parts, too */
        if (sums == NULL) return -1;
        given->sums = sums, given->room = given->keyed.room;
    }
    memset(given->sums + first * given->parts, 0, (given->keyed.count - first) * given->parts * sizeof *given->sums);
    return 1;
}

/* 1; 0: there is no fast way, or some sum does not fit; -1: no memory, without an exception. `numbers`: of the rows' groups, or NULL. */
static int add_up(Grouped *given, int64_t *numbers) {
    int32_t group[KEYED_BLOCK];
    int going = open_keyed(&given->keyed, given->keys, given->pieces, given->rows);
    if (going < 1) return going;
    for (Py_ssize_t piece = 0; piece < given->pieces; piece++)
        for (int64_t from = 0, left; (left = given->diffs[piece].length - from) > 0; from += KEYED_BLOCK) {
            int64_t size = left < KEYED_BLOCK ? left : KEYED_BLOCK;
            const int64_t before = given->keyed.count;
            if ((going = groups_of_rows(&given->keyed, piece, from, size, group)) < 1) return going;
            if ((going = make_room(given, before)) < 1) return going;
            for (Py_ssize_t p = 0; p < given->parts; p++)
                if (!add_part(given, &given->part[p], piece, from, size, group, given->sums + p)) return 0;
            for (int64_t i = 0; numbers != NULL && i < size; i++) *numbers++ = group[i];
        }
    return 1;
}

/* The sums of one part, of 64 bits if all fit, else of 128. */
static PyObject *sums_of_part(const Grouped *given, Py_ssize_t p) {
    const int64_t count = given->keyed.count;
    const Wide *sums = given->sums + p;
    int wide = 0;
    for (int64_t g = 0; g < count; g++) wide |= sums[g * given->parts] != (int64_t)sums[g * given->parts];
    PyObject *made = PyByteArray_FromStringAndSize(NULL, count * (wide ? 16 : 8));
    if (made == NULL) return NULL;
    char *out = PyByteArray_AsString(made);
    for (int64_t g = 0; g < count; g++)
        memcpy(out + g * (wide ? 16 : 8), &sums[g * given->parts], wide ? 16 : 8);
    return made;
}

static PyObject *first_rows(const Grouped *given) {
    PyObject *made = PyByteArray_FromStringAndSize(NULL, given->keyed.count * 8);
    int64_t begins = 0, piece = 0, its;
    if (made == NULL) return NULL;
    int64_t *out = (int64_t *)PyByteArray_AsString(made);
    for (int64_t g = 0; g < given->keyed.count; g++) { /* in the order of the rows */
        int64_t row = first_of_group(&given->keyed, g, &its);
        while (piece < its) begins += given->diffs[piece++].length;
        out[g] = begins + row;
    }
    return made;
}

/* grouped(pieces, parts, numbered): the first row of each group, in order, as a number among the rows of all pieces; the
   sums of each part; and the number of each row's group, or None. None: some sum does not fit 128 bits. */
PyObject *py_grouped(PyObject *self, PyObject *args) {
    PyObject *pieces, *parts, *firsts = NULL, *sums = NULL, *numbers = NULL, *result = NULL;
    Grouped given = {0};
    int numbered, going;
    if (!PyArg_ParseTuple(args, "OOp", &pieces, &parts, &numbered)) return NULL;
    if ((going = open_pieces(pieces, &given)) == 1) going = open_parts(parts, &given);
    if (going == 1) going = given.pieces > 0 && given.rows < INT32_MAX;
    if (going == 1 && numbered && (numbers = PyByteArray_FromStringAndSize(NULL, given.rows * 8)) == NULL) going = -1;
    if (going == 1) {
        int64_t *out = numbers == NULL ? NULL : (int64_t *)PyByteArray_AsString(numbers);
        PyThreadState *paused = pause_for(given.rows);
        going = add_up(&given, out);
        go_on(paused);
        if (going == -1) PyErr_NoMemory();
    }
    if (going == 1 && (sums = PyList_New(0)) != NULL && (firsts = first_rows(&given)) != NULL) {
        for (Py_ssize_t p = 0; going == 1 && p < given.parts; p++) {
            PyObject *made = sums_of_part(&given, p);
            if (made == NULL || PyList_Append(sums, made) < 0) going = -1;
            Py_XDECREF(made);
        }
        if (going == 1) result = Py_BuildValue("OOO", firsts, sums, numbers == NULL ? Py_None : numbers);
    }
    if (going == 0) result = Py_NewRef(Py_None);
    close_grouped(&given);
    Py_XDECREF(firsts);
    Py_XDECREF(sums);
    Py_XDECREF(numbers);
    return result;
}
