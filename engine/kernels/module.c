/* The extension `halfjoin.engine.kernels._native`: the list of its functions.

   It uses the stable interface of CPython 3.11 (abi3), so that one build serves all later versions, and no library. */

#include "columns.h"

static PyMethodDef functions[] = {
    {"bounds", py_bounds, METH_O, "bounds(values): the least and the greatest, or None"},
    {"sound", py_sound, METH_VARARGS, "sound(columns, bounds): whether the values plainly are ASCII, or within bounds"},
    {"codes", py_codes, METH_VARARGS, "codes(columns, length): the 64-bit hash of each row, or None"},
    {"find", py_find, METH_VARARGS, "find(probes, indexes, most): positions, rows and counts, or None"},
    {"count", py_count, METH_VARARGS, "count(probes, indexes): the number of entries of each probe, or None"},
    {"gather", py_gather, METH_VARARGS, "gather(sources, rows, counts): the buffers of each column, or None"},
    {"filtered", py_filtered, METH_VARARGS,
     "filtered(columns, time, diff, tested, constants, allowed): how many rows pass, the buffers of their columns, times "
     "and diffs (None: all are one); True or None"},
    {"passing", py_passing, METH_VARARGS, "passing(mask, positions, rows, counts): the pairs that pass, or None"},
    {"side", py_side, METH_VARARGS,
     "side(index, exact, keys, tested, fetched, weights): a run, opened for the lookups of a half-join, or None"},
    {"half_joins", py_half_joins, METH_VARARGS,
     "half_joins(columns, time, diff, tests, links, size, growth, closed, least, most, most_bytes, apart): the buffers "
     "of the joined rows, times, diffs, rows found, links done, rows that entered; positions, rows and counts; or None"},
    {"weights", py_weights, METH_VARARGS, "weights(sources, rows, counts): times and diffs, or None"},
    {"products", py_products, METH_VARARGS, "products(positions, time, diff, times, diffs): times and diffs, or None"},
    {"groups", py_groups, METH_VARARGS, "groups(columns, time, length): group numbers and first rows, or None"},
    {"grouped", py_grouped, METH_VARARGS,
     "grouped(pieces, parts, numbered): the first row of each group, the sums of each part, and the rows' groups; or None"},
    {"sums", py_sums, METH_VARARGS, "sums(columns, time, diff): positions and sums that are not 0, or None"},
    {"unique", py_unique, METH_VARARGS,
     "unique(keys, columns, time, diff, sides, most): an index as of `indexed`, and the keys that plainly stay unique, if "
     "not all do; or None"},
    {"indexed", py_indexed, METH_VARARGS, "indexed(keys, length, among, most): codes in order, and their rows, or None"},
    {"sorted", py_sorted, METH_VARARGS, "sorted(codes): codes in order, and their positions, or None"},
    {"order", py_order, METH_VARARGS, "order(words, bits, length): the positions of rows in the order of words, or None"},
    {"merged", py_merged, METH_VARARGS, "merged(indexes, kept): codes in order, and their rows, or None"},
    {"net", py_net, METH_VARARGS,
     "net(columns, time, diff, closed, codes, rows, there, netted, nets): how many closed rows remain, which rows do, "
     "and the rows and diffs of those that count otherwise (None: as before); or None"},
    {"split", py_split, METH_VARARGS, "split(codes, rows, mask): codes and rows of the marked rows and of the others, or None"},
    {"starts", py_starts, METH_VARARGS, "starts(codes, shift): where the ranges of a guide start, or None"},
    {"moments", py_moments, METH_VARARGS,
     "moments(columns, time): first rows, rows, starts; groups, times and marks of moments; or None"},
    {"totals", py_totals, METH_VARARGS,
     "totals(summed, args, old, diff, rows, starts, group, was, begins): the buffers of a column of sums, or None"},
    {"kept", py_kept, METH_O, "kept(numbers): the buffers of a column of sums, or None"},
    {"read_kept", py_read_kept, METH_O, "read_kept(sums): the numbers, or None"},
    {"reduced", py_reduced, METH_VARARGS,
     "reduced(columns, keys, parts, time, diff, sides, most): the buffers and the diffs of the rows of groups that go and "
     "come, and how many kept rows were found; or None"},
    {"decimals", py_decimals, METH_VARARGS,
     "decimals(counts, totals, digits, divides, given, made): the buffers of a column of decimals made of kept sums, or "
     "None"},
    {"arithmetic", py_arithmetic, METH_VARARGS,
     "arithmetic(operator, operands, left, right, length): the buffers of a column of decimals, or None"},
    {"quotients", py_quotients, METH_VARARGS,
     "quotients(operands, left, right, scale, digits, width, length): the buffers of a column of decimals, or None"},
    {"compared", py_compared, METH_VARARGS,
     "compared(allowed, operands, left, right, length): the buffers of a column of booleans, or None"},
    {"added", py_added, METH_VARARGS,
     "added(values, args, diff): what each update adds to a sum, and the greatest absolute value of that; or None"},
    {"added_up", py_added_up, METH_VARARGS, "added_up(values, args, diff): what all updates add, of 16 bytes, or None"},
    {"extreme", py_extreme, METH_VARARGS,
     "extreme(column, marks, greatest): the row of the least or greatest value, -1 if there is none; or None"},
    {"float_sums", py_float_sums, METH_VARARGS,
     "float_sums(values, diff, group, groups): the first digit of the sums of groups, and their digits; or None"},
    {"spread", py_spread, METH_VARARGS,
     "spread(name, columns, exact, given, digits, made): marks of results, their values, and marks of the rows that are "
     "left to the caller; or None"},
    {"like", py_like, METH_VARARGS, "like(column, parts): marks of the texts that have the parts one after the other, or None"},
    {"firsts", py_firsts, METH_VARARGS,
     "firsts(groups, round, width, rows, made): groups, places and diffs of what differs in the round; groups and rounds to "
     "look at again; or None"},
    {NULL, NULL, 0, NULL},
};

/* `native` uses no other version: an editable installation may have one that was built from older sources. */
static int execute(PyObject *module) {
    make_powers();
    return PyModule_AddIntConstant(module, "VERSION", 21);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native", "Native kernels; halfjoin.engine.kernels says what they mean.", 0, functions,
    slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&module); }
