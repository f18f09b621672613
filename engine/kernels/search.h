/* The search in indexes, for the kernels that go on with what it finds. search.c says how it works. */

#ifndef HALFJOIN_SEARCH_H
#define HALFJOIN_SEARCH_H

#include "columns.h"

/* Sorted codes and the row of each; a large one has a guide. */
typedef struct {
    Array codes, rows, starts;
    uint64_t least, shift;
    int guided;
} Index;

/* Pairs of a position among the probes and a row. */
typedef struct {
    int64_t *positions;
    uint32_t *rows;
    int64_t count, space;
} Found;

int open_index(PyObject *tuple, Index *out); /* as the functions of columns.h */
void close_index(Index *index);

/* Adds all pairs of one index. 1; 0: there are more than `most`; -1: no memory, without an exception. */
int find_in(const Index *index, const Array *probes, int64_t most, Found *found);

/* The pairs, and how many each of `count` indexes has: (positions, rows, counts). */
PyObject *pairs_of(const Found *found, const int64_t *counts, Py_ssize_t count);

#endif
