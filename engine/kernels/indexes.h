/* Entries of an index, for the kernels that make one on their way. */

#ifndef HALFJOIN_INDEXES_H
#define HALFJOIN_INDEXES_H

#include "columns.h"

typedef struct {
    int64_t code;
    uint32_t row;
} Entry;

/* Sorts entries by code; equal codes stay in order. The result is in `one` or in `other`. */
Entry *sort_entries(Entry *one, Entry *other, int64_t length);

/* LSD radix sort of words by the bits from `low` on, before `high`. What ties stays in its order. The sorted words are in
   the one that it gives. */
uint64_t *sort_words(uint64_t *one, uint64_t *other, int64_t length, int low, int high);

/* Two bytearrays: codes in order, and the row of each. `rows`: of the codes as they are given; NULL: they are numbered.
   NULL with an exception. */
PyObject *sorted_columns(const int64_t *codes, const uint32_t *rows, int64_t length);

/* The sorted entries of rows by their keys, to be freed with free; NULL with an exception. */
Entry *entries_of(const Columns *keys, int64_t length);

/* Two bytearrays: the codes, and the rows. */
PyObject *columns_of(const Entry *entries, int64_t length);

#endif
