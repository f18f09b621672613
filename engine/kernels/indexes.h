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

/* The sorted entries of rows by their keys, to be freed with free; NULL with an exception. */
Entry *entries_of(const Columns *keys, int64_t length);

/* Two bytearrays: the codes, and the rows. */
PyObject *columns_of(const Entry *entries, int64_t length);

#endif
