/* Opens comparisons of columns with constants. */

#include "thresholds.h"

int open_thresholds(PyObject *constants, PyObject *allowed, Thresholds *out) {
    int going = open_columns(constants, &out->constants);
    Py_ssize_t count = PyTuple_Size(allowed);
    if (going < 1 || count < 0) return going < 1 ? going : -1;
    if (out->constants.count != count || count > MOST_THRESHOLDS) return 0;
    for (Py_ssize_t c = 0; c < count; c++) {
        long number = PyLong_AsLong(PyTuple_GetItem(allowed, c));
        if (number == -1 && PyErr_Occurred()) return -1;
        if (out->constants.at[c].length != 1) return 0;
        out->allowed[c] = (int)number;
    }
    return 1;
}

void close_thresholds(Thresholds *thresholds) { close_columns(&thresholds->constants); }

int are_ordered(const Columns *tested, const Thresholds *thresholds) {
    if (tested->count != thresholds->constants.count) return 0;
    for (Py_ssize_t c = 0; c < tested->count; c++)
        if (!is_ordered(&tested->at[c], &thresholds->constants.at[c])) return 0;
    return 1;
}
