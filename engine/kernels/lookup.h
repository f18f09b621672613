/* One half-join: a stream, and the pairs with the rows of an arrangement that it finds. */

#ifndef HALFJOIN_LOOKUP_H
#define HALFJOIN_LOOKUP_H

#include "side.h"
#include "thresholds.h"

typedef struct {
    Columns keys, kept;             /* of the stream: what is looked up, and what joined rows keep; borrowed */
    Columns tested;                 /* of the stream: a row that does not meet `first` has no partner; borrowed */
    const Thresholds *first;        /* NULL: all rows may have partners */
    Array time, diff;               /* of the stream; borrowed */
    unsigned long long null_safe;   /* a bit for each key in which NULL matches NULL */
    int certain;                    /* nobody compares keys */
    Thresholds partners;            /* what partners meet */
    const Side **sides;
    Py_ssize_t count;
    int64_t *counts;                /* the pairs of each side */
    int64_t *codes, *places;        /* of the rows that may have partners; `places` is NULL if these are all rows */
    int64_t length, entered;        /* how many these are; how many meet `first` */
    Found found;
    int64_t *weights;               /* how often the partner of each pair counts; NULL: as its side has it */
} Lookup;

void close_lookup(Lookup *lookup);

/* Finds the pairs of all sides. 1; 0: there is no fast way, or there are more than `most`; -1 with an exception. */
int find_pairs(Lookup *lookup, int64_t most);

/* Adds up partners that are equal and count at one time, where they are at least so many and many of them go: times below
   `closed` are one time. 1; 0: a sum does not fit; -1: no memory, without an exception. */
int net_pairs(Lookup *lookup, int64_t closed, int64_t least);

/* Adds up partners that are equal, at whatever times, if some of them go. As `net_pairs`. */
int cancel_pairs(Lookup *lookup);

/* Whether the joined rows have columns that can be gathered, and no more bytes of texts than `most`. */
int gatherable(const Lookup *lookup, int64_t most);

/* The joined rows: buffers, times and diffs. NULL, without an exception: there is no fast way. */
PyObject *join(const Lookup *lookup);

/* How many columns the joined rows have, and a column with the type of that number: first what the stream keeps, then
   what is fetched. */
Py_ssize_t width(const Lookup *lookup);
const Column *column_like(const Lookup *lookup, Py_ssize_t number);

/* How often the partner of pair `i` counts, which is a row of `side`. */
static inline int64_t weight_of_pair(const Lookup *lookup, const Side *side, int64_t i) {
    return lookup->weights != NULL ? lookup->weights[i] : weight_of(side, lookup->found.rows[i]);
}

#endif
