/* Groups of equal rows, by a hash table with open addressing: each slot holds the group that lives there. */

#ifndef HALFJOIN_TABLE_H
#define HALFJOIN_TABLE_H

#include "columns.h"

typedef struct {
    int64_t *firsts;  /* of each group, its first row */
    uint64_t *hashes; /* of each row */
    int32_t *slots;   /* group + 1; 0 is free */
    int64_t count, mask;
} Table;

int open_table(Table *table, int64_t length); /* 0: no memory, without an exception */
void close_table(Table *table);
void hash_rows(Table *table, const Columns *columns, const Array *time, int64_t length); /* before `group_of` */

/* The group of a row; a new one if no row before it is equal. `time`: rows of other times are not equal, if it is open. */
int64_t group_of(Table *table, const Columns *columns, const Array *time, int64_t row);

#endif
