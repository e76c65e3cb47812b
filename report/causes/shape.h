/* What a case is like, in numbers and names: the sizes and settings that a bug may depend on, without data or seeds.
 * Reports keep it of every case as one short text, so that failing and passing cases can be told apart. */
#ifndef FA_REPORT_CAUSES_SHAPE_H
#define FA_REPORT_CAUSES_SHAPE_H

#include "cases/recipe/case.h"

typedef enum fa_shape_number {
  FA_SHAPE_BATCH,
  FA_SHAPE_HEADS_Q,
  FA_SHAPE_HEADS_KV,
  FA_SHAPE_SEQLEN_Q, /* of packed sequences: the longest */
  FA_SHAPE_SEQLEN_K, /* the longest, or the capacity of a cache */
  FA_SHAPE_HEAD_DIM,
  FA_SHAPE_HEAD_DIM_V,
  FA_SHAPE_SHORTEST_Q,
  FA_SHAPE_SHORTEST_K, /* keys that there are: without hidden ones, and those appended with them */
  FA_SHAPE_LONGEST_K,
  FA_SHAPE_LEAST_SHIFT, /* keys minus queries of a sequence, the least and the most */
  FA_SHAPE_MOST_SHIFT,
  FA_SHAPE_COMMON_Q, /* greatest common divisor of the lengths: what divides each of them */
  FA_SHAPE_COMMON_K,
  FA_SHAPE_TAIL_Q_64, /* of the sequences longer than a tile, the shortest last tile that is not whole; 0: none */
  FA_SHAPE_TAIL_Q_128,
  FA_SHAPE_TAIL_K_64,
  FA_SHAPE_TAIL_K_128,
  FA_SHAPE_TOP_LEFT,
  FA_SHAPE_LEFT, /* edges of any mask; -1: unbounded, or no mask */
  FA_SHAPE_RIGHT,
  FA_SHAPE_SCALE,
  FA_SHAPE_SOFTCAP,
  FA_SHAPE_DROPOUT,
  FA_SHAPE_GAP, /* 1: some tensor has gaps, an expanded axis, an unaligned base, a tail */
  FA_SHAPE_EXPAND,
  FA_SHAPE_OFFSET,
  FA_SHAPE_TAIL,
  FA_SHAPE_REPEAT,
  FA_SHAPE_PAGE,
  FA_SHAPE_NEW, /* keys appended */
  FA_SHAPE_ROTARY,
  FA_SHAPE_SPLITS,
  FA_SHAPE_Q_BLOCK, /* of block lists */
  FA_SHAPE_KV_BLOCK,
  FA_SHAPE_NUMBERS
} fa_shape_number;

typedef enum fa_shape_name {
  FA_SHAPE_LAYOUT,
  FA_SHAPE_PACKING,
  FA_SHAPE_FILL_Q,
  FA_SHAPE_FILL_K, /* "" or as q's */
  FA_SHAPE_FILL_V,
  FA_SHAPE_FILL_BIAS,
  FA_SHAPE_FILL_DO,
  FA_SHAPE_BIAS,  /* its axes that are not broadcast: "bhq", "-" */
  FA_SHAPE_ALIBI, /* "standard", "heads", "batch" */
  FA_SHAPE_LAW,
  FA_SHAPE_NAMES
} fa_shape_name;

typedef struct fa_shape {
  double number[FA_SHAPE_NUMBERS];
  char name[FA_SHAPE_NAMES][24]; /* "": does not apply */
} fa_shape;

void fa_shape_of(const fa_case *c, fa_shape *out);
/* "b=2 hq=6 hkv=2 sq=113 sk=203 d=64 dv=64 right=0 fill=normal": what is as it usually is, is left out. */
void fa_shape_text(const fa_shape *s, char *text, size_t size);
/* Both at once. */
void fa_shape_text_of(const fa_case *c, char *text, size_t size);
/* False: the text lacks one of the sizes, as "" does. Keys that are not known are passed over. */
bool fa_shape_parse(const char *text, fa_shape *out);
/* About how much there is to compute, to compare cases by: query-key pairs times head dims. */
double fa_shape_work(const fa_shape *s);

#endif
