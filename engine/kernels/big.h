/* Whole numbers of up to 2048 bits, for what is computed of a sum and does not fit into 128 bits.

   A function answers 0 where a result has no room. */

#ifndef HALFJOIN_BIG_H
#define HALFJOIN_BIG_H

#include <stdint.h>

#define BIG_WORDS 64

typedef struct {
    int count, negative;      /* words; the last of them is not 0 */
    uint32_t word[BIG_WORDS]; /* of the absolute value, the least first */
} Big;

void big_of(__int128 number, Big *out);
int big_bits(const Big *number);
int big_compare(const Big *one, const Big *other); /* of absolute values: -1, 0 or 1 */
int big_read(const uint8_t *text, int64_t size, int dropped, Big *out); /* a kept sum, but for so many words of 0 */
int big_product(const Big *one, const Big *other, Big *out);
int big_difference(const Big *one, const Big *other, Big *out);
int big_shifted(const Big *number, int bits, Big *out); /* absolute values: what is shifted out is lost */
int big_quotient(const Big *one, const Big *other, Big *out, Big *rest); /* of absolute values */
int big_root(const Big *number, Big *out, int *exact); /* the whole root of the absolute value */

#endif
