/* Half-joins in a row, by one call: what one of them makes is the stream of the next, and no object of Python in between.
   engine.join.chain says what they mean. */

#include "lookup.h"

/* Rows on their way, with the objects that hold what was made of them. */
typedef struct {
    Columns columns;
    Array time, diff;
    PyObject *made; /* NULL: they are what was given */
} Stream;

/* What a chain is told beside its links. */
typedef struct {
    Thresholds first;             /* what rows of the stream meet that have partners */
    PyObject *tested;             /* the columns that it compares */
    Py_ssize_t most, most_bytes;  /* pairs, and bytes of texts, of one link */
    long long closed;             /* partners below are added up */
    Py_ssize_t least;             /* if they are so many */
    int apart;                    /* the pairs of the first link are wanted, not joined rows */
} Terms;

/* What became of it. */
typedef struct {
    Py_ssize_t done;       /* links */
    int64_t found, entered; /* rows that all links made; rows of the stream that meet `first` */
    PyObject *pairs;       /* of the first link, where they cannot be joined at once */
} Walk;

/* The columns at positions of a stream, borrowed. As the functions of columns.h. */
static int pick(const Columns *from, PyObject *positions, Columns *out) {
    Py_ssize_t count = PyTuple_Size(positions);
    if (count < 0) return -1;
    if ((out->at = PyMem_Calloc(count ? count : 1, sizeof *out->at)) == NULL) return PyErr_NoMemory(), -1;
    for (out->count = 0; out->count < count; out->count++) {
        Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(positions, out->count));
        if (at < 0 || at >= from->count) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "no such column");
            return -1;
        }
        out->at[out->count] = from->at[at];
        out->at[out->count].held = NULL;
    }
    return 1;
}

static int open_link(PyObject *link, const Stream *stream, Lookup *out) {
    PyObject *sides, *keys, *kept, *constants, *allowed, *types; /* the types are the caller's */
    int going;
    if (!PyArg_ParseTuple(link, "OOKpOOOO", &sides, &keys, &out->null_safe, &out->certain, &kept, &constants, &allowed,
                          &types))
        return -1;
    out->time = stream->time, out->diff = stream->diff;
    if ((going = pick(&stream->columns, keys, &out->keys)) < 1) return going;
    if ((going = pick(&stream->columns, kept, &out->kept)) < 1) return going;
    if ((going = open_thresholds(constants, allowed, &out->partners)) < 1) return going;
    if ((out->sides = sides_of(sides, &out->count)) == NULL) return -1;
    if ((out->counts = PyMem_Calloc(out->count ? out->count : 1, sizeof *out->counts)) == NULL) return PyErr_NoMemory(), -1;
    return out->keys.count > 0 && out->keys.count <= 64;
}

static Array ints_of(PyObject *bytes) {
    Array out = {.at = PyByteArray_AsString(bytes), .length = PyByteArray_Size(bytes) / 8, .step = 1};
    return out;
}

/* The joined rows as the stream of the next link. 0, with an exception: no memory. */
static int go_on_with(PyObject *made, const Lookup *lookup, Stream *out) {
    PyObject *buffers = PyTuple_GetItem(made, 0);
    out->columns.count = width(lookup);
    if ((out->columns.at = PyMem_Calloc(out->columns.count + 1, sizeof(Column))) == NULL) return PyErr_NoMemory(), 0;
    out->made = made, out->time = ints_of(PyTuple_GetItem(made, 1)), out->diff = ints_of(PyTuple_GetItem(made, 2));
    for (Py_ssize_t c = 0; c < out->columns.count; c++)
        out->columns.at[c] = view_of(PyList_GetItem(buffers, c), column_like(lookup, c), out->time.length);
    return 1;
}

static void close_stream(Stream *stream) {
    close_columns(&stream->columns);
    close_array(&stream->time);
    close_array(&stream->diff);
    Py_CLEAR(stream->made);
}

/* Whether rows that come and rows that go have become so many that they are to be added up. */
static int has_grown(const Stream *stream, int64_t size) {
    int comes = 0, goes = 0;
    if (stream->time.length < size) return 0;
    for (int64_t i = 0; i < stream->diff.length && !(comes && goes); i++)
        comes |= int_at(&stream->diff, i) > 0, goes |= int_at(&stream->diff, i) < 0;
    return comes && goes;
}

