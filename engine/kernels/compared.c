/* Compares integers and decimals of 128 bits that have different digits after the point, exactly. */

#include "columns.h"

typedef __int128 Wide;

static int is_number(const Column *column, int64_t length) {
    int whole = column->kind == INTEGER && strlen(column->format) == 1 && strchr("csil", column->format[0]) != NULL;
    int decimal = column->kind == WORDS && column->width == 16 && column->format[0] == 'd';
    return (whole || decimal) && (column->length == length || column->length == 1);
}

static inline Wide number_at(const Column *column, int64_t i) {
    return column->kind == INTEGER ? integer_at(column, i) : decimal_at(column, i);
}

/* -1, 0 or 1. What is too large with its zeros is farther from 0 than any number of 128 bits. */
static inline int order(Wide left, Wide right, const Wide factors[2]) {
    Wide one, other;
    if (__builtin_mul_overflow(left, factors[0], &one)) return left < 0 ? -1 : 1;
    if (__builtin_mul_overflow(right, factors[1], &other)) return right < 0 ? 1 : -1;
    return one < other ? -1 : one > other;
}

static void run(int allowed, const Columns *operands, const int steps[2], const Wide factors[2], int64_t length,
                uint8_t *valid, uint8_t *bits) {
    const Column *left = &operands->at[0], *right = &operands->at[1];
    for (int64_t i = 0; i < length; i++) {
        int64_t l = i * steps[0], r = i * steps[1];
        if (valid != NULL) {
            if (!is_valid(left, l) || !is_valid(right, r)) continue;
            valid[i >> 3] |= 1 << (i & 7);
        }
        int found = order(number_at(left, l), number_at(right, r), factors);
        bits[i >> 3] |= (allowed >> (found + 1) & 1) << (i & 7);
    }
}

/* (validity or None, bits); or None. `allowed`: a bit for less, equal and greater. `digits`: zeros to append to the left
   or to the right operand. A column of one value stands for as many as there are rows. */
PyObject *py_compared(PyObject *self, PyObject *args) {
    PyObject *list, *bits = NULL, *validity = NULL, *result = NULL;
    Columns operands = {0};
    Py_ssize_t length;
    int allowed, digits[2], going;
    if (!PyArg_ParseTuple(args, "iOiin", &allowed, &list, &digits[0], &digits[1], &length)) return NULL;
    if ((going = open_columns(list, &operands)) < 1) goto done;
    going = operands.count == 2 && length >= 0 && is_number(&operands.at[0], length) &&
            is_number(&operands.at[1], length) && digits[0] >= 0 && digits[1] >= 0 && digits[0] + digits[1] < 39 &&
            (digits[0] == 0 || digits[1] == 0);
    if (going == 0) goto done;
    going = -1;
    const int steps[2] = {operands.at[0].length != 1, operands.at[1].length != 1};
    const Wide factors[2] = {(Wide)power_of_ten(digits[0]), (Wide)power_of_ten(digits[1])};
    if ((bits = PyBytes_FromStringAndSize(NULL, (length + 7) / 8)) == NULL) goto done;
    memset(PyBytes_AsString(bits), 0, (length + 7) / 8);
    if (operands.at[0].valid != NULL || operands.at[1].valid != NULL) {
        if ((validity = PyBytes_FromStringAndSize(NULL, (length + 7) / 8)) == NULL) goto done;
        memset(PyBytes_AsString(validity), 0, (length + 7) / 8);
    }
    PyThreadState *paused = pause_for(length);
    run(allowed, &operands, steps, factors, length, validity == NULL ? NULL : (uint8_t *)PyBytes_AsString(validity),
        (uint8_t *)PyBytes_AsString(bits));
    go_on(paused);
    result = Py_BuildValue("OO", validity == NULL ? Py_None : validity, bits);
done:
    close_columns(&operands);
    Py_XDECREF(bits);
    Py_XDECREF(validity);
    return going == 0 ? Py_NewRef(Py_None) : result;
}
