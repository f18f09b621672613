/* The lookup: finds or counts probes in the indexes of several runs at once.

   An index has codes in order, and the row of each code. A large one has a guide (engine.arrange.guide): range `i` holds
   the codes from `least + (i << shift)` on, at positions `starts[i]` to `starts[i + 1]`. A search waits for memory at
   each step, so probes are taken in blocks: first the ranges of all probes of a block are asked for, then their codes.
   Without a guide all probes of a block take each step of a binary search together.
   A small index that is opened for many lookups has a filter. Most probes are in none of the small runs of recent batches,
   and one bit tells that of a run. */

#include "search.h"

#define BLOCK 32

static int grow(Found *found, int64_t more) {
    int64_t space = found->space;
    int64_t *positions;
    uint32_t *rows;
    if (found->count + more <= space) return 1;
    while (space < found->count + more) space = space < 64 ? 64 : space * 2;
    positions = realloc(found->positions, space * sizeof *positions);
    if (positions == NULL) return 0;
    found->positions = positions;
    rows = realloc(found->rows, space * sizeof *rows);
    if (rows == NULL) return 0;
    found->rows = rows, found->space = space;
    return 1;
}

/* The first of the sorted codes from `low` to `high` that is at least the probe. */
static inline int64_t first_at_least(const int64_t *codes, int64_t low, int64_t high, int64_t probe) {
    const int64_t *base = codes + low;
    int64_t left = high - low;
    if (left <= 0) return low;
    while (left > 1) {
        int64_t half = left / 2;
        base += (base[half - 1] < probe) * half; /* no branch, which would be guessed wrong half of the time */
        left -= half;
    }
    return base - codes + (*base < probe);
}

/* For each of `size` probes, the first of the codes that is at least it. */
static void firsts(const Index *index, const int64_t *probes, int64_t size, int64_t *entries) {
    const int64_t *codes = index->codes.at;
    const uint32_t *starts = index->starts.at;
    const int64_t length = index->codes.length;
    if (index->guided) {
        int64_t high[BLOCK];
        uint64_t last = (uint64_t)index->starts.length - 2;
        for (int64_t i = 0; i < size; i++) { /* a probe below `least` wraps around, and finds nothing at the end */
            uint64_t range = ((uint64_t)probes[i] - index->least) >> index->shift;
            entries[i] = (int64_t)(range < last ? range : last);
            __builtin_prefetch(&starts[entries[i]]);
        }
        for (int64_t i = 0; i < size; i++) {
            high[i] = starts[entries[i] + 1], entries[i] = starts[entries[i]];
            if (high[i] > length) high[i] = length; /* whatever the guide says */
            __builtin_prefetch(&codes[(entries[i] + high[i]) / 2]);
        }
        for (int64_t i = 0; i < size; i++) entries[i] = first_at_least(codes, entries[i], high[i], probes[i]);
        return;
    }
    memset(entries, 0, size * sizeof *entries);
    for (int64_t left = length, half; left > 1; left -= half) {
        half = left / 2;
        for (int64_t i = 0; i < size; i++) entries[i] += (codes[entries[i] + half - 1] < probes[i]) * half;
    }
    for (int64_t i = 0; i < size; i++) entries[i] += length > 0 && codes[entries[i]] < probes[i];
}

/* The bit of a code in the filter: products with this number have well mixed upper bits (Fibonacci hashing). */
static inline uint64_t bit_of(const Index *index, int64_t code) {
    return (uint64_t)code * UINT64_C(0x9E3779B97F4A7C15) >> index->spread;
}

static inline int may_have(const Index *index, int64_t code) {
    uint64_t bit = index->filter == NULL ? 0 : bit_of(index, code);
    return index->filter == NULL || index->filter[bit >> 6] >> (bit & 63) & 1;
}

