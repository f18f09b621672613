/* Sums, differences and products of decimals of 128 bits, in units of their last digits, and of integers.

   The caller knows from the types that no result has more digits than a decimal of 128 bits. Under a NULL anything may
   lie, so numbers wrap. */

#include "sums.h"

typedef unsigned __int128 Word;

static int is_operand(const Column *column, int64_t length) {
    return summable(column) && (column->length == length || column->length == 1);
}

/* Whether both operands of a row are there. A column of one value stands for as many as there are rows. */
static inline int both_valid(const Columns *operands, const int steps[2], int64_t i) {
    return is_valid(&operands->at[0], i * steps[0]) && is_valid(&operands->at[1], i * steps[1]);
}

static void run(int operator, const Columns *operands, const int steps[2], const Word factors[2], int64_t length,
                Word *out) {
    for (int64_t i = 0; i < length; i++) {
        Word left = (Word)wide_at(&operands->at[0], i * steps[0]) * factors[0];
        Word right = (Word)wide_at(&operands->at[1], i * steps[1]) * factors[1];
        Word made = operator == '+' ? left + right : operator == '-' ? left - right : left * right;
        memcpy(out + i, &made, sizeof made);
    }
}

/* (validity or None, values); or None. `digits`: zeros to append to the left and to the right operand. */
PyObject *py_arithmetic(PyObject *self, PyObject *args) {
    PyObject *list, *values = NULL, *validity = NULL, *result = NULL;
    Columns operands = {0};
    Py_ssize_t length;
    int operator, digits[2], going;
    if (!PyArg_ParseTuple(args, "COiin", &operator, &list, &digits[0], &digits[1], &length)) return NULL;
    if ((going = open_columns(list, &operands)) < 1) goto done;
    going = operands.count == 2 && is_operand(&operands.at[0], length) && is_operand(&operands.at[1], length) &&
            digits[0] >= 0 && digits[0] < 39 && digits[1] >= 0 && digits[1] < 39;
    if (going == 0) goto done;
    going = -1;
    const int steps[2] = {operands.at[0].length != 1, operands.at[1].length != 1};
    const Word factors[2] = {power_of_ten(digits[0]), power_of_ten(digits[1])};
    if ((values = PyBytes_FromStringAndSize(NULL, length * 16)) == NULL) goto done;
    if (operands.at[0].valid != NULL || operands.at[1].valid != NULL) {
        if ((validity = PyBytes_FromStringAndSize(NULL, (length + 7) / 8)) == NULL) goto done;
        uint8_t *bits = (uint8_t *)PyBytes_AsString(validity);
        memset(bits, 0, (length + 7) / 8);
        for (Py_ssize_t i = 0; i < length; i++) bits[i >> 3] |= both_valid(&operands, steps, i) << (i & 7);
    }
    PyThreadState *paused = pause_for(length);
    run(operator, &operands, steps, factors, length, (Word *)PyBytes_AsString(values));
    go_on(paused);
    result = Py_BuildValue("OO", validity == NULL ? Py_None : validity, values);
done:
    close_columns(&operands);
    Py_XDECREF(values);
    Py_XDECREF(validity);
    return going == 0 ? Py_NewRef(Py_None) : result;
}
