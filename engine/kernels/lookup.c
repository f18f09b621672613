/* A half-join by one call: the codes of the keys, the search in all runs, the comparison of keys, the conditions on
   partners, and the joined rows. engine.join.half_join says what they mean. */

#include "side.h"

#define MANY 8 /* one in so many, as `engine.join.half_join` has it */

typedef struct {
    Columns keys, constants, columns; /* the stream's keys and columns; what conditions compare with */
    Array time, diff;                 /* of the stream */
    PyObject *allowed;                /* of each condition, as `engine.scalar.threshold` has it */
    unsigned long long null_safe;     /* a bit for each key in which NULL matches NULL */
    int certain;                      /* nobody compares keys */
    const Side **sides;
    Py_ssize_t count;
    int64_t *counts; /* the pairs of each side */
    int64_t *codes, *places; /* of the rows that may have partners; `places` is NULL if these are all rows */
    int64_t length;          /* how many they are */
    Found found;
} Lookup;

static int can_match(const Lookup *lookup, int64_t row) {
    for (Py_ssize_t c = 0; c < lookup->keys.count; c++)
        if (!(lookup->null_safe >> c & 1) && !is_valid(&lookup->keys.at[c], row)) return 0;
    return 1;
}

/* The codes of the rows that may have partners. 1, or -1 with an exception. */
static int encode(Lookup *lookup) {
    const int64_t length = lookup->time.length;
    int skips = 0;
    lookup->codes = malloc((length ? length : 1) * sizeof *lookup->codes);
    if (lookup->codes == NULL) goto failed;
    codes_of(&lookup->keys, length, lookup->codes);
    lookup->length = length;
    for (Py_ssize_t c = 0; c < lookup->keys.count; c++)
        skips |= lookup->keys.at[c].valid != NULL && !(lookup->null_safe >> c & 1);
    if (!skips) return 1;
    lookup->places = malloc((length ? length : 1) * sizeof *lookup->places);
    if (lookup->places == NULL) goto failed;
    lookup->length = 0;
    for (int64_t row = 0; row < length; row++)
        if (can_match(lookup, row))
            lookup->codes[lookup->length] = lookup->codes[row], lookup->places[lookup->length++] = row;
    return 1;
failed:
    PyErr_NoMemory();
    return -1;
}

/* Whether a side's keys and conditions are of types that can be compared here. */
static int fits(const Lookup *lookup, const Side *side) {
    if (side->tested.count != lookup->constants.count) return 0;
    for (Py_ssize_t c = 0; c < side->tested.count; c++)
        if (!is_ordered(&side->tested.at[c], &lookup->constants.at[c])) return 0;
    if (side->keys.count == 0) return lookup->certain;
    if (side->keys.count != lookup->keys.count) return 0;
    for (Py_ssize_t c = 0; c < side->keys.count; c++)
        if (!comparable(&lookup->keys.at[c], &side->keys.at[c])) return 0;
    return 1;
}

/* Whether equal codes of the lookup and of a side mean equal keys. */
static int tells_apart(const Lookup *lookup, const Side *side) {
    const Column *key = lookup->keys.at;
    if (side->keys.count == 0) return 1;
    return side->exact && lookup->keys.count == 1 && (key->kind == INTEGER || key->kind == BITS) &&
           (key->valid == NULL || !(lookup->null_safe & 1));
}