int make_filter(Index *index) {
    const int64_t *codes = index->codes.at;
    int bits = 6;
    if (index->codes.length < FILTERED_FROM || index->codes.length > FILTERED_TO) return 1;
    while (INT64_C(1) << bits < index->codes.length * 8) bits++;
    if ((index->filter = calloc(UINT64_C(1) << (bits - 6), 8)) == NULL) return 0;
    index->spread = 64 - bits;
    for (int64_t i = 0; i < index->codes.length; i++) {
        uint64_t bit = bit_of(index, codes[i]);
        index->filter[bit >> 6] |= UINT64_C(1) << (bit & 63);
    }
    return 1;
}

/* The probes from number `*next` on that may be in an index, and their numbers: at most a block of them. */
static int64_t take_block(const Index *index, const Array *probes, int64_t *next, int64_t *block, int64_t *numbers) {
    int64_t size = 0, i = *next;
    for (; i < probes->length && size < BLOCK; i++) {
        block[size] = int_at(probes, i), numbers[size] = i;
        size += may_have(index, block[size]);
    }
    *next = i;
    return size;
}

int find_in(const Index *index, const Array *probes, int64_t most, Found *found) {
    const int64_t *codes = index->codes.at;
    const uint32_t *rows = index->rows.at;
    const int64_t length = index->codes.length;
    int64_t block[BLOCK], numbers[BLOCK], entries[BLOCK];
    for (int64_t next = 0; next < probes->length;) {
        int64_t size = take_block(index, probes, &next, block, numbers);
        firsts(index, block, size, entries);
        for (int64_t i = 0; i < size; i++) {
            int64_t probe = block[i], entry = entries[i], stop = entry;
            while (stop < length && codes[stop] == probe && stop - entry <= most) stop++;
            if (stop == entry) continue;
            if (found->count + stop - entry > most) return 0;
            if (!grow(found, stop - entry)) return -1;
            for (; entry < stop; entry++) {
                found->positions[found->count] = numbers[i];
                found->rows[found->count++] = rows[entry];
            }
        }
    }
    return 1;
}

/* Adds the number of entries of each probe in one index. Steps double, so a key of very many entries costs few. */
static void count_in(const Index *index, const Array *probes, int64_t *counts) {
    const int64_t *codes = index->codes.at;
    const int64_t length = index->codes.length;
    int64_t block[BLOCK], numbers[BLOCK], entries[BLOCK];
    for (int64_t next = 0; next < probes->length;) {
        int64_t size = take_block(index, probes, &next, block, numbers);
        firsts(index, block, size, entries);
        for (int64_t i = 0; i < size; i++) {
            int64_t probe = block[i], entry = entries[i];
            int64_t last = entry, step = 1; /* the last entry that is known to be the probe's */
            if (entry >= length || codes[entry] != probe) continue;
            while (step < length - last && codes[last + step] == probe) last += step, step *= 2;
            for (; step > 0; step /= 2)
                if (step < length - last && codes[last + step] == probe) last += step;
            counts[numbers[i]] += last - entry + 1;
        }
    }
}

int open_index(PyObject *tuple, Index *out) {
    PyObject *codes, *rows, *starts;
    unsigned long long least, shift;
    int opened;
    if (!PyArg_ParseTuple(tuple, "OOOKK", &codes, &rows, &starts, &least, &shift)) return -1;
    out->least = least, out->shift = shift, out->guided = starts != Py_None;
    if ((opened = open_ints(codes, &out->codes)) < 1 || (opened = open_numbers(rows, &out->rows)) < 1) return opened;
    if (out->codes.step != 1 && out->codes.length > 1) return 0;
    if (out->rows.length != out->codes.length) return 0;
    if (!out->guided) return 1;
    if (shift > 63) return 0;
    if ((opened = open_numbers(starts, &out->starts)) < 1) return opened;
    return out->starts.length >= 2 && ((const uint32_t *)out->starts.at)[out->starts.length - 1] == out->codes.length;
}

void close_index(Index *index) {
    close_array(&index->codes);
    close_array(&index->rows);
    close_array(&index->starts);
    free(index->filter);
}

