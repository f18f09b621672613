/* The least or the greatest value of a column, of all rows or of marked ones, where it lies. */

#include "columns.h"

typedef struct {
    const Column *column;
    const uint8_t *marks; /* a byte for each row, or NULL: all rows count */
    int greatest;
} Search;

static inline int counts(const Search *search, int64_t i) {
    return (search->marks == NULL || search->marks[i]) && is_valid(search->column, i);
}

/* Whether values of a kind are compared as numbers of 64 bits, of 128 bits, as floats, or as texts. */
static int is_known(const Column *column) {
    switch (column->kind) {
    case BITS: return 0;
    case INTEGER: return strchr("CSIL", column->format[0]) == NULL;
    case WORDS: return column->width == 16 && column->format[0] == 'd';
    default: return 1;
    }
}

/* The row whose value is ahead of all others, the first of equal ones; -1: there is none; -2: some value is NaN. `AHEAD`
   compares `value` with `best`. */
#define SEARCH(type, read, AHEAD)                                                                                      \
    type best = 0;                                                                                                     \
    for (int64_t i = 0; i < length; i++) {                                                                             \
        type value = read;                                                                                             \
        if (value != value) {                                                                                          \
            if (counts(search, i)) return -2;                                                                          \
        } else if ((found < 0 || (AHEAD)) && counts(search, i)) best = value, found = i;                               \
    }

static int64_t text_ahead(const Search *search) {
    const uint8_t *best = NULL, *text;
    int64_t size = 0, found = -1;
    for (int64_t i = 0; i < search->column->length; i++) {
        int64_t own;
        int order;
        if (!counts(search, i)) continue;
        own = text_at(search->column, i, &text);
        order = found < 0 ? 0 : memcmp(text, best, own < size ? own : size);
        if (found >= 0 && order == 0) order = (own > size) - (own < size);
        if (found < 0 || (search->greatest ? order > 0 : order < 0)) best = text, size = own, found = i;
    }
    return found;
}

static int64_t row_ahead(const Search *search) {
    const Column *column = search->column;
    const int64_t length = column->length;
    int64_t found = -1;
    if (column->kind == TEXT || column->kind == LARGE_TEXT) return text_ahead(search);
    if (column->kind == FLOATING) {
        if (search->greatest) { SEARCH(double, float_at(column, i), value > best) }
        else { SEARCH(double, float_at(column, i), value < best) }
    } else if (column->kind == WORDS) {
        if (search->greatest) { SEARCH(__int128, decimal_at(column, i), value > best) }
        else { SEARCH(__int128, decimal_at(column, i), value < best) }
    } else if (search->greatest) { SEARCH(int64_t, integer_at(column, i), value > best) }
    else { SEARCH(int64_t, integer_at(column, i), value < best) }
    return found;
}

/* extreme(column, marks, greatest): the row, -1 if there is none; or None. */
PyObject *py_extreme(PyObject *self, PyObject *args) {
    PyObject *list, *marks;
    Columns columns = {0};
    Array marked = {0};
    Search search = {0};
    int64_t found = -2;
    int going;
    if (!PyArg_ParseTuple(args, "OOp", &list, &marks, &search.greatest)) return NULL;
    if ((going = open_columns(list, &columns)) < 1) goto done;
    if (marks != Py_None && (going = open_flags(marks, &marked)) < 1) goto done;
    going = columns.count == 1 && is_known(&columns.at[0]) && (marks == Py_None || marked.length == columns.at[0].length);
    if (going == 0) goto done;
    search.column = &columns.at[0], search.marks = marked.at;
    PyThreadState *paused = pause_for(search.column->length);
    found = row_ahead(&search);
    go_on(paused);
    going = found > -2;
done:
    close_columns(&columns);
    close_array(&marked);
    if (going < 0) return NULL;
    return going == 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(found);
}
