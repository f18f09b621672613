/* Groups of equal keys in several pieces: a hash table that grows with the groups, whatever the number of rows. Keys that
   are one integer each, between ends that are near, have a place each instead. */

#ifndef HALFJOIN_KEYED_H
#define HALFJOIN_KEYED_H

#include "columns.h"

#define KEYED_BLOCK 1024 /* rows that are looked up by one call at most */
#define KEYED_WORDS 16   /* of a key at most */

/* A key is some words. They tell keys apart but for long texts, of which they have a hash. */
typedef struct {
    const Columns *pieces;         /* the keys, piece by piece */
    int words, nulls, hashed;      /* words of a key; whether the last one says what is NULL; whether some text is hashed */
    uint64_t *groups;              /* of each group its words, then its first row */
    uint64_t *slots;               /* half of a hash, and group + 1; 0 is free */
    int32_t *places;               /* or of each integer from `low` on, and of NULL behind them, group + 1; 0 is free */
    int64_t low, span;             /* of places */
    uint64_t *block;               /* the words of the rows that are looked up */
    int64_t count, room, mask;     /* of groups; of slots */
    int64_t rows, looked;          /* all, and those that were looked up so far */
} Keyed;

/* The functions return 1; 0: no fast way, or too many groups; -1: no memory, without an exception. */
int open_keyed(Keyed *keyed, const Columns *pieces, Py_ssize_t count, int64_t rows);
void close_keyed(Keyed *keyed);

/* The groups of so many rows of a piece; new ones for keys that were not seen. */
int groups_of_rows(Keyed *keyed, int64_t piece, int64_t from, int64_t size, int32_t *found);

/* The first row of a group, and its piece. */
static inline int64_t first_of_group(const Keyed *keyed, int64_t group, int64_t *piece) {
    uint64_t first = keyed->groups[group * (keyed->words + 1) + keyed->words];
    *piece = (int64_t)(first >> 32);
    return (int64_t)(first & UINT64_C(0xFFFFFFFF));
}

#endif
