/* Kept sums: whole 32-bit words of 0 at the end are told by an offset, and the rest is little-endian two's complement. */

#include "sums.h"

#define NOT_FINITE 255

typedef unsigned __int128 Bits;

int summable(const Column *column) {
    if (column->kind == WORDS) return column->format[0] == 'd' && column->width == 16;
    return column->kind == INTEGER && column->format[1] == '\0' && strchr("csil", column->format[0]) != NULL;
}

int read_sum(const uint8_t *text, int64_t size, Wide *sum) {
    Bits value = 0;
    int64_t shift;
    *sum = 0;
    if (size == 0) return 1;
    shift = 4 * (int64_t)text[0];
    if (text[0] == NOT_FINITE || size < 2 || shift + size - 1 > 16) return 0;
    if (text[size - 1] & 128) value = ~(Bits)0;
    for (int64_t i = size - 1; i > 0; i--) value = value << 8 | text[i];
    *sum = (Wide)(shift < 16 ? value << (8 * shift) : 0);
    return 1;
}

int write_sum(Wide sum, uint8_t *text) {
    int size = 1, offset = 0;
    if (sum == 0) return 0;
    while ((uint32_t)sum == 0) sum >>= 32, offset++;
    text[0] = (uint8_t)offset;
    for (;;) {
        uint8_t byte = (uint8_t)sum;
        text[size++] = byte;
        sum >>= 8;
        if ((sum == 0 && byte < 128) || (sum == -1 && byte >= 128)) return size;
    }
}
