/* Builds indexes: of all rows or of those with some keys, merges sorted ones, and makes the guide of a large one. */

#include "indexes.h"

PyObject *columns_of(const Entry *entries, int64_t length) {
    PyObject *codes = PyByteArray_FromStringAndSize(NULL, length * 8), *result = NULL;
    PyObject *rows = PyByteArray_FromStringAndSize(NULL, length * 4);
    if (codes != NULL && rows != NULL) {
        int64_t *code = (int64_t *)PyByteArray_AsString(codes);
        uint32_t *row = (uint32_t *)PyByteArray_AsString(rows);
        for (int64_t i = 0; i < length; i++) code[i] = entries[i].code, row[i] = entries[i].row;
        result = PyTuple_Pack(2, codes, rows);
    }
    Py_XDECREF(codes);
    Py_XDECREF(rows);
    return result;
}

Entry *entries_of(const Columns *keys, int64_t length) {
    Entry *entries = malloc((2 * length + 1) * sizeof *entries), *found;
    int64_t *codes = malloc((length + 1) * sizeof *codes);
    int ordered = 1;
    if (entries == NULL || codes == NULL) {
        free(entries);
        free(codes);
        return (Entry *)PyErr_NoMemory();
    }
    PyThreadState *paused = pause_for(length);
    codes_of(keys, length, codes);
    for (int64_t i = 0; i < length; i++) {
        entries[i] = (Entry){codes[i], (uint32_t)i};
        ordered &= i == 0 || codes[i] >= codes[i - 1];
    }
    found = ordered ? entries : sort_entries(entries, entries + length, length);
    if (found != entries) memcpy(entries, found, length * sizeof *entries);
    go_on(paused);
    free(codes);
    return entries;
}

PyObject *py_sorted(PyObject *self, PyObject *args) {
    PyObject *given, *result = NULL;
    Array codes = {0};
    int64_t *beside = NULL;
    int going;
    if (!PyArg_ParseTuple(args, "O", &given)) return NULL;
    going = open_ints(given, &codes);
    if (going == 1) going = codes.length < UINT32_MAX;
    if (going == 1 && codes.step != 1) {
        if ((beside = malloc((codes.length + 1) * sizeof *beside)) == NULL) PyErr_NoMemory(), going = -1;
        for (int64_t i = 0; going == 1 && i < codes.length; i++) beside[i] = int_at(&codes, i);
    }
    if (going == 1) result = sorted_columns(beside == NULL ? codes.at : beside, NULL, codes.length);
    if (going == 0) result = Py_NewRef(Py_None);
    free(beside);
    close_array(&codes);
    return result;
}

#define BLOCK 1024 /* rows */

static inline uint64_t place_of(int64_t code, int bits) { return mixed((uint64_t)code) >> (64 - bits); }

/* Codes, and the rows that have them. */
typedef struct {
    int64_t *codes;
    uint32_t *rows;
    int64_t count, room;
} Some;

/* Makes room for more of them. 0: there is no memory. */
static int make_room(Some *some, int64_t more) {
    if (some->count + more <= some->room) return 1;
    int64_t room = 2 * some->room + more;
    int64_t *codes = realloc(some->codes, room * sizeof *codes);
    if (codes != NULL) some->codes = codes;
    uint32_t *rows = realloc(some->rows, room * sizeof *rows);
    if (rows != NULL) some->rows = rows;
    if (codes == NULL || rows == NULL) return 0;
    some->room = room;
    return 1;
}

/* The rows whose code is among some codes, and a few more: a bit for each of the codes tells, and codes that are far from
   each other may share one. No more than a block beyond `most` are found. 0, with an exception: there is no memory. */
