/* Where values end: the least and the greatest of integers, and whether all values of columns are such as SQL has. */

#include "columns.h"

#include <math.h>

/* (least, greatest) of at least one int64; or None. */
PyObject *py_bounds(PyObject *self, PyObject *values) {
    Array array = {0};
    int64_t least, most;
    int going = open_ints(values, &array);
    if (going == 1 && array.length == 0) going = 0;
    if (going < 1) {
        close_array(&array);
        return going < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyThreadState *paused = pause_for(array.length);
    least = most = int_at(&array, 0);
    for (int64_t i = array.step ? 1 : array.length; i < array.length; i++) {
        int64_t value = int_at(&array, i);
        if (value < least) least = value;
        if (value > most) most = value;
    }
    go_on(paused);
    close_array(&array);
    return Py_BuildValue("LL", (long long)least, (long long)most);
}

/* Whether texts are all of ASCII, without NUL. What lies between two texts counts, too. */
static int are_ascii(const Column *column) {
    const uint8_t *from, *to;
    uint8_t high = 0;
    int zero = 0;
    if (column->kind != TEXT) return 0;
    if (column->length == 0) return 1;
    text_at(column, 0, &from);
    to = from + (((const int32_t *)column->offsets)[column->offset + column->length] -
                 ((const int32_t *)column->offsets)[column->offset]);
    for (; from < to; from++) high |= *from, zero |= *from == 0;
    return high < 0x80 && !zero;
}

static int are_between(const Column *column, int64_t low, int64_t high) {
    if (column->kind != INTEGER) return 0;
    for (int64_t i = 0; i < column->length; i++) {
        int64_t value = integer_at(column, i);
        if (is_valid(column, i) && (value < low || value > high)) return 0;
    }
    return 1;
}

/* Whether decimals have at most so many digits. Under a NULL anything may lie. */
static int have_digits(const Column *column, int64_t digits) {
    __int128 end = 1;
    if (column->kind != WORDS || column->width != 16 || column->format[0] != 'd' || digits > 38) return 0;
    while (digits-- > 0) end *= 10;
    for (int64_t i = 0; i < column->length; i++) {
        __int128 value = decimal_at(column, i);
        if ((value <= -end || value >= end) && is_valid(column, i)) return 0;
    }
    return 1;
}

/* Whether no float is -0, which is stored as 0. */
static int are_stored(const Column *column) {
    for (int64_t i = 0; i < column->length; i++) {
        double value = float_at(column, i);
        if (value == 0 && signbit(value) && is_valid(column, i)) return 0;
    }
    return 1;
}

static int is_sound(const Column *column, int64_t low, int64_t high) {
    if (column->kind == TEXT) return are_ascii(column);
    if (column->kind == FLOATING) return are_stored(column);
    return column->kind == WORDS ? have_digits(column, high) : are_between(column, low, high);
}

/* Whether each column plainly has sound values: texts of ASCII, floats other than -0, integers between bounds, or decimals
   with no more digits than the second bound; True or False. */
PyObject *py_sound(PyObject *self, PyObject *args) {
    PyObject *list, *bounds;
    Columns columns = {0};
    int64_t work = 0;
    int going, sound = 1;
    if (!PyArg_ParseTuple(args, "OO", &list, &bounds)) return NULL;
    if ((going = open_columns(list, &columns)) < 1) goto done;
    for (Py_ssize_t c = 0; c < columns.count; c++) work += columns.at[c].length;
    int64_t *ends = PyMem_Malloc((2 * columns.count + 1) * sizeof *ends);
    if (ends == NULL) {
        PyErr_NoMemory();
        going = -1;
        goto done;
    }
    for (Py_ssize_t c = 0; c < columns.count && going == 1; c++) {
        PyObject *pair = PyList_GetItem(bounds, c);
        long long low = 0, high = -1;
        if (pair == NULL || !PyArg_ParseTuple(pair, "LL", &low, &high)) going = -1;
        ends[2 * c] = low, ends[2 * c + 1] = high;
    }
    PyThreadState *paused = pause_for(work);
    for (Py_ssize_t c = 0; c < columns.count && going == 1 && sound; c++)
        sound = is_sound(&columns.at[c], ends[2 * c], ends[2 * c + 1]);
    go_on(paused);
    PyMem_Free(ends);
done:
    close_columns(&columns);
    return going < 0 ? NULL : PyBool_FromLong(going == 1 && sound);
}
