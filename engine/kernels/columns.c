/* Opens Arrow columns and NumPy arrays, and compares and hashes values.

   Equal means here what it means in `engine.updates.codes`: NULL equals NULL, NaN equals NaN, -0 equals 0. The hashes
   are exactly those of `codes` there, since indexes in files and in Spark's tasks are made of them. */

#include "columns.h"

#define NULL_HASH UINT64_C(0x9AE16A3B2F90404F)
#define BASE UINT64_C(0x9E3779B97F4A7C15)

/* The kind and width of a format of Arrow; 0 if it is none of ours. */
static int understand(const char *format, Column *out) {
    static const char letters[] = "cCsSiIlL";
    static const int widths[] = {1, 1, 2, 2, 4, 4, 8, 8};
    const char *found;
    out->width = 0;
    if (format[0] != '\0' && format[1] == '\0') {
        if ((found = strchr(letters, format[0])) != NULL) {
            out->kind = INTEGER, out->width = widths[found - letters];
            return 1;
        }
        switch (format[0]) {
        case 'b': out->kind = BITS; return 1;
        case 'f': out->kind = FLOATING, out->width = 4; return 1;
        case 'g': out->kind = FLOATING, out->width = 8; return 1;
        case 'u': case 'z': out->kind = TEXT; return 1;
        case 'U': case 'Z': out->kind = LARGE_TEXT; return 1;
        }
        return 0;
    }
    if (format[0] == 'd' && format[1] == ':') { /* d:precision,scale or d:precision,scale,bits */
        const char *comma = strchr(format, ',');
        const char *bits = comma == NULL ? NULL : strchr(comma + 1, ',');
        out->kind = WORDS, out->width = bits == NULL ? 16 : atoi(bits + 1) / 8;
        return out->width == 16 || out->width == 32;
    }
    if (format[0] != 't') return 0;
    out->kind = INTEGER;
    switch (format[1]) {
    case 'd': out->width = format[2] == 'D' ? 4 : 8; return 1;                     /* dates of days, of milliseconds */
    case 't': out->width = format[2] == 's' || format[2] == 'm' ? 4 : 8; return 1; /* times */
    case 's': case 'D': out->width = 8; return 1;                                  /* timestamps, durations */
    case 'i': out->kind = WORDS, out->width = 16; return format[2] == 'n';         /* intervals */
    }
    return 0;
}

static int open_column(PyObject *array, Column *out) {
    const struct ArrowSchema *schema;
    const struct ArrowArray *data;
    out->held = PyObject_CallMethod(array, "__arrow_c_array__", NULL);
    if (out->held == NULL) return -1;
    if (!PyTuple_Check(out->held) || PyTuple_Size(out->held) != 2) {
        PyErr_SetString(PyExc_TypeError, "not an Arrow array");
        return -1;
    }
    schema = PyCapsule_GetPointer(PyTuple_GetItem(out->held, 0), "arrow_schema");
    data = PyCapsule_GetPointer(PyTuple_GetItem(out->held, 1), "arrow_array");
    if (schema == NULL || data == NULL) return -1;
    if (schema->dictionary != NULL || schema->metadata != NULL || !understand(schema->format, out)) return 0;
    out->format = schema->format, out->length = data->length, out->offset = data->offset;
    out->valid = data->null_count == 0 ? NULL : data->buffers[0];
    if (out->kind == TEXT || out->kind == LARGE_TEXT) {
        out->offsets = data->buffers[1], out->data = data->buffers[2];
        if (out->offsets == NULL && out->length) return 0;
    } else {
        out->data = data->buffers[1];
        if (out->data == NULL && out->length) return 0;
    }
    return 1;
}

