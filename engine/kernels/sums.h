/* Sums of integers and numerics, 128 bits wide, and the bytes in which they are kept (`engine.scalar.kept`). */

#ifndef HALFJOIN_SUMS_H
#define HALFJOIN_SUMS_H

#include "columns.h"

#define MOST_SUM_BYTES 17 /* of a kept sum: the offset, and 128 bits */
#define MOST_INT64_BYTES 9 /* of a kept sum of 64 bits */

typedef __int128 Wide;

int summable(const Column *column); /* whether it has integers or numerics */
int read_sum(const uint8_t *text, int64_t size, Wide *sum); /* 0 if the sum has another form, or more bytes than fit */
int write_sum(Wide sum, uint8_t *text); /* the canonical bytes; returns how many */

static inline Wide wide_at(const Column *column, int64_t i) {
    return column->kind == INTEGER ? integer_at(column, i) : decimal_at(column, i);
}

#endif
