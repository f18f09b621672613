/* Groups of equal rows. Rows are equal if their hashes are, and then their values; so a hash that two rows share costs
   time, never an answer. */

#include "table.h"

int open_table(Table *table, int64_t length) {
    int64_t size = 16;
    while (size < 2 * length) size *= 2;
    table->mask = size - 1, table->count = 0;
    table->firsts = malloc((length ? length : 1) * sizeof *table->firsts);
    table->hashes = malloc((length ? length : 1) * sizeof *table->hashes);
    table->slots = calloc(size, sizeof *table->slots);
    return table->firsts != NULL && table->hashes != NULL && table->slots != NULL;
}

void close_table(Table *table) {
    free(table->firsts);
    free(table->hashes);
    free(table->slots);
}

static int equal_rows(const Columns *columns, const Array *time, int64_t i, int64_t j) {
    if (time->open && int_at(time, i) != int_at(time, j)) return 0;
    for (Py_ssize_t c = 0; c < columns->count; c++)
        if (!equal_values(&columns->at[c], i, &columns->at[c], j)) return 0;
    return 1;
}

int64_t group_of(Table *table, const Columns *columns, const Array *time, int64_t row) {
    uint64_t hash = table->hashes[row];
    int64_t slot = (int64_t)(hash >> 32 ^ hash) & table->mask;
    while (table->slots[slot]) {
        int64_t group = table->slots[slot] - 1, first = table->firsts[group];
        if (table->hashes[first] == hash && equal_rows(columns, time, first, row)) return group;
        slot = (slot + 1) & table->mask;
    }
    table->firsts[table->count] = row;
    table->slots[slot] = (int32_t)(table->count + 1);
    return table->count++;
}

void hash_rows(Table *table, const Columns *columns, const Array *time, int64_t length) {
    hash_columns(columns, length, table->hashes);
    if (time->open && time->step)
        for (int64_t i = 0; i < length; i++) table->hashes[i] = mixed(table->hashes[i] + (uint64_t)int_at(time, i));
}
