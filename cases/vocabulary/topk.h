/* Lists of keys: each query row sees those that its list names, as in DeepSeek's sparse attention. The case has a
 * recipe; the lists are tensors (FA_T_TOPK_INDICES, FA_T_TOPK_LENGTH). All heads share them.
 *
 * An entry names a slot of the cache: page * page_size + slot of the page, or without pages the key's number in its
 * sequence. A negative one names none; without pages neither does one that is at least the sequence's number of keys.
 * The order does not matter, and a key that is named twice counts twice. Only the first `len` entries are of the list:
 * those behind may name any slot, whatever it holds. Keys that no row of their sequence names are NaN. */
#ifndef FA_CASES_VOCABULARY_TOPK_H
#define FA_CASES_VOCABULARY_TOPK_H

#include <stdint.h>

/* Where the entries are that name none. */
typedef enum fa_topk_place { FA_TOPK_END, FA_TOPK_FRONT, FA_TOPK_ANYWHERE, FA_TOPK_N_PLACES } fa_topk_place;

#define FA_MAX_TOPK ((int64_t)1 << 20)

const char *fa_topk_place_name(fa_topk_place place); /* "end", "front", "anywhere"; "?" out of range */

#endif
