/* The pairs of a half-join: the codes of the keys, the search in all runs, the comparison of keys, and the conditions on
   partners. engine.join.half_join says what they mean. */

#include "lookup.h"

void close_lookup(Lookup *lookup) {
    close_columns(&lookup->keys);
    close_columns(&lookup->kept);
    close_columns(&lookup->tested);
    close_thresholds(&lookup->partners);
    PyMem_Free(lookup->sides);
    PyMem_Free(lookup->counts);
    free(lookup->codes);
    free(lookup->places);
    free(lookup->found.positions);
    free(lookup->found.rows);
    free(lookup->weights);
}

static int can_match(const Lookup *lookup, int64_t row) {
    for (Py_ssize_t c = 0; c < lookup->keys.count; c++)
        if (!(lookup->null_safe >> c & 1) && !is_valid(&lookup->keys.at[c], row)) return 0;
    return 1;
}

/* The codes of the rows that may have partners. 1, or -1 with an exception. */
static int encode(Lookup *lookup) {
    const int64_t length = lookup->time.length;
    int skips = lookup->first != NULL;
    lookup->codes = malloc((length ? length : 1) * sizeof *lookup->codes);
    if (lookup->codes == NULL) goto failed;
    codes_of(&lookup->keys, length, lookup->codes);
    lookup->length = lookup->entered = length;
    for (Py_ssize_t c = 0; c < lookup->keys.count; c++)
        skips |= lookup->keys.at[c].valid != NULL && !(lookup->null_safe >> c & 1);
    if (!skips) return 1;
    lookup->places = malloc((length ? length : 1) * sizeof *lookup->places);
    if (lookup->places == NULL) goto failed;
    lookup->length = lookup->entered = 0;
    for (int64_t row = 0; row < length; row++) {
        if (lookup->first != NULL && !meets(&lookup->tested, lookup->first, row)) continue;
        lookup->entered++;
        if (!can_match(lookup, row)) continue;
        lookup->codes[lookup->length] = lookup->codes[row], lookup->places[lookup->length++] = row;
    }
    return 1;
failed:
    PyErr_NoMemory();
    return -1;
}

/* Whether a side's keys and conditions are of types that can be compared here. */
static int fits(const Lookup *lookup, const Side *side) {
    if (!are_ordered(&side->tested, &lookup->partners)) return 0;
    if (side->keys.count == 0) return lookup->certain;
    if (side->keys.count != lookup->keys.count) return 0;
    for (Py_ssize_t c = 0; c < side->keys.count; c++)
        if (!comparable(&lookup->keys.at[c], &side->keys.at[c])) return 0;
    return 1;
}

/* Whether equal codes of the lookup and of a side mean equal keys. */
static int tells_apart(const Lookup *lookup, const Side *side) {
    const Column *key = lookup->keys.at;
    if (side->keys.count == 0) return 1;
    return side->exact && lookup->keys.count == 1 && (key->kind == INTEGER || key->kind == BITS) &&
           (key->valid == NULL || !(lookup->null_safe & 1));
}

/* The pairs of a side from number `from` on that are partners and meet every condition. 1; 0: a row is beyond the run. */
static int admit(Lookup *lookup, const Side *side, int64_t from) {
    const int compare = !tells_apart(lookup, side);
    const char *mask = side->mask.open ? side->mask.at : NULL;
    int64_t *positions = lookup->found.positions, left = from;
    uint32_t *rows = lookup->found.rows;
    for (int64_t i = from; i < lookup->found.count; i++) {
        int64_t row = rows[i], at = lookup->places == NULL ? positions[i] : lookup->places[positions[i]];
        int keep;
        if (row >= side->time.length) return 0;
        keep = mask == NULL || mask[row];
        for (Py_ssize_t c = 0; compare && keep && c < side->keys.count; c++)
            keep = equal_values(&lookup->keys.at[c], at, &side->keys.at[c], row);
        positions[left] = at, rows[left] = (uint32_t)row;
        left += keep && meets(&side->tested, &lookup->partners, row);
    }
    lookup->found.count = left;
    return 1;
}

int find_pairs(Lookup *lookup, int64_t most) {
    Array probes = {.step = 1};
    PyThreadState *paused;
    int going = 1, inside = 1;
    for (Py_ssize_t i = 0; i < lookup->count; i++)
        if (!fits(lookup, lookup->sides[i])) return 0;
    if (lookup->first != NULL && !are_ordered(&lookup->tested, lookup->first)) return 0;
    if (encode(lookup) < 0) return -1;
    probes.at = lookup->codes, probes.length = lookup->length;
    paused = pause_for(lookup->length * lookup->count);
    for (Py_ssize_t i = 0; going == 1 && inside && i < lookup->count; i++) {
        const Side *side = lookup->sides[i];
        int64_t before = lookup->found.count;
        if (side->index.codes.length && (going = find_in(&side->index, &probes, most, &lookup->found)) == 1)
            inside = admit(lookup, side, before);
        lookup->counts[i] = lookup->found.count - before;
    }
    go_on(paused);
    if (!inside) return PyErr_SetString(PyExc_IndexError, "a row number beyond its run"), -1;
    if (going == -1) PyErr_NoMemory();
    return going;
}
