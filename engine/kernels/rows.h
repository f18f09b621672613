/* Row numbers of several runs: those in run 0, then those in run 1, and so on; counts say how many there are of each. */

#ifndef HALFJOIN_ROWS_H
#define HALFJOIN_ROWS_H

#include "columns.h"

typedef struct {
    Array wide, narrow; /* int64 or uint32, as given */
    int64_t length;
} Rows;

int open_rows(PyObject *object, Rows *out); /* as the functions of columns.h */
void close_rows(Rows *rows);

/* Whether rows `from` to `to` are below a length, and not negative. */
int inside(const Rows *rows, int64_t from, int64_t to, int64_t length);

/* The counts as numbers; NULL with an exception, also if they do not add up to `total`. */
int64_t *read_counts(PyObject *list, Py_ssize_t runs, int64_t total);

/* A column of Arrow, as its buffers: (validity or None, values) or (validity or None, offsets, values). `each`: the
   column of each run. None if the texts are too long for one column. */
PyObject *gather_column(const Column **each, const int64_t *counts, Py_ssize_t runs, const Rows *rows);

/* A column over the buffers that `gather_column` has made, with the type of another one. Borrowed. */
Column view_of(PyObject *buffers, const Column *like, int64_t length);

/* The columns at rows, as views of the list `made`. As the functions of columns.h. */
int gather_views(const Columns *from, const Rows *rows, Columns *out, PyObject **made);

/* The columns of runs at rows: a list with the buffers of each column, or None. */
PyObject *gather_columns(PyObject *sources, const Rows *rows, const int64_t *counts);

static inline int64_t row_at(const Rows *rows, int64_t i) {
    return rows->narrow.open ? ((const uint32_t *)rows->narrow.at)[i] : int_at(&rows->wide, i);
}

#endif
