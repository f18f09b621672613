/* Builds indexes: sorts codes, merges sorted ones, and makes the guide of a large one. */

#include "indexes.h"

#define DIGIT 11 /* bits; the counts of so many values stay in the nearest memory */
#define LOOSE 3  /* so many more bits than entries have tell most codes apart */
#define MOVES 4  /* for each entry; more mean that the first bits of codes tell little */

/* Puts entries in order, if few are far from their place. 0: they are not; equal codes are still in their order. */
static int insert_all(Entry *entries, int64_t length, int64_t most) {
    for (int64_t i = 1; i < length; i++) {
        Entry moving = entries[i];
        int64_t j = i;
        for (; j > 0 && entries[j - 1].code > moving.code; j--) entries[j] = entries[j - 1];
        entries[j] = moving;
        if ((most -= i - j) < 0) return 0;
    }
    return 1;
}

/* LSD radix sort by the bits of `code - least` from `low` on, before `high`. A digit that all codes share costs no pass. */
static Entry *sort_by(Entry *one, Entry *other, int64_t length, int64_t least, int low, int high) {
    int passes = (high - low + DIGIT - 1) / DIGIT;
    for (int pass = 0; pass < passes; pass++) {
        int shift = low + (high - low) * pass / passes, end = low + (high - low) * (pass + 1) / passes;
        uint64_t mask = (UINT64_C(1) << (end - shift)) - 1, base = (uint64_t)least;
        int64_t places[1 << DIGIT] = {0}, before = 0;
        Entry *sorted = other;
        for (int64_t i = 0; i < length; i++) places[((uint64_t)one[i].code - base) >> shift & mask]++;
        if (places[((uint64_t)one[0].code - base) >> shift & mask] == length) continue;
        for (uint64_t digit = 0; digit <= mask; digit++) {
            int64_t count = places[digit];
            places[digit] = before, before += count;
        }
        for (int64_t i = 0; i < length; i++) sorted[places[((uint64_t)one[i].code - base) >> shift & mask]++] = one[i];
        other = one, one = sorted;
    }
    return one;
}

Entry *sort_entries(Entry *one, Entry *other, int64_t length) {
    int64_t least = INT64_MAX, greatest = INT64_MIN;
    int bits, loose = LOOSE;
    if (length <= 48) {
        insert_all(one, length, INT64_MAX);
        return one;
    }
    for (int64_t i = 0; i < length; i++) {
        least = one[i].code < least ? one[i].code : least;
        greatest = one[i].code > greatest ? one[i].code : greatest;
    }
    if (least == greatest) return one;
    bits = 64 - __builtin_clzll((uint64_t)greatest - (uint64_t)least);
    for (int64_t rest = length; rest; rest >>= 1) loose++;
    if (bits > loose + DIGIT) { /* hashes: their first bits put them nearly in order */
        Entry *near = sort_by(one, other, length, least, bits - loose, bits);
        if (insert_all(near, length, MOVES * length)) return near;
        other = near == one ? other : one, one = near;
    }
    return sort_by(one, other, length, least, 0, bits);
}

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
    Entry *entries = NULL;
    int going;
    if (!PyArg_ParseTuple(args, "O", &given)) return NULL;
    going = open_ints(given, &codes);
    if (going == 1) going = codes.length < UINT32_MAX;
    if (going == 1 && (entries = malloc((2 * codes.length + 1) * sizeof *entries)) == NULL) {
        PyErr_NoMemory();
        going = -1;
    }
    if (going == 1) {
        PyThreadState *paused = pause_for(codes.length);
        Entry *found;
        for (int64_t i = 0; i < codes.length; i++) entries[i] = (Entry){int_at(&codes, i), (uint32_t)i};
        found = sort_entries(entries, entries + codes.length, codes.length);
        go_on(paused);
        result = columns_of(found, codes.length);
    }
    if (going == 0) result = Py_NewRef(Py_None);
    free(entries);
    close_array(&codes);
    return result;
}

#define BLOCK 1024 /* rows */

static inline uint64_t place_of(int64_t code, int bits) { return mixed((uint64_t)code) >> (64 - bits); }

/* The sorted entries of the rows whose code is among some codes, and of a few more: a bit for each of the codes tells,
   and codes may share one. Their `count` is -1 if they are more than `most`. */
