/* One run as lookups see it: its index by a key, and the columns, times and diffs that they read, all opened. */

#ifndef HALFJOIN_SIDE_H
#define HALFJOIN_SIDE_H

#include "rows.h"
#include "search.h"

typedef struct {
    Index index;
    int exact;                     /* equal codes mean equal keys */
    Columns keys, tested, fetched; /* the keys (none: nobody compares them), what conditions read, what is gathered */
    Array time, diff, netted, nets; /* `nets`: the diffs of the ascending `netted` rows, if these are open */
    Array mask;                     /* if it is open: a byte for each row, 0 if it is nobody's partner */
} Side;

/* A capsule of the rows that a kernel has made: their index by the first `keys` of the columns, which are `like` others but
   for their buffers; the one time of all rows, and their diffs. Nothing is netted. NULL with an exception. */
PyObject *made_side(PyObject *index, PyObject *buffers, const Column *like, Py_ssize_t keys, PyObject *time, PyObject *diff);

/* The sides of a list of capsules, to be freed with PyMem_Free; NULL with an exception. */
const Side **sides_of(PyObject *list, Py_ssize_t *count);

/* How often a row counts: as netting has it, if it is netted. */
static inline int64_t weight_of(const Side *side, int64_t row) {
    int64_t low = 0, high = side->netted.open ? side->netted.length : 0;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (int_at(&side->netted, middle) < row) low = middle + 1;
        else high = middle;
    }
    if (side->netted.open && low < side->netted.length && int_at(&side->netted, low) == row)
        return int_at(&side->nets, low);
    return int_at(&side->diff, row);
}

#endif
