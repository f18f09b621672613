/* Puts rows in the order of words, as `engine.updates.radix` does. */

#include "indexes.h"

#define MOST_WORDS 64 /* of a row */
#define DIGIT 11 /* bits; the counts of so many values stay in the cache of one core */

uint64_t *sort_words(uint64_t *one, uint64_t *other, int64_t length, int low, int high) {
    int passes = (high - low + DIGIT - 1) / DIGIT;
    for (int pass = 0; pass < passes; pass++) {
        int shift = low + (high - low) * pass / passes, end = low + (high - low) * (pass + 1) / passes;
        uint64_t mask = (UINT64_C(1) << (end - shift)) - 1, *sorted = other;
        int64_t places[1 << DIGIT] = {0}, before = 0;
        for (int64_t i = 0; i < length; i++) places[one[i] >> shift & mask]++;
        if (places[one[0] >> shift & mask] == length) continue;
        for (uint64_t digit = 0; digit <= mask; digit++) {
            int64_t count = places[digit];
            places[digit] = before, before += count;
        }
        for (int64_t i = 0; i < length; i++) sorted[places[one[i] >> shift & mask]++] = one[i];
        other = one, one = sorted;
    }
    return one;
}

typedef struct {
    const Array *numbers;
    int shift, at;
    uint64_t mask;
} Piece;

/* The positions of rows in the order of words, the first word first: one pass over the rows for as many bits of the last
   words as fit beside a position, then for those before. */
static void order_rows(const Array *words, const int *bits, int last, int64_t length, uint64_t *one, uint64_t *other,
                       int64_t *positions) {
    int size = 64 - __builtin_clzll((uint64_t)length), done = 0, first = 1;
    uint64_t place = (UINT64_C(1) << size) - 1;
    while (last >= 0) {
        Piece pieces[64];
        int count = 0, used = 0;
        while (last >= 0 && used < 64 - size) {
            int taken = bits[last] - done < 64 - size - used ? bits[last] - done : 64 - size - used;
            if (taken > 0) pieces[count++] = (Piece){&words[last], done, size + used, ~UINT64_C(0) >> (64 - taken)};
            used += taken, done += taken;
            if (done >= bits[last]) last--, done = 0;
        }
        if (used == 0) break;
        for (int64_t i = 0; i < length; i++) {
            int64_t row = first ? i : positions[i];
            uint64_t number = (uint64_t)i;
            for (int k = 0; k < count; k++)
                number |= ((uint64_t)int_at(pieces[k].numbers, row) >> pieces[k].shift & pieces[k].mask) << pieces[k].at;
            one[i] = number;
        }
        uint64_t *found = sort_words(one, other, length, size, size + used);
        for (int64_t i = 0; i < length; i++) {
            uint64_t at = found[i] & place;
            found[i] = first ? at : (uint64_t)positions[at];
        }
        memcpy(positions, found, length * 8);
        first = 0;
    }
    for (int64_t i = 0; first && i < length; i++) positions[i] = i;
}

/* The positions, or None. */
PyObject *py_order(PyObject *self, PyObject *args) {
    PyObject *list, *widths, *made = NULL, *result = NULL;
    Array words[MOST_WORDS] = {{0}};
    int bits[MOST_WORDS], going = 1;
    uint64_t *memory = NULL;
    Py_ssize_t length, count;
    if (!PyArg_ParseTuple(args, "O!O!n", &PyList_Type, &list, &PyList_Type, &widths, &length)) return NULL;
    count = PyList_Size(list);
    if (count > MOST_WORDS || PyList_Size(widths) != count || length <= 0 || length > UINT32_MAX) going = 0;
    for (Py_ssize_t k = 0; going == 1 && k < count; k++) {
        bits[k] = (int)PyLong_AsLong(PyList_GetItem(widths, k));
        if (PyErr_Occurred()) going = -1;
        else if ((going = open_ints(PyList_GetItem(list, k), &words[k])) == 1)
            going = words[k].length == length && 0 <= bits[k] && bits[k] <= 64;
    }
    if (going == 1) {
        made = PyByteArray_FromStringAndSize(NULL, length * 8);
        if ((memory = malloc(2 * length * 8)) == NULL) PyErr_NoMemory();
        if (made == NULL || memory == NULL) going = -1;
    }
    if (going == 1) {
        int64_t *positions = (int64_t *)PyByteArray_AsString(made);
        PyThreadState *paused = pause_for(length);
        order_rows(words, bits, (int)count - 1, length, memory, memory + length, positions);
        go_on(paused);
        result = Py_NewRef(made);
    }
    free(memory);
    for (Py_ssize_t k = 0; k < count && k < MOST_WORDS; k++) close_array(&words[k]);
    Py_XDECREF(made);
    return going == 0 ? Py_NewRef(Py_None) : result;
}
