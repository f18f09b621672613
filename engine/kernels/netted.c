/* Adds up partners of one row that are equal, so that those which came and went are not carried on.
   engine.arrange.netting says why this is allowed. */

#include "lookup.h"

#define MANY 8 /* as `engine.join.beside` has it: where fewer than one partner in so many goes, it does not pay */

/* A pair as a group sees it. */
typedef struct {
    const Side *side;
    int64_t position, row, time;
    uint64_t hash;
} Pair;

static int64_t how_many_go(const Lookup *lookup) {
    int64_t i = 0, gone = 0;
    for (Py_ssize_t s = 0; s < lookup->count; s++)
        for (int64_t end = i + lookup->counts[s]; i < end; i++)
            gone += weight_of(lookup->sides[s], lookup->found.rows[i]) < 0;
    return gone;
}

static int are_equal(const Pair *one, const Pair *other) {
    if (one->hash != other->hash || one->position != other->position || one->time != other->time) return 0;
    for (Py_ssize_t c = 0; c < one->side->fetched.count; c++)
        if (!equal_values(&one->side->fetched.at[c], one->row, &other->side->fetched.at[c], other->row)) return 0;
    return 1;
}

static void read_pairs(const Lookup *lookup, int64_t closed, Pair *pairs) {
    int64_t i = 0;
    for (Py_ssize_t s = 0; s < lookup->count; s++) {
        const Side *side = lookup->sides[s];
        for (int64_t end = i + lookup->counts[s]; i < end; i++) {
            int64_t row = lookup->found.rows[i], time = int_at(&side->time, row);
            Pair one = {side, lookup->found.positions[i], row, time < closed ? closed - 1 : time, 0};
            one.hash = mixed(mixed((uint64_t)one.position) + (uint64_t)one.time) + hash_of_row(&side->fetched, row);
            pairs[i] = one;
        }
    }
}

/* Leaves the first pair of each group whose sum is not 0, with the sum. */
static void leave(Lookup *lookup, const int64_t *sums) {
    int64_t i = 0, left = 0;
    for (Py_ssize_t s = 0; s < lookup->count; s++) {
        int64_t before = left;
        for (int64_t end = i + lookup->counts[s]; i < end; i++)
            if (sums[i] != 0) {
                lookup->found.positions[left] = lookup->found.positions[i];
                lookup->found.rows[left] = lookup->found.rows[i];
                lookup->weights[left++] = sums[i];
            }
        lookup->counts[s] = left - before;
    }
    lookup->found.count = left;
}

/* The sums of the groups, each at its first pair, 0 at the others. 1; 0: a sum does not fit. */
static int add_up(const Lookup *lookup, const Pair *pairs, int64_t *slots, int64_t mask, int64_t *sums) {
    for (int64_t i = 0; i < lookup->found.count; i++) {
        int64_t slot = (int64_t)(pairs[i].hash >> 32 ^ pairs[i].hash) & mask, first;
        int64_t weight = weight_of(pairs[i].side, pairs[i].row);
        while ((first = slots[slot] - 1) >= 0 && !are_equal(&pairs[first], &pairs[i])) slot = (slot + 1) & mask;
        sums[i] = 0;
        if (first < 0) slots[slot] = i + 1, first = i;
        if (__builtin_add_overflow(sums[first], weight, &sums[first])) return 0;
    }
    return 1;
}

/* Adds up equal pairs, where times below `closed` are one time. As `net_pairs`. */
static int add_up_pairs(Lookup *lookup, int64_t closed) {
    const int64_t count = lookup->found.count;
    int64_t size = 16, *slots, *sums;
    Pair *pairs;
    int going = -1;
    while (size < 2 * count) size *= 2;
    slots = calloc(size, sizeof *slots), sums = malloc(count * sizeof *sums), pairs = malloc(count * sizeof *pairs);
    lookup->weights = malloc(count * sizeof *lookup->weights);
    if (slots != NULL && sums != NULL && pairs != NULL && lookup->weights != NULL) {
        PyThreadState *paused = pause_for(count);
        read_pairs(lookup, closed, pairs);
        going = add_up(lookup, pairs, slots, size - 1, sums);
        if (going == 1) leave(lookup, sums);
        go_on(paused);
    }
    if (going != 1) free(lookup->weights), lookup->weights = NULL;
    free(slots);
    free(sums);
    free(pairs);
    return going;
}

int net_pairs(Lookup *lookup, int64_t closed, int64_t least) {
    if (closed == INT64_MIN || lookup->found.count < least) return 1;
    int64_t gone = how_many_go(lookup);
    return gone * MANY < lookup->found.count || gone == lookup->found.count ? 1 : add_up_pairs(lookup, closed);
}

int cancel_pairs(Lookup *lookup) { return how_many_go(lookup) ? add_up_pairs(lookup, INT64_MAX) : 1; }