static int find_among(const Columns *keys, int64_t length, const Array *among, int64_t most, Some *some) {
    int bits = 12, near;
    int64_t least = INT64_MAX, greatest = INT64_MIN, codes[BLOCK];
    while (bits < 40 && INT64_C(1) << bits < 16 * among->length) bits++;
    for (int64_t i = 0; i < among->length; i++) {
        int64_t code = int_at(among, i);
        least = code < least ? code : least, greatest = code > greatest ? code : greatest;
    }
    near = least <= greatest && (uint64_t)greatest - (uint64_t)least < UINT64_C(1) << bits;
    uint8_t *there = calloc(INT64_C(1) << (bits - 3), 1);
    Columns part = {malloc(keys->count * sizeof *keys->at), keys->count};
    int going = there != NULL && part.at != NULL;
    PyThreadState *paused = pause_for(length);
    for (int64_t i = 0; going && i < among->length; i++) {
        uint64_t code = (uint64_t)int_at(among, i), place = near ? code - (uint64_t)least : place_of((int64_t)code, bits);
        there[place >> 3] |= (uint8_t)(1 << (place & 7));
    }
    for (int64_t from = 0, size; going && some->count <= most && from < length; from += size) {
        size = length - from < BLOCK ? length - from : BLOCK;
        if (!(going = make_room(some, size))) break;
        memcpy(part.at, keys->at, keys->count * sizeof *keys->at);
        for (Py_ssize_t c = 0; c < part.count; c++) part.at[c].offset += from, part.at[c].length = size;
        codes_of(&part, size, codes);
        int64_t low = INT64_MAX, high = INT64_MIN; /* rows often come in the order of a date or a number */
        for (int64_t i = 0; i < size; i++) low = codes[i] < low ? codes[i] : low, high = codes[i] > high ? codes[i] : high;
        if (high < least || low > greatest) continue;
        for (int64_t i = 0; i < size; i++) {
            uint64_t place = near ? (uint64_t)codes[i] - (uint64_t)least : place_of(codes[i], bits);
            some->codes[some->count] = codes[i], some->rows[some->count] = (uint32_t)(from + i);
            some->count += place >> bits == 0 && (there[place >> 3] >> (place & 7) & 1);
        }
    }
    go_on(paused);
    if (!going) PyErr_NoMemory();
    free(there);
    free(part.at);
    return going;
}

/* The index of all rows by their keys. NULL with an exception. */
static PyObject *index_all(const Columns *keys, int64_t length) {
    int64_t *codes = malloc((length + 1) * sizeof *codes);
    PyObject *result;
    if (codes == NULL) return PyErr_NoMemory();
    PyThreadState *paused = pause_for(length);
    codes_of(keys, length, codes);
    go_on(paused);
    result = sorted_columns(codes, NULL, length);
    free(codes);
    return result;
}

/* The index of rows by their keys: codes in order, and the row of each. */
PyObject *py_indexed(PyObject *self, PyObject *args) {
    PyObject *list, *asked, *result = NULL;
    Py_ssize_t length, most;
    Columns keys = {0};
    Array among = {0};
    Some some = {0};
    int going;
    if (!PyArg_ParseTuple(args, "OnOn", &list, &length, &asked, &most)) return NULL;
    going = open_columns(list, &keys);
    if (going == 1 && asked != Py_None) going = open_ints(asked, &among);
    if (going == 1) going = length >= 0 && length < UINT32_MAX && keys.count > 0;
    for (Py_ssize_t c = 0; going == 1 && c < keys.count; c++) going = keys.at[c].length == length;
    if (going == 1 && !among.open) result = index_all(&keys, length);
    else if (going == 1 && find_among(&keys, length, &among, most, &some)) {
        if (some.count > most) going = 0;
        else result = sorted_columns(some.codes, some.rows, some.count);
    }
    if (going == 0) result = Py_NewRef(Py_None);
    free(some.codes);
    free(some.rows);
    close_columns(&keys);
    close_array(&among);
    return result;
}

/* Merges the sorted entries `one` and `other` into `out`; of equal codes, those of `one` come first. */
static void merge_two(const Entry *one, int64_t ones, const Entry *other, int64_t others, Entry *out) {
    while (ones && others) {
        int second = other->code < one->code;
        *out++ = second ? *other : *one;
        other += second, others -= second;
        one += !second, ones -= !second;
    }
    if (ones) memcpy(out, one, ones * sizeof *out);
    if (others) memcpy(out, other, others * sizeof *out);
}

/* The entries of one index that are kept, with the row numbers that they have in the merged run. Returns how many; -1:
   a row number is not among the `kept`. */
static int64_t copy_kept(const Array *codes, const Array *rows, int64_t before, const Array *kept, Entry *out) {
    const uint32_t *numbers = rows->at;
    int64_t count = 0;
    for (int64_t i = 0; i < codes->length; i++) {
        int64_t row = numbers[i] + before;
        if (kept->open) {
            if (row >= kept->length) return -1;
            row = int_at(kept, row);
        }
        out[count] = (Entry){int_at(codes, i), (uint32_t)row};
        count += row >= 0;
    }
    return count;
}