/* The pairs of a side from number `from` on that are partners and meet every condition. 1; 0: a row is beyond the run. */
static int admit(Lookup *lookup, const Side *side, int64_t from, const int *allowed) {
    const int compare = !tells_apart(lookup, side);
    int64_t *positions = lookup->found.positions, left = from;
    uint32_t *rows = lookup->found.rows;
    for (int64_t i = from; i < lookup->found.count; i++) {
        int64_t row = rows[i], at = lookup->places == NULL ? positions[i] : lookup->places[positions[i]];
        int keep = 1;
        if (row >= side->time.length) return 0;
        for (Py_ssize_t c = 0; compare && keep && c < side->keys.count; c++)
            keep = equal_values(&lookup->keys.at[c], at, &side->keys.at[c], row);
        for (Py_ssize_t c = 0; keep && c < side->tested.count; c++)
            keep = is_valid(&side->tested.at[c], row) && is_valid(&lookup->constants.at[c], 0) &&
                   (allowed[c] >> (order_of(&side->tested.at[c], row, &lookup->constants.at[c]) + 1) & 1);
        positions[left] = at, rows[left] = (uint32_t)row;
        left += keep;
    }
    lookup->found.count = left;
    return 1;
}

/* Finds the pairs of all sides. 1; 0: there is no fast way; -1 with an exception. */
static int find_pairs(Lookup *lookup, int64_t most, const int *allowed) {
    Array probes = {.at = lookup->codes, .length = lookup->length, .step = 1};
    PyThreadState *paused;
    int going = 1, inside = 1;
    for (Py_ssize_t i = 0; i < lookup->count; i++)
        if (!fits(lookup, lookup->sides[i])) return 0;
    paused = pause_for(lookup->length * lookup->count);
    for (Py_ssize_t i = 0; going == 1 && inside && i < lookup->count; i++) {
        const Side *side = lookup->sides[i];
        int64_t before = lookup->found.count;
        if (side->index.codes.length && (going = find_in(&side->index, &probes, most, &lookup->found)) == 1)
            inside = admit(lookup, side, before, allowed);
        lookup->counts[i] = lookup->found.count - before;
    }
    go_on(paused);
    if (!inside) return PyErr_SetString(PyExc_IndexError, "a row number beyond its run"), -1;
    if (going == -1) PyErr_NoMemory();
    return going;
}

/* The times and diffs of the joined rows. 0: a product does not fit. */
static int multiply(const Lookup *lookup, int64_t *time, int64_t *diff) {
    int64_t i = 0;
    for (Py_ssize_t s = 0; s < lookup->count; s++) {
        const Side *side = lookup->sides[s];
        for (int64_t end = i + lookup->counts[s]; i < end; i++) {
            int64_t row = lookup->found.rows[i], at = lookup->found.positions[i];
            int64_t own = int_at(&lookup->time, at), other = int_at(&side->time, row);
            time[i] = own > other ? own : other;
            if (__builtin_mul_overflow(int_at(&lookup->diff, at), weight_of(side, row), &diff[i])) return 0;
        }
    }
    return 1;
}

