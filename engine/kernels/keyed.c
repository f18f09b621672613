/* Groups of equal keys in several pieces. A key is copied into the table as words, so that a comparison reads one place. A
   long text has a word that is a hash, made of eight bytes at a time; where these are equal, the texts are compared. */

#include "keyed.h"

#define LEAST_SLOTS (INT64_C(1) << 12)
#define MOST_GROUPS (INT64_C(1) << 30)
#define AHEAD 24 /* rows between the request for a slot and its use */
#define NEAR 8   /* and between the request for a group and its use */
#define NEARBY (UINT64_C(1) << 13) /* slots */
#define SHORT 7  /* bytes of a text that are in its word */
#define LONG UINT64_C(0xFF)
#define FACTOR UINT64_C(0x9E3779B97F4A7C15)
#define START UINT64_C(0xD1B54A32D192ED03)
#define HALFJOIN_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define NAN_WORD UINT64_C(0x7FF8000000000000)

static inline uint64_t folded(uint64_t word) {
    unsigned __int128 product = (unsigned __int128)(word ^ START) * FACTOR;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t word_at(const uint8_t *text) {
    uint64_t word;
    memcpy(&word, text, 8);
    return word;
}

static inline uint64_t half_at(const uint8_t *text) {
    uint32_t word;
    memcpy(&word, text, 4);
    return word;
}

/* A short text and its length, or the hash of a long one. */
static inline uint64_t word_of_text(const uint8_t *text, int64_t size) {
    uint64_t hash = (uint64_t)size;
    if (size <= SHORT) {
        uint64_t word = 0;
        if (size >= 4) word = half_at(text) | half_at(text + size - 4) << 8 * (size - 4);
        else if (size) word = text[0] | (uint64_t)text[size >> 1] << 8 * (size >> 1) | (uint64_t)text[size - 1] << 8 * (size - 1);
        return word << 8 | (uint64_t)size;
    }
    for (int64_t at = 0; at + 8 < size; at += 8) hash = folded(hash ^ word_at(text + at));
    return folded(hash ^ word_at(text + size - 8)) | LONG;
}

#define EACH_VALUE(type)                                                                                               \
    for (int64_t i = 0; i < size; i++) words[i] = (uint64_t)(int64_t)((const type *)column->data)[at + i];             \
    break;

static void words_of_integers(const Column *column, int64_t at, int64_t size, uint64_t *words) {
    switch (column->width) {
    case 1: EACH_VALUE(int8_t)
    case 2: EACH_VALUE(int16_t)
    case 4: EACH_VALUE(int32_t)
    default: EACH_VALUE(int64_t)
    }
}

static void words_of_floats(const Column *column, int64_t from, int64_t size, uint64_t *words) {
    for (int64_t i = 0; i < size; i++) {
        double value = float_at(column, from + i) + 0.0; /* -0 becomes 0 */
        memcpy(&words[i], &value, 8);
        if (value != value) words[i] = NAN_WORD;
    }
}

static void words_of_texts(const Column *column, int64_t from, int64_t size, uint64_t *words) {
    const uint8_t *text, *end;
    if (size == 0) return;
    end = column->data + text_at(column, from + size - 1, &text), end += text - column->data;
    for (int64_t i = 0; i < size; i++) {
        const int64_t length = text_at(column, from + i, &text);
        if (HALFJOIN_LITTLE && length <= SHORT && end - text >= 8) /* whatever is behind it is cut off */
            words[i] = (word_at(text) << 8 & ~(~UINT64_C(0) << 8 << 8 * length)) | (uint64_t)length;
        else words[i] = word_of_text(text, length);
    }
}

/* The words of one column, and 0 for NULL. Returns how many they are for each row. */
static int words_of_column(const Column *column, int64_t from, int64_t size, uint64_t *words, uint64_t *nulls, uint64_t bit) {
    const int count = column->kind == WORDS ? column->width / 8 : 1;
    switch (column->kind) {
    case BITS:
        for (int64_t i = 0; i < size; i++) words[i] = (uint64_t)bit_at(column, from + i);
        break;
    case INTEGER: words_of_integers(column, from + column->offset, size, words); break;
    case FLOATING: words_of_floats(column, from, size, words); break;
    case WORDS:
        for (int w = 0; w < count; w++)
            for (int64_t i = 0; i < size; i++)
                words[w * KEYED_BLOCK + i] = word_at(column->data + (from + i + column->offset) * column->width + 8 * w);
        break;
    default: words_of_texts(column, from, size, words);
    }
    for (int64_t i = 0; column->valid != NULL && i < size; i++) {
        if (is_valid(column, from + i)) continue;
        nulls[i] |= bit;
        for (int w = 0; w < count; w++) words[w * KEYED_BLOCK + i] = 0;
    }
    return count;
}

#define EACH_END(type)                                                                                                 \
    {                                                                                                                  \
        const type *values = (const type *)column->data + column->offset;                                              \
        type least = values[0], greatest = values[0];                                                                  \
        for (int64_t i = 0; i < column->length; i++) {                                                                 \
            least = values[i] < least ? values[i] : least;                                                             \
            greatest = values[i] > greatest ? values[i] : greatest;                                                    \
        }                                                                                                              \
        *low = least < *low ? least : *low, *high = greatest > *high ? greatest : *high;                               \
        break;                                                                                                         \
    }

/* The ends of integers, or wider ones: what lies below a NULL counts, too. */
static void widen(const Column *column, int64_t *low, int64_t *high) {
    if (column->length == 0) return;
    switch (column->width) {
    case 1: EACH_END(int8_t)
    case 2: EACH_END(int16_t)
    case 4: EACH_END(int32_t)
    default: EACH_END(int64_t)
    }
}

/* Finds whether the integers of all pieces are near each other, so that each has a place. -1: no memory. */
static int open_places(Keyed *keyed, Py_ssize_t count) {
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (Py_ssize_t p = 0; p < count; p++) widen(&keyed->pieces[p].at[0], &low, &high);
    if (low > high || (uint64_t)high - (uint64_t)low >= (uint64_t)keyed->rows) return 1;
    keyed->low = low, keyed->span = high - low + 1;
    keyed->places = calloc(keyed->span + 1, sizeof *keyed->places);
    return keyed->places == NULL ? -1 : 1;
}

int open_keyed(Keyed *keyed, const Columns *pieces, Py_ssize_t count, int64_t rows) {
    const Columns *first = pieces;
    keyed->pieces = pieces, keyed->rows = rows, keyed->room = LEAST_SLOTS / 2, keyed->mask = LEAST_SLOTS - 1;
    if (first->count > 64 || count > INT32_MAX) return 0;
    for (Py_ssize_t c = 0; c < first->count; c++) {
        const Kind kind = first->at[c].kind;
        keyed->words += kind == WORDS ? first->at[c].width / 8 : 1;
        keyed->hashed |= kind == TEXT || kind == LARGE_TEXT;
        for (Py_ssize_t p = 0; p < count; p++) {
            if (pieces[p].at[c].kind != kind || (kind == WORDS && pieces[p].at[c].width != first->at[c].width)) return 0;
            keyed->nulls |= pieces[p].at[c].valid != NULL;
        }
    }
    keyed->words += keyed->nulls;
    if (keyed->words > KEYED_WORDS) return 0;
    keyed->groups = malloc(keyed->room * (keyed->words + 1) * sizeof *keyed->groups);
    keyed->block = malloc(KEYED_BLOCK * keyed->words * sizeof *keyed->block);
    keyed->slots = calloc(LEAST_SLOTS, sizeof *keyed->slots);
    if (keyed->groups == NULL || keyed->block == NULL || keyed->slots == NULL) return -1;
    return first->count == 1 && first->at[0].kind == INTEGER ? open_places(keyed, count) : 1;
}

void close_keyed(Keyed *keyed) {
    free(keyed->groups);
    free(keyed->block);
    free(keyed->slots);
    free(keyed->places);
}

static inline uint64_t hash_of_words(const uint64_t *words, int64_t step, int count) {
    uint64_t hash = 0;
    for (int w = 0; w < count; w++) hash = folded(hash ^ words[w * step]);
    return hash;
}

static inline uint64_t slot_of(uint64_t hash, int64_t group) { return (hash & ~UINT64_C(0xFFFFFFFF)) | (uint64_t)(group + 1); }

/* More room: for all rows soon, if most of those so far have a group of their own. */
static int grow(Keyed *keyed) {
    const int step = keyed->words + 1;
    int64_t slots = keyed->mask + 1, most = 2 * slots, begins = 0;
    uint64_t hashes[AHEAD] = {0}, *groups;
    if (2 * keyed->count > keyed->looked) most = 16 * slots;
    do slots *= 2;
    while (slots < most && slots / 2 < keyed->rows);
    if (slots / 2 > MOST_GROUPS) return 0;
    if ((groups = realloc(keyed->groups, slots / 2 * step * sizeof *groups)) == NULL) return -1;
    free(keyed->slots);
    keyed->groups = groups, keyed->room = slots / 2, keyed->mask = slots - 1;
    if ((keyed->slots = calloc(slots, sizeof *keyed->slots)) == NULL) return -1;
    for (int64_t group = 0; group < keyed->count + AHEAD; group++) { /* each one's slot is asked for before it is used */
        const uint64_t hash = hashes[begins];
        if (group < keyed->count) {
            hashes[begins] = hash_of_words(groups + group * step, 1, keyed->words);
            __builtin_prefetch(&keyed->slots[hashes[begins] & (uint64_t)keyed->mask], 1);
        }
        begins = begins + 1 == AHEAD ? 0 : begins + 1;
        if (group < AHEAD) continue;
        uint64_t slot = hash & (uint64_t)keyed->mask;
        while (keyed->slots[slot]) slot = (slot + 1) & (uint64_t)keyed->mask;
        keyed->slots[slot] = slot_of(hash, group - AHEAD);
    }
    return 1;
}

/* Whether the texts that are long are equal, where all words are. */
static int same_texts(const Columns *one, int64_t i, const Columns *other, int64_t j) {
    for (Py_ssize_t c = 0; c < one->count; c++)
        if (one->at[c].kind >= TEXT && !equal_values(&one->at[c], i, &other->at[c], j)) return 0;
    return 1;
}

static inline int is_group(const Keyed *keyed, int64_t group, int64_t row, const Columns *columns, int64_t at) {
    const uint64_t *key = keyed->groups + group * (keyed->words + 1), *words = keyed->block + row;
    int64_t piece, first;
    int asked = 0;
    for (int w = 0; w < keyed->words; w++) {
        if (key[w] != words[w * KEYED_BLOCK]) return 0;
        asked |= (key[w] & LONG) == LONG;
    }
    if (!keyed->hashed || !asked) return 1; /* no word is the hash of a text */
    first = first_of_group(keyed, group, &piece);
    return same_texts(&keyed->pieces[piece], first, columns, at);
}

/* The slot of the group of a row with one or two words; 0: it has none yet, or it is to be found by its texts. Nothing is
   asked for before it is used, as all is in nearby memory. */
static inline uint64_t group_nearby(const Keyed *keyed, int64_t row, uint64_t slot) {
    const uint64_t word = keyed->block[row], other = keyed->words == 2 ? keyed->block[KEYED_BLOCK + row] : 0;
    const uint64_t mask = (uint64_t)keyed->mask;
    const int64_t step = keyed->words + 1;
    uint64_t there;
    if (keyed->hashed && ((word & LONG) == LONG || (other & LONG) == LONG)) return 0;
    while ((there = keyed->slots[slot]) != 0) {
        const uint64_t *key = keyed->groups + ((uint32_t)there - INT64_C(1)) * step;
        if (key[0] == word && (step == 2 || key[1] == other)) return there;
        slot = (slot + 1) & mask;
    }
    return 0;
}

/* Room for so many groups more. */
static int grow_groups(Keyed *keyed, int64_t size) {
    uint64_t *groups = keyed->groups;
    if (keyed->count + size <= keyed->room) return 1;
    while (keyed->count + size > keyed->room) keyed->room *= 2;
    if ((groups = realloc(groups, keyed->room * (keyed->words + 1) * sizeof *groups)) == NULL) return -1;
    keyed->groups = groups;
    return 1;
}

#define EACH_PLACE(type)                                                                                               \
    {                                                                                                                  \
        const type *values = (const type *)column->data + column->offset + from;                                       \
        for (int64_t i = 0; i < size; i++) {                                                                           \
            const int64_t at = column->valid == NULL || is_valid(column, from + i) ? values[i] - low : keyed->span;    \
            int32_t there = places[at];                                                                                \
            if (there == 0) {                                                                                          \
                keyed->groups[keyed->count * step + step - 1] = (uint64_t)piece << 32 | (uint64_t)(from + i);          \
                places[at] = there = (int32_t)++keyed->count;                                                          \
            }                                                                                                          \
            found[i] = there - 1;                                                                                      \
        }                                                                                                              \
        break;                                                                                                         \
    }

/* As `groups_of_rows`, by place. */
static int groups_by_place(Keyed *keyed, int64_t piece, int64_t from, int64_t size, int32_t *found) {
    const Column *column = &keyed->pieces[piece].at[0];
    const int64_t low = keyed->low, step = keyed->words + 1;
    int32_t *places = keyed->places;
    int going = grow_groups(keyed, size);
    if (going < 1) return going;
    switch (column->width) {
    case 1: EACH_PLACE(int8_t)
    case 2: EACH_PLACE(int16_t)
    case 4: EACH_PLACE(int32_t)
    default: EACH_PLACE(int64_t)
    }
    return 1;
}

int groups_of_rows(Keyed *keyed, int64_t piece, int64_t from, int64_t size, int32_t *found) {
    uint64_t hashes[KEYED_BLOCK], *words = keyed->block;
    uint64_t *nulls = keyed->block + (keyed->words - 1) * KEYED_BLOCK;
    const Columns *columns = &keyed->pieces[piece];
    if (keyed->places != NULL) return groups_by_place(keyed, piece, from, size, found);
    if (keyed->nulls) memset(nulls, 0, size * sizeof *nulls);
    for (Py_ssize_t c = 0; c < columns->count; c++)
        words += KEYED_BLOCK * words_of_column(&columns->at[c], from, size, words, nulls, UINT64_C(1) << c);
    for (int64_t i = 0; i < size; i++) hashes[i] = hash_of_words(keyed->block + i, KEYED_BLOCK, keyed->words);
    while (keyed->count + size > keyed->room) {
        int grown = grow(keyed);
        if (grown < 1) return grown;
    }
    const uint64_t mask = (uint64_t)keyed->mask;
    const int nearby = mask < NEARBY && keyed->words <= 2;
    for (int64_t i = 0; i < size; i++) {
        uint64_t hash = hashes[i], slot = hash & mask, there;
        if (nearby && (there = group_nearby(keyed, i, slot)) != 0) {
            found[i] = (int32_t)((uint32_t)there - 1);
            continue;
        }
        if (i + AHEAD < size) __builtin_prefetch(&keyed->slots[hashes[i + AHEAD] & mask], 1);
        if (i + NEAR < size && (there = keyed->slots[hashes[i + NEAR] & mask]) != 0)
            __builtin_prefetch(keyed->groups + ((uint32_t)there - 1) * (keyed->words + INT64_C(1)));
        while ((there = keyed->slots[slot]) != 0
               && ((there ^ hash) >> 32 || !is_group(keyed, (int64_t)(uint32_t)there - 1, i, columns, from + i)))
            slot = (slot + 1) & mask;
        if (there) {
            found[i] = (int32_t)((uint32_t)there - 1);
            continue;
        }
        uint64_t *key = keyed->groups + keyed->count * (keyed->words + 1);
        for (int w = 0; w < keyed->words; w++) key[w] = keyed->block[w * KEYED_BLOCK + i];
        key[keyed->words] = (uint64_t)piece << 32 | (uint64_t)(from + i);
        keyed->slots[slot] = slot_of(hash, keyed->count);
        found[i] = (int32_t)keyed->count++;
    }
    keyed->looked += size;
    return 1;
}
