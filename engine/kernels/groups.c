/* Groups of equal rows: their numbers, the sums of their diffs, their moments. */

#include "table.h"

/* Opens rows of `columns` (and times, unless None), and a table for them. */
static int open_all(PyObject *list, PyObject *times, Py_ssize_t length, Columns *columns, Array *time, Table *table) {
    int going = open_columns(list, columns);
    if (going == 1 && times != Py_None) going = open_ints(times, time);
    if (going == 1) going = (!time->open || time->length == length) && length >= 0 && length < INT32_MAX;
    for (Py_ssize_t c = 0; going == 1 && c < columns->count; c++) going = columns->at[c].length == length;
    if (going == 1 && !open_table(table, length)) {
        PyErr_NoMemory();
        going = -1;
    }
    return going;
}

PyObject *py_groups(PyObject *self, PyObject *args) {
    PyObject *list, *times, *numbers = NULL, *firsts = NULL, *result = NULL;
    Py_ssize_t length;
    Columns columns = {0};
    Array time = {0};
    Table table = {0};
    int going;
    if (!PyArg_ParseTuple(args, "OOn", &list, &times, &length)) return NULL;
    going = open_all(list, times, length, &columns, &time, &table);
    if (going == 0) result = Py_NewRef(Py_None);
    if (going == 1 && (numbers = PyByteArray_FromStringAndSize(NULL, length * 8)) != NULL) {
        int64_t *number = (int64_t *)PyByteArray_AsString(numbers);
        PyThreadState *paused = pause_for(length);
        hash_rows(&table, &columns, &time, length);
        for (int64_t i = 0; i < length; i++) number[i] = group_of(&table, &columns, &time, i);
        go_on(paused);
        firsts = PyByteArray_FromStringAndSize((const char *)table.firsts, table.count * 8);
        if (firsts != NULL) result = PyTuple_Pack(2, numbers, firsts);
    }
    Py_XDECREF(numbers);
    Py_XDECREF(firsts);
    close_table(&table);
    close_array(&time);
    close_columns(&columns);
    return result;
}

/* Adds the diffs up by group, drops what is 0, and leaves the rest in order. Returns how many are left; -1: some sum on
   the way is more than an int64 holds. */
static int64_t add_up(Table *table, const Columns *columns, const Array *time, const Array *diff, int64_t *sums) {
    int64_t left = 0;
    for (int64_t i = 0; i < diff->length; i++) {
        int64_t before = table->count, group = group_of(table, columns, time, i);
        if (group == before) sums[group] = int_at(diff, i);
        else if (__builtin_add_overflow(sums[group], int_at(diff, i), &sums[group])) return -1;
    }
    for (int64_t group = 0; group < table->count; group++)
        if (sums[group] != 0) table->firsts[left] = table->firsts[group], sums[left++] = sums[group];
    return left;
}

PyObject *py_sums(PyObject *self, PyObject *args) {
    PyObject *list, *times, *diffs, *positions = NULL, *values = NULL, *result = NULL;
    Columns columns = {0};
    Array time = {0}, diff = {0};
    Table table = {0};
    int64_t *sums = NULL, left = 0;
    int going;
    if (!PyArg_ParseTuple(args, "OOO", &list, &times, &diffs)) return NULL;
    going = open_ints(diffs, &diff);
    if (going == 1) going = open_all(list, times, diff.length, &columns, &time, &table);
    if (going == 1 && (sums = malloc((diff.length ? diff.length : 1) * sizeof *sums)) == NULL) {
        PyErr_NoMemory();
        going = -1;
    }
    if (going == 1) {
        PyThreadState *paused = pause_for(diff.length);
        hash_rows(&table, &columns, &time, diff.length);
        left = add_up(&table, &columns, &time, &diff, sums);
        go_on(paused);
        if (left < 0) going = 0;
    }
    if (going == 0) result = Py_NewRef(Py_None);
    if (going == 1) {
        positions = PyByteArray_FromStringAndSize((const char *)table.firsts, left * 8);
        values = PyByteArray_FromStringAndSize((const char *)sums, left * 8);
        if (positions != NULL && values != NULL) result = PyTuple_Pack(2, positions, values);
    }
    Py_XDECREF(positions);
    Py_XDECREF(values);
    free(sums);
    close_table(&table);
    close_array(&diff);
    close_array(&time);
    close_columns(&columns);
    return result;
}

/* The moments of rows of one time (engine.reduce.law), group after group in the order of their first rows: the first row
   of each group; all rows, and where those of each group start; of each moment the group, the time, and whether it is what
   the group was. */
PyObject *py_moments(PyObject *self, PyObject *args) {
    PyObject *list, *times, *parts[6] = {NULL}, *result = NULL;
    Columns columns = {0};
    Array time = {0};
    Table table = {0};
    int64_t *number = NULL, length = 0, groups = 0;
    int going;
    if (!PyArg_ParseTuple(args, "OO", &list, &times)) return NULL;
    if ((going = open_ints(times, &time)) == 1) length = time.length;
    for (int64_t i = 1; going == 1 && time.step && i < length; i++) going = int_at(&time, i) == int_at(&time, 0);
    close_array(&time);
    if (going == 1) going = length > 0 && (going = open_all(list, Py_None, length, &columns, &time, &table)) ? going : 0;
    if (going == 1 && (number = malloc(length * sizeof *number)) == NULL) {
        PyErr_NoMemory();
        going = -1;
    }
    if (going == 1) {
        PyThreadState *paused = pause_for(length);
        hash_rows(&table, &columns, &time, length);
        for (int64_t i = 0; i < length; i++) number[i] = group_of(&table, &columns, &time, i);
        go_on(paused);
        groups = table.count;
        int64_t sizes[] = {groups * 8, length * 8, groups * 8, groups * 16, groups * 16, groups * 2};
        for (int i = 0; going == 1 && i < 6; i++)
            if ((parts[i] = PyByteArray_FromStringAndSize(NULL, sizes[i])) == NULL) going = -1;
    }
    if (going == 1) {
        int64_t *rows = (int64_t *)PyByteArray_AsString(parts[1]), *starts = (int64_t *)PyByteArray_AsString(parts[2]);
        int64_t *group = (int64_t *)PyByteArray_AsString(parts[3]), *at = (int64_t *)PyByteArray_AsString(parts[4]);
        char *was = PyByteArray_AsString(parts[5]);
        int64_t now, total = 0;
        if (open_ints(times, &time) < 1) goto done;
        now = int_at(&time, 0);
        memcpy(PyByteArray_AsString(parts[0]), table.firsts, groups * 8);
        memset(starts, 0, groups * 8);
        for (int64_t i = 0; i < length; i++) starts[number[i]]++;
        for (int64_t g = 0; g < groups; g++) {
            int64_t size = starts[g];
            starts[g] = total, total += size;
            group[2 * g] = group[2 * g + 1] = g;
            at[2 * g] = INT64_MIN, at[2 * g + 1] = now;
            was[2 * g] = 1, was[2 * g + 1] = 0;
        }
        for (int64_t i = 0; i < length; i++) rows[starts[number[i]]++] = i;
        for (int64_t g = groups - 1; g > 0; g--) starts[g] = starts[g - 1]; /* each was moved to its end */
        starts[0] = 0;
        result = PyTuple_Pack(6, parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]);
    }
    if (going == 0) result = Py_NewRef(Py_None);
done:
    for (int i = 0; i < 6; i++) Py_XDECREF(parts[i]);
    free(number);
    close_table(&table);
    close_array(&time);
    close_columns(&columns);
    return result;
}