PyObject *pairs_of(const Found *found, const int64_t *counts, Py_ssize_t count) {
    PyObject *positions = PyByteArray_FromStringAndSize((const char *)found->positions, found->count * 8);
    PyObject *rows = PyByteArray_FromStringAndSize((const char *)found->rows, found->count * 4);
    PyObject *list = PyList_New(count), *result = NULL;
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(counts[i]);
        if (number == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SetItem(list, i, number);
        }
    }
    if (positions != NULL && rows != NULL && list != NULL) result = PyTuple_Pack(3, positions, rows, list);
    Py_XDECREF(positions);
    Py_XDECREF(rows);
    Py_XDECREF(list);
    return result;
}

/* Opens the probes and the indexes of a list; `opened` says how many there are to close. An index of fewer codes than
   there are probes has a filter for them. */
static int open_all(PyObject *given, PyObject *list, Array *probes, Index *indexes, Py_ssize_t *opened) {
    Py_ssize_t count = PyList_Size(list);
    int going = open_ints(given, probes);
    while (going == 1 && *opened < count) {
        Index *index = &indexes[*opened];
        going = open_index(PyList_GetItem(list, *opened), index);
        (*opened)++;
        if (going == 1 && index->codes.length < probes->length && !make_filter(index)) PyErr_NoMemory(), going = -1;
    }
    return going;
}

static void close_all(Array *probes, Index *indexes, Py_ssize_t opened) {
    for (Py_ssize_t i = 0; i < opened; i++) close_index(&indexes[i]);
    close_array(probes);
    PyMem_Free(indexes);
}

PyObject *py_find(PyObject *self, PyObject *args) {
    PyObject *given, *list, *result = NULL;
    Py_ssize_t most, count, opened_indexes = 0;
    Array probes = {0};
    Found found = {0};
    Index *indexes = NULL;
    int64_t *counts = NULL;
    int going;
    if (!PyArg_ParseTuple(args, "OOn", &given, &list, &most) || (count = PyList_Size(list)) < 0) return NULL;
    indexes = PyMem_Calloc(count ? count : 1, sizeof *indexes);
    counts = PyMem_Calloc(count ? count : 1, sizeof *counts);
    if (indexes == NULL || counts == NULL) {
        PyErr_NoMemory();
        going = -1;
    } else {
        going = open_all(given, list, &probes, indexes, &opened_indexes);
    }
    if (going == 1) {
        PyThreadState *paused = pause_for(probes.length * count);
        for (Py_ssize_t i = 0; going == 1 && i < count; i++) {
            int64_t before = found.count;
            if (indexes[i].codes.length) going = find_in(&indexes[i], &probes, most, &found);
            counts[i] = found.count - before;
        }
        go_on(paused);
        if (going == -1) PyErr_NoMemory();
    }
    if (going == 1) result = pairs_of(&found, counts, count);
    if (going == 0) result = Py_NewRef(Py_None);
    close_all(&probes, indexes, opened_indexes);
    free(found.positions);
    free(found.rows);
    PyMem_Free(counts);
    return result;
}

PyObject *py_count(PyObject *self, PyObject *args) {
    PyObject *given, *list, *result = NULL;
    Py_ssize_t count, opened_indexes = 0;
    Array probes = {0};
    Index *indexes;
    int going;
    if (!PyArg_ParseTuple(args, "OO", &given, &list) || (count = PyList_Size(list)) < 0) return NULL;
    indexes = PyMem_Calloc(count ? count : 1, sizeof *indexes);
    if (indexes == NULL) return PyErr_NoMemory();
    going = open_all(given, list, &probes, indexes, &opened_indexes);
    if (going == 1 && (result = PyByteArray_FromStringAndSize(NULL, probes.length * 8)) != NULL) {
        int64_t *counts = (int64_t *)PyByteArray_AsString(result);
        PyThreadState *state = probes.length * count >= LARGE_WORK ? PyEval_SaveThread() : NULL;
        memset(counts, 0, probes.length * 8);
        for (Py_ssize_t i = 0; i < count; i++) {
            if (indexes[i].codes.length) count_in(&indexes[i], &probes, counts);
        }
        if (state != NULL) PyEval_RestoreThread(state);
    }
    if (going == 0) result = Py_NewRef(Py_None);
    close_all(&probes, indexes, opened_indexes);
    return result;
}