PyObject *py_merged(PyObject *self, PyObject *args) {
    PyObject *list, *keeping, *result = NULL;
    Py_ssize_t count, opened = 0;
    Array *codes = NULL, *rows = NULL, kept = {0};
    int64_t *before = NULL, total = 0, length = 0;
    Entry *entries = NULL;
    int going = 1;
    if (!PyArg_ParseTuple(args, "OO", &list, &keeping) || (count = PyList_Size(list)) < 0) return NULL;
    codes = PyMem_Calloc(count + 1, sizeof *codes), rows = PyMem_Calloc(count + 1, sizeof *rows);
    before = PyMem_Calloc(count + 1, sizeof *before);
    if (codes == NULL || rows == NULL || before == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    if (keeping != Py_None) going = open_ints(keeping, &kept);
    while (going == 1 && opened < count) {
        PyObject *one, *other;
        long long at;
        if (!PyArg_ParseTuple(PyList_GetItem(list, opened), "OOL", &one, &other, &at)) goto done;
        before[opened] = at;
        going = open_ints(one, &codes[opened]);
        if (going == 1) going = open_numbers(other, &rows[opened]);
        if (going == 1) going = codes[opened].length == rows[opened].length && at >= 0 && at < INT64_MAX / 2;
        total += codes[opened].length;
        opened++;
    }
    if (going == -1) goto done;
    if (going == 1 && (entries = malloc((2 * total + 1) * sizeof *entries)) == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    if (going == 1) {
        PyThreadState *paused = pause_for(total);
        Entry *merged = entries, *spare = entries + total;
        /* The newest runs are the smallest, so merging from the last one copies each entry but a few times. The merged
           part stands at the end of its half, and what is merged next is put before it. */
        for (Py_ssize_t i = count; going == 1 && i-- > 0;) {
            Entry *end = merged + total, *one;
            int64_t size;
            one = end - length - codes[i].length;
            size = copy_kept(&codes[i], &rows[i], before[i], &kept, one);
            if (size < 0) {
                going = 0;
            } else {
                merge_two(one, size, end - length, length, spare + total - length - size);
                length += size;
                one = merged, merged = spare, spare = one;
            }
        }
        go_on(paused);
        if (going == 1) result = columns_of(merged + total - length, length);
    }
    if (going == 0) result = Py_NewRef(Py_None);
done:
    for (Py_ssize_t i = 0; codes != NULL && rows != NULL && i < opened; i++) close_array(&codes[i]), close_array(&rows[i]);
    close_array(&kept);
    PyMem_Free(codes);
    PyMem_Free(rows);
    PyMem_Free(before);
    free(entries);
    return result;
}

PyObject *py_starts(PyObject *self, PyObject *args) {
    PyObject *given, *result = NULL;
    Array codes = {0};
    unsigned long long shift;
    int going;
    if (!PyArg_ParseTuple(args, "OK", &given, &shift)) return NULL;
    going = open_ints(given, &codes);
    if (going == 1) going = codes.length > 0 && codes.length < UINT32_MAX && shift < 64;
    if (going == 1) {
        uint64_t least = (uint64_t)int_at(&codes, 0);
        uint64_t last = ((uint64_t)int_at(&codes, codes.length - 1) - least) >> shift, ranges = last + 1;
        if (last > 2 * (uint64_t)codes.length) going = 0;
        if (going == 1 && (result = PyByteArray_FromStringAndSize(NULL, (ranges + 1) * 4)) != NULL) {
            uint32_t *starts = (uint32_t *)PyByteArray_AsString(result);
            uint64_t next = 0;
            PyThreadState *paused = pause_for(codes.length);
            for (int64_t i = 0; i < codes.length; i++) {
                uint64_t range = ((uint64_t)int_at(&codes, i) - least) >> shift;
                while (next <= range && next < ranges) starts[next++] = (uint32_t)i;
            }
            go_on(paused);
            starts[ranges] = (uint32_t)codes.length;
        }
    }
    if (going == 0) result = Py_NewRef(Py_None);
    close_array(&codes);
    return result;
}