static Entry *entries_among(const Columns *keys, int64_t length, const Array *among, int64_t most, int64_t *count) {
    int bits = 12, near;
    int64_t least = INT64_MAX, greatest = INT64_MIN;
    while (bits < 40 && INT64_C(1) << bits < 16 * among->length) bits++;
    for (int64_t i = 0; i < among->length; i++) {
        int64_t code = int_at(among, i);
        least = code < least ? code : least, greatest = code > greatest ? code : greatest;
    }
    near = least <= greatest && (uint64_t)greatest - (uint64_t)least < UINT64_C(1) << bits; /* then no two share a bit */
    uint8_t *there = calloc(INT64_C(1) << (bits - 3), 1);
    Columns part = {malloc(keys->count * sizeof *keys->at), keys->count};
    int64_t codes[BLOCK], found = 0, room = BLOCK;
    Entry *entries = malloc((2 * room + 1) * sizeof *entries);
    int going = there != NULL && part.at != NULL && entries != NULL;
    *count = 0;
    PyThreadState *paused = pause_for(length);
    for (int64_t i = 0; going && i < among->length; i++) {
        int64_t code = int_at(among, i);
        uint64_t place = near ? (uint64_t)code - (uint64_t)least : place_of(code, bits);
        there[place >> 3] |= (uint8_t)(1 << (place & 7));
    }
    for (int64_t from = 0, size; going && found <= most && from < length; from += size) {
        size = length - from < BLOCK ? length - from : BLOCK;
        if (found + size > room) { /* half of what is allocated is room to sort */
            Entry *more = realloc(entries, (4 * room + 1) * sizeof *entries);
            if (more == NULL) going = 0;
            else entries = more, room *= 2;
        }
        if (!going) break;
        memcpy(part.at, keys->at, keys->count * sizeof *keys->at);
        for (Py_ssize_t c = 0; c < part.count; c++) part.at[c].offset += from, part.at[c].length = size;
        codes_of(&part, size, codes);
        int64_t low = INT64_MAX, high = INT64_MIN; /* rows often come in the order of a date or a number */
        for (int64_t i = 0; i < size; i++) low = codes[i] < low ? codes[i] : low, high = codes[i] > high ? codes[i] : high;
        if (high < least || low > greatest) continue;
        for (int64_t i = 0; near && i < size; i++) {
            uint64_t place = (uint64_t)codes[i] - (uint64_t)least;
            entries[found] = (Entry){codes[i], (uint32_t)(from + i)};
            found += place >> bits == 0 && (there[place >> 3] >> (place & 7) & 1);
        }
        for (int64_t i = 0; !near && i < size; i++) {
            uint64_t place = place_of(codes[i], bits);
            entries[found] = (Entry){codes[i], (uint32_t)(from + i)};
            found += there[place >> 3] >> (place & 7) & 1;
        }
    }
    if (going && found > most) *count = -1;
    else if (going) {
        *count = found;
        Entry *sorted = sort_entries(entries, entries + found, found);
        if (sorted != entries) memcpy(entries, sorted, found * sizeof *entries);
    }
    go_on(paused);
    if (!going) PyErr_NoMemory();
    free(there);
    free(part.at);
    if (!going || *count < 0) {
        free(entries);
        return NULL;
    }
    return entries;
}

/* The index of rows by their keys: codes in order, and the row of each. */
PyObject *py_indexed(PyObject *self, PyObject *args) {
    PyObject *list, *asked, *result = NULL;
    Py_ssize_t length, most;
    Columns keys = {0};
    Array among = {0};
    Entry *entries = NULL;
    int64_t count;
    int going;
    if (!PyArg_ParseTuple(args, "OnOn", &list, &length, &asked, &most)) return NULL;
    going = open_columns(list, &keys);
    if (going == 1 && asked != Py_None) going = open_ints(asked, &among);
    if (going == 1) going = length >= 0 && length < UINT32_MAX && keys.count > 0;
    for (Py_ssize_t c = 0; going == 1 && c < keys.count; c++) going = keys.at[c].length == length;
    if (going == 1) {
        count = length;
        entries = among.open ? entries_among(&keys, length, &among, most, &count) : entries_of(&keys, length);
        if (count < 0) going = 0;
        if (entries != NULL) result = columns_of(entries, count);
    }
    if (going == 0) result = Py_NewRef(Py_None);
    free(entries);
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
