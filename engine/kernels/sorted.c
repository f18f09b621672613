/* Sorts the codes of an index. */

#include "indexes.h"

#define DIGIT 11 /* bits; the counts of so many values stay in the nearest memory */
#define LOOSE 3  /* so many more bits than entries have tell most codes apart */

/* Puts entries in order by so many moves at `most`. 0: they need more; equal codes are still in their order. */
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
        if (insert_all(near, length, length)) return near;
        other = near == one ? other : one, one = near;
    }
    return sort_by(one, other, length, least, 0, bits);
}

/* Whether codes are in order; and the ends of codes, and the greatest row. */
typedef struct {
    int64_t least, greatest;
    uint32_t last;
    int ordered;
} Ends;

static Ends ends_of(const int64_t *codes, const uint32_t *rows, int64_t length) {
    Ends ends = {INT64_MAX, INT64_MIN, 0, 1};
    for (int64_t i = 0; i < length; i++) {
        ends.least = codes[i] < ends.least ? codes[i] : ends.least;
        ends.greatest = codes[i] > ends.greatest ? codes[i] : ends.greatest;
        ends.ordered &= i == 0 || codes[i] >= codes[i - 1];
    }
    for (int64_t i = 0; rows != NULL && i < length; i++) ends.last = rows[i] > ends.last ? rows[i] : ends.last;
    if (rows == NULL) ends.last = (uint32_t)(length ? length - 1 : 0);
    return ends;
}

static int bits_of(uint64_t number) { return number ? 64 - __builtin_clzll(number) : 0; }

/* Sorts codes that are near each other, each as one word with its row. 0: there is no memory. */
static int sort_near(const int64_t *codes, const uint32_t *rows, int64_t length, const Ends *ends, int64_t *code,
                     uint32_t *row) {
    const int size = bits_of(ends->last), bits = bits_of((uint64_t)ends->greatest - (uint64_t)ends->least);
    uint64_t *words = malloc((2 * length + 1) * sizeof *words), *found, mask = (UINT64_C(1) << size) - 1;
    if (words == NULL) return 0;
    for (int64_t i = 0; i < length; i++)
        words[i] = ((uint64_t)codes[i] - (uint64_t)ends->least) << size | (rows == NULL ? (uint64_t)i : rows[i]);
    found = sort_words(words, words + length, length, size, size + bits);
    for (int64_t i = 0; i < length; i++) {
        code[i] = (int64_t)((found[i] >> size) + (uint64_t)ends->least);
        row[i] = (uint32_t)(found[i] & mask);
    }
    free(words);
    return 1;
}

/* Sorts codes that are far from each other, such as hashes. 0: there is no memory. */
static int sort_far(const int64_t *codes, const uint32_t *rows, int64_t length, int64_t *code, uint32_t *row) {
    Entry *entries = malloc((2 * length + 1) * sizeof *entries), *found;
    if (entries == NULL) return 0;
    for (int64_t i = 0; i < length; i++) entries[i] = (Entry){codes[i], rows == NULL ? (uint32_t)i : rows[i]};
    found = sort_entries(entries, entries + length, length);
    for (int64_t i = 0; i < length; i++) code[i] = found[i].code, row[i] = found[i].row;
    free(entries);
    return 1;
}

PyObject *sorted_columns(const int64_t *codes, const uint32_t *rows, int64_t length) {
    PyObject *made = PyByteArray_FromStringAndSize(NULL, length * 8), *result = NULL;
    PyObject *numbers = PyByteArray_FromStringAndSize(NULL, length * 4);
    if (made != NULL && numbers != NULL) {
        int64_t *code = (int64_t *)PyByteArray_AsString(made);
        uint32_t *row = (uint32_t *)PyByteArray_AsString(numbers);
        PyThreadState *paused = pause_for(length);
        Ends ends = ends_of(codes, rows, length);
        int going = 1;
        if (ends.ordered) {
            if (length) memcpy(code, codes, length * sizeof *code);
            for (int64_t i = 0; i < length; i++) row[i] = rows == NULL ? (uint32_t)i : rows[i];
        } else if (bits_of((uint64_t)ends.greatest - (uint64_t)ends.least) + bits_of(ends.last) < 64) {
            going = sort_near(codes, rows, length, &ends, code, row);
        } else {
            going = sort_far(codes, rows, length, code, row);
        }
        go_on(paused);
        if (going) result = PyTuple_Pack(2, made, numbers);
        else PyErr_NoMemory();
    }
    Py_XDECREF(made);
    Py_XDECREF(numbers);
    return result;
}