int open_columns(PyObject *list, Columns *out) {
    Py_ssize_t count = PyList_Size(list);
    if (count < 0) return -1;
    out->at = PyMem_Calloc(count ? count : 1, sizeof(Column));
    if (out->at == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (out->count = 0; out->count < count;) {
        int opened = open_column(PyList_GetItem(list, out->count), &out->at[out->count]);
        out->count++;
        if (opened < 1) return opened;
    }
    return 1;
}

void close_columns(Columns *columns) {
    if (columns->at == NULL) return;
    for (Py_ssize_t i = 0; i < columns->count; i++) Py_XDECREF(columns->at[i].held);
    PyMem_Free(columns->at);
    columns->at = NULL;
}

static int open_array(PyObject *object, Array *out, Py_ssize_t size, const char *formats) {
    if (PyObject_GetBuffer(object, &out->buffer, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) return -1;
    out->open = 1;
    if (out->buffer.ndim != 1 || out->buffer.itemsize != size || strchr(formats, out->buffer.format[0]) == NULL) return 0;
    out->at = out->buffer.buf, out->length = out->buffer.shape[0];
    out->step = out->buffer.strides[0] / size;
    return out->buffer.strides[0] % size == 0;
}

int open_ints(PyObject *object, Array *out) { return open_array(object, out, 8, "lq"); }

int open_numbers(PyObject *object, Array *out) {
    int opened = open_array(object, out, 4, "I");
    return opened == 1 ? out->step == 1 || out->length < 2 : opened;
}

int open_flags(PyObject *object, Array *out) {
    int opened = open_array(object, out, 1, "?");
    return opened == 1 ? out->step == 1 || out->length < 2 : opened;
}

void close_array(Array *array) {
    if (array->open) PyBuffer_Release(&array->buffer);
    array->open = 0;
}

/* Whether values of the two columns can be compared: they have one type, or are integers of any widths. */
int comparable(const Column *one, const Column *other) {
    if (strcmp(one->format, other->format) == 0) return 1;
    return one->kind == INTEGER && other->kind == INTEGER && strlen(one->format) == 1 && strlen(other->format) == 1 &&
           strchr("csil", one->format[0]) != NULL && strchr("csil", other->format[0]) != NULL;
}

int is_ordered(const Column *column, const Column *constant) {
    switch (column->kind) {
    case INTEGER:
        if (strchr("CSIL", column->format[0]) != NULL) return 0;
        break;
    case WORDS:
        if (column->format[0] != 'd' || column->width != 16) return 0;
        break;
    case BITS: return 0;
    default: break;
    }
    return strcmp(column->format, constant->format) == 0;
}

int order_of(const Column *column, int64_t row, const Column *constant) {
    const uint8_t *left, *right;
    int64_t size, other, common;
    int order;
    switch (column->kind) {
    case INTEGER: {
        int64_t value = integer_at(column, row), limit = integer_at(constant, 0);
        return (value > limit) - (value < limit);
    }
    case WORDS: {
        __int128 value = decimal_at(column, row), limit = decimal_at(constant, 0);
        return (value > limit) - (value < limit);
    }
    case FLOATING: {
        double value = float_at(column, row), limit = float_at(constant, 0);
        if (value != value) return limit == limit;
        return limit != limit ? -1 : (value > limit) - (value < limit);
    }
    default: break;
    }
    size = text_at(column, row, &left), other = text_at(constant, 0, &right);
    common = size < other ? size : other;
    order = common ? memcmp(left, right, common) : 0;
    return order ? (order > 0) - (order < 0) : (size > other) - (size < other);
}

int equal_values(const Column *one, int64_t i, const Column *other, int64_t j) {
    int here = is_valid(one, i);
    if (here != is_valid(other, j)) return 0;
    if (!here) return 1;
    switch (one->kind) {
    case BITS: return bit_at(one, i) == bit_at(other, j);
    case INTEGER: return integer_at(one, i) == integer_at(other, j);
    case FLOATING: {
        double left = float_at(one, i), right = float_at(other, j);
        return left == right || (left != left && right != right);
    }
    case WORDS:
        return memcmp(one->data + (i + one->offset) * one->width, other->data + (j + other->offset) * other->width,
                      one->width) == 0;
    default: {
        const uint8_t *left, *right;
        int64_t size = text_at(one, i, &left);
        return size == text_at(other, j, &right) && (size == 0 || memcmp(left, right, size) == 0);
    }
    }
}

static inline uint64_t hash_of(const Column *column, int64_t i) {
    switch (column->kind) {
    case BITS: return mixed(is_valid(column, i) ? (uint64_t)bit_at(column, i) : NULL_HASH);
    case INTEGER: return mixed(is_valid(column, i) ? (uint64_t)integer_at(column, i) : NULL_HASH);
    case FLOATING: {
        double value = float_at(column, i) + 0.0; /* -0 becomes 0 */
        uint64_t word;
        if (!is_valid(column, i)) return NULL_HASH;
        memcpy(&word, &value, sizeof word);
        return mixed(value != value ? UINT64_C(0x7FF8000000000000) : word);
    }
    case WORDS: {
        const uint64_t *words = (const uint64_t *)(column->data + (i + column->offset) * column->width);
        uint64_t hash;
        if (!is_valid(column, i)) return NULL_HASH;
        hash = mixed(words[0]);
        for (int word = 1; word < column->width / 8; word++) hash = mixed(hash * BASE + words[word]);
        return hash;
    }
    default: { /* the polynomial of the bytes, by Horner's rule */
        const uint8_t *text;
        int64_t size;
        uint64_t sum = 0;
        if (!is_valid(column, i)) return NULL_HASH;
        size = text_at(column, i, &text);
        for (int64_t byte = size; byte-- > 0;) sum = sum * BASE + (uint64_t)text[byte] + 1;
        return mixed(sum + (uint64_t)size);
    }
    }
}

uint64_t hash_of_row(const Columns *columns, int64_t row) {
    uint64_t hash = 0;
    for (Py_ssize_t c = 0; c < columns->count; c++) hash = mixed(hash * BASE + hash_of(&columns->at[c], row));
    return hash;
}

void hash_columns(const Columns *columns, int64_t length, uint64_t *hashes) {
    memset(hashes, 0, length * sizeof *hashes);
    for (Py_ssize_t c = 0; c < columns->count; c++) {
        const Column *column = &columns->at[c];
        if (column->kind == INTEGER && column->width == 8 && column->valid == NULL) { /* the common case */
            const uint64_t *values = (const uint64_t *)column->data + column->offset;
            for (int64_t i = 0; i < length; i++) hashes[i] = mixed(hashes[i] * BASE + mixed(values[i]));
        } else {
            for (int64_t i = 0; i < length; i++) hashes[i] = mixed(hashes[i] * BASE + hash_of(column, i));
        }
    }
}

/* The codes of rows, as `engine.updates.codes` has them: a single integer is its own code. */
void codes_of(const Columns *columns, int64_t length, int64_t *codes) {
    const Column *only = columns->at;
    if (columns->count != 1 || (only->kind != INTEGER && only->kind != BITS)) {
        hash_columns(columns, length, (uint64_t *)codes);
        return;
    }
    if (only->kind == INTEGER && only->width == 8 && only->valid == NULL) {
        memcpy(codes, (const int64_t *)only->data + only->offset, length * sizeof *codes);
        return;
    }
    if (only->kind == INTEGER && only->width == 4) { /* the kind of most keys */
        const int32_t *values = (const int32_t *)only->data + only->offset;
        for (int64_t i = 0; i < length; i++) codes[i] = values[i];
        for (int64_t i = 0; only->valid != NULL && i < length; i++)
            if (!is_valid(only, i)) codes[i] = (int64_t)NULL_HASH;
        return;
    }
    for (int64_t i = 0; i < length; i++)
        codes[i] = !is_valid(only, i) ? (int64_t)NULL_HASH : only->kind == BITS ? bit_at(only, i) : integer_at(only, i);
}

PyObject *py_codes(PyObject *self, PyObject *args) {
    PyObject *list, *result = NULL;
    Py_ssize_t length;
    Columns columns = {0};
    int opened;
    if (!PyArg_ParseTuple(args, "On", &list, &length)) return NULL;
    opened = open_columns(list, &columns);
    if (opened == 1) opened = length >= 0 && length < INT64_MAX / 8;
    for (Py_ssize_t c = 0; opened == 1 && c < columns.count; c++) opened = columns.at[c].length == length;
    if (opened == 0) result = Py_NewRef(Py_None);
    if (opened == 1 && (result = PyByteArray_FromStringAndSize(NULL, length * 8)) != NULL) {
        uint64_t *hashes = (uint64_t *)PyByteArray_AsString(result);
        PyThreadState *paused = pause_for(length);
        hash_columns(&columns, length, hashes);
        go_on(paused);
    }
    close_columns(&columns);
    return result;
}
