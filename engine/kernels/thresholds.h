/* Comparisons of columns with constants, as `engine.scalar.threshold` has them. */

#ifndef HALFJOIN_THRESHOLDS_H
#define HALFJOIN_THRESHOLDS_H

#include "columns.h"

#define MOST_THRESHOLDS 16

typedef struct {
    Columns constants; /* of one value each */
    int allowed[MOST_THRESHOLDS];
} Thresholds;

int open_thresholds(PyObject *constants, PyObject *allowed, Thresholds *out); /* as the functions of columns.h */
void close_thresholds(Thresholds *thresholds);

/* Whether these columns can be compared with the constants here. */
int are_ordered(const Columns *tested, const Thresholds *thresholds);

/* Whether a row of the tested columns meets all of them. NULL meets none. */
static inline int meets(const Columns *tested, const Thresholds *thresholds, int64_t row) {
    for (Py_ssize_t c = 0; c < thresholds->constants.count; c++) {
        const Column *column = &tested->at[c], *constant = &thresholds->constants.at[c];
        if (!is_valid(column, row) || !is_valid(constant, 0)) return 0;
        if (!(thresholds->allowed[c] >> (order_of(column, row, constant) + 1) & 1)) return 0;
    }
    return 1;
}

#endif