/* Whether so many partners count less than 0 times that it pays to add up those that cancel. */
static int many_gone(const Lookup *lookup) {
    int64_t i = 0, gone = 0;
    for (Py_ssize_t s = 0; s < lookup->count; s++)
        for (int64_t end = i + lookup->counts[s]; i < end; i++) gone += weight_of(lookup->sides[s], lookup->found.rows[i]) < 0;
    return gone * MANY >= lookup->found.count;
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

/* Whether the joined rows have columns that can be gathered, and no more bytes of texts than `most`. */
static int gatherable(const Lookup *lookup, int64_t most) {
    int64_t from = 0, total = 0;
    for (Py_ssize_t c = 0; c < lookup->columns.count; c++) {
        const Column *column = &lookup->columns.at[c];
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

/* The buffers of all columns of the joined rows: the stream's, then the partners'. */
static PyObject *gather_both(const Lookup *lookup) {
    Rows mine = {.wide = {.at = lookup->found.positions, .length = lookup->found.count, .step = 1}};
    Rows theirs = {.narrow = {.at = lookup->found.rows, .length = lookup->found.count, .step = 1, .open = 1}};
    Py_ssize_t own = lookup->columns.count, count = own + (lookup->count ? lookup->sides[0]->fetched.count : 0);
    const Column **each = PyMem_Calloc(lookup->count + 1, sizeof *each);
    PyObject *result = each == NULL ? PyErr_NoMemory() : PyList_New(count);
    mine.length = theirs.length = lookup->found.count;
    for (Py_ssize_t c = 0; result != NULL && c < count; c++) {
        PyObject *made;
        if (c < own) each[0] = &lookup->columns.at[c];
        else for (Py_ssize_t s = 0; s < lookup->count; s++) each[s] = &lookup->sides[s]->fetched.at[c - own];
        made = c < own ? gather_column(each, &mine.length, 1, &mine)
                       : gather_column(each, lookup->counts, lookup->count, &theirs);
        if (made == NULL) Py_CLEAR(result);
        else PyList_SetItem(result, c, made);
    }
    PyMem_Free(each);
    return result;
}

/* The joined rows: buffers, times and diffs. NULL, without an exception: there is no fast way. */
static PyObject *join(const Lookup *lookup, int64_t most_bytes) {
    PyObject *times, *diffs, *made = NULL, *result = NULL;
    int64_t size = lookup->found.count * 8;
    if (!gatherable(lookup, most_bytes)) return NULL;
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

/* Opens all arguments; as the functions of columns.h. */
static int open_lookup(PyObject *const part[7], Lookup *out, int *allowed, Py_ssize_t room) {
    int going;
    if ((going = open_columns(part[0], &out->keys)) < 1 || (going = open_columns(part[1], &out->columns)) < 1 ||
        (going = open_ints(part[2], &out->time)) < 1 || (going = open_ints(part[3], &out->diff)) < 1)
        return going;
    if ((out->sides = sides_of(part[4], &out->count)) == NULL) return -1;
    if ((going = open_columns(part[5], &out->constants)) < 1) return going;
    if (PyTuple_Size(part[6]) != out->constants.count || out->constants.count > room)
        return PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t c = 0; c < out->constants.count; c++) {
        long number = PyLong_AsLong(PyTuple_GetItem(part[6], c));
        if (number == -1 && PyErr_Occurred()) return -1;
        if (out->constants.at[c].length != 1) return 0;
        allowed[c] = (int)number;
    }
    if (out->diff.length != out->time.length || out->keys.count < 1 || out->keys.count > 64) return 0;
    for (Py_ssize_t c = 0; c < out->keys.count; c++)
        if (out->keys.at[c].length != out->time.length) return 0;
    if ((out->counts = PyMem_Calloc(out->count ? out->count : 1, sizeof *out->counts)) != NULL) return 1;
    PyErr_NoMemory();
    return -1;
}

PyObject *py_half_join(PyObject *self, PyObject *args) {
    PyObject *part[7], *result = NULL;
    Lookup lookup = {0};
    Py_ssize_t most, whole, most_bytes;
    int allowed[16], going;
    if (!PyArg_ParseTuple(args, "OKpOOOOOOnnn", &part[0], &lookup.null_safe, &lookup.certain, &part[1], &part[2], &part[3],
                          &part[4], &part[5], &part[6], &most, &whole, &most_bytes))
        return NULL;
    going = open_lookup(part, &lookup, allowed, 16);
    if (going == 1) going = encode(&lookup);
    if (going == 1) going = find_pairs(&lookup, most, allowed);
    if (going == 1) {
        if (lookup.found.count == 0) result = Py_NewRef(Py_False);
        else if (whole >= 0 && (lookup.found.count <= whole || !many_gone(&lookup))) result = join(&lookup, most_bytes);
        if (result == NULL && !PyErr_Occurred()) result = pairs_of(&lookup.found, lookup.counts, lookup.count);
    }
    if (going == 0) result = Py_NewRef(Py_None);
    close_columns(&lookup.keys);
    close_columns(&lookup.columns);
    close_columns(&lookup.constants);
    close_array(&lookup.time);
    close_array(&lookup.diff);
    PyMem_Free(lookup.sides);
    PyMem_Free(lookup.counts);
    free(lookup.codes);
    free(lookup.places);
    free(lookup.found.positions);
    free(lookup.found.rows);
    return result;
}
