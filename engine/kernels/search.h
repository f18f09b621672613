/* The search in indexes, for the kernels that go on with what it finds. search.c says how it works. */

#ifndef HALFJOIN_SEARCH_H
#define HALFJOIN_SEARCH_H

#include "columns.h"

#define FILTERED_FROM 4   /* entries; fewer are searched as fast */
#define FILTERED_TO 65536 /* a filter of more is no longer in a near cache */

/* Sorted codes and the row of each; a large one has a guide. `filter`, if there is one: a bit for each hash of a code, so
   that a probe which is not there costs no search; of a hash that many bits are shifted out. */
typedef struct {
    Array codes, rows, starts;
    uint64_t least, shift;
    int guided;
    uint64_t *filter;
    int spread;
} Index;

/* Pairs of a position among the probes and a row. */
typedef struct {
    int64_t *positions;
    uint32_t *rows;
    int64_t count, space;
} Found;

int open_index(PyObject *tuple, Index *out); /* as the functions of columns.h */
void close_index(Index *index);
int make_filter(Index *index); /* 0: no memory, without an exception */

/* Adds all pairs of one index. 1; 0: there are more than `most`; -1: no memory, without an exception. */
int find_in(const Index *index, const Array *probes, int64_t most, Found *found);

/* The pairs, and how many each of `count` indexes has: (positions, rows, counts). */
PyObject *pairs_of(const Found *found, const int64_t *counts, Py_ssize_t count);

#endif