static int is_whole(const Stream *stream) {
    if (stream->diff.length != stream->time.length) return 0;
    for (Py_ssize_t c = 0; c < stream->columns.count; c++)
        if (stream->columns.at[c].length != stream->time.length) return 0;
    return 1;
}

/* Takes one link. 1: `next` are the joined rows, with nothing made if there are none; 0: there is no fast way; -1 with an
   exception. */
static int take(PyObject *link, const Terms *terms, const Stream *now, Stream *next, Walk *walk) {
    Lookup lookup = {0};
    PyObject *made = NULL;
    int going = open_link(link, now, &lookup), complete = 0;
    if (going == 1 && walk->done == 0 && terms->first.constants.count) {
        lookup.first = &terms->first;
        going = pick(&now->columns, terms->tested, &lookup.tested);
    }
    if (going == 1) complete = going = find_pairs(&lookup, terms->most);
    if (walk->done == 0) walk->entered = lookup.entered;
    if (complete == 1 && lookup.found.count) {
        going = !terms->apart && gatherable(&lookup, terms->most_bytes);
        if (going == 1 && (going = net_pairs(&lookup, terms->closed, terms->least)) == -1) PyErr_NoMemory();
        if (going == 1 && lookup.found.count && (made = join(&lookup)) == NULL) going = PyErr_Occurred() ? -1 : 0;
        if (going == 1 && made != NULL && !go_on_with(made, &lookup, next)) Py_DECREF(made), going = -1;
        if (going == 0 && walk->done == 0 && lookup.weights == NULL && /* pairs that were added up are no pairs */
            (walk->pairs = pairs_of(&lookup.found, lookup.counts, lookup.count)) == NULL)
            going = -1;
    }
    close_lookup(&lookup);
    return going;
}

/* Takes a stream through the links. `now`: the rows after those that are done. As `take`; 0 also before a link whose
   stream is to be added up. */
static int walk_on(PyObject *links, const Terms *terms, Py_ssize_t growth, Py_ssize_t size, Stream *now, Walk *walk) {
    int going = 1;
    for (Py_ssize_t count = PyList_Size(links); going == 1 && walk->done < count;) {
        Stream next = {0};
        if (walk->done && has_grown(now, growth * (size < 0 ? walk->entered : size))) return 0;
        if ((going = take(PyList_GetItem(links, walk->done), terms, now, &next, walk)) < 1) {
            close_stream(&next);
            break;
        }
        if (now->made != NULL) close_stream(now); /* what was given stays open: it has the formats */
        *now = next;
        walk->done++, walk->found += now->time.length;
        if (now->made == NULL) break;
    }
    return going;
}

PyObject *py_half_joins(PyObject *self, PyObject *args) {
    PyObject *list, *times, *diffs, *constants, *allowed, *links, *result = NULL;
    Stream given = {0}, now;
    Terms terms = {0};
    Walk walk = {0};
    Py_ssize_t size, growth;
    int going;
    if (!PyArg_ParseTuple(args, "OOO(OOO)OnnLnnnp", &list, &times, &diffs, &terms.tested, &constants, &allowed, &links, &size,
                          &growth, &terms.closed, &terms.least, &terms.most, &terms.most_bytes, &terms.apart))
        return NULL;
    if (PyList_Size(links) < 0) return NULL;
    going = open_columns(list, &given.columns);
    if (going == 1 && (going = open_ints(times, &given.time)) == 1) going = open_ints(diffs, &given.diff);
    if (going == 1) going = is_whole(&given);
    if (going == 1) going = open_thresholds(constants, allowed, &terms.first);
    now = given;
    if (going == 1) going = walk_on(links, &terms, growth, size, &now, &walk);
    if (going == -1) result = NULL;
    else if (walk.pairs != NULL) result = Py_NewRef(walk.pairs);
    else if (walk.done == 0) result = Py_NewRef(Py_None);
    else if (now.made == NULL)
        result = Py_BuildValue("(OOOLnL)", Py_None, Py_None, Py_None, (long long)walk.found, walk.done,
                               (long long)walk.entered);
    else
        result = Py_BuildValue("(OOOLnL)", PyTuple_GetItem(now.made, 0), PyTuple_GetItem(now.made, 1),
                               PyTuple_GetItem(now.made, 2), (long long)walk.found, walk.done, (long long)walk.entered);
    if (now.made != NULL) close_stream(&now);
    Py_XDECREF(walk.pairs);
    close_stream(&given);
    close_thresholds(&terms.first);
    return result;
}
