#include "report/causes/features.h"

#include <math.h>
#include <string.h>

#define AT(name) (s->number[FA_SHAPE_##name])
#define UNUSED __attribute__((unused))
#define FEATURE(name) static bool name(const fa_shape *s, fa_shape_number of UNUSED, double n UNUSED)

/* ---- of any number ---- */

FEATURE(above) {
  return s->number[of] > n;
}
FEATURE(at_least) {
  return s->number[of] >= n;
}
FEATURE(at_most) {
  return s->number[of] <= n;
}
FEATURE(below) {
  return s->number[of] < n;
}
FEATURE(is) {
  return s->number[of] == n;
}
FEATURE(divides) {
  return fmod(s->number[of], n) == 0;
}
/* Two numbers; n: which is the other. */
FEATURE(exceeds) {
  return s->number[of] > s->number[(int)n];
}
/* Of the edge of a window, which need not be bounded. */
FEATURE(reaches) {
  return s->number[of] >= 0 && s->number[of] >= s->number[(int)n];
}
/* Of something that there need not be: 0 is no multiple. */
FEATURE(parts) {
  return s->number[of] > 0 && fmod(s->number[of], n) == 0;
}
/* A number of a tail or a softcap, of which 0 says that there is none. */
FEATURE(up_to) {
  return s->number[of] > 0 && s->number[of] <= n;
}

/* ---- lengths ---- */

FEATURE(as_many) {
  return AT(LEAST_SHIFT) == 0 && AT(MOST_SHIFT) == 0;
}
FEATURE(other_lengths) {
  return AT(SHORTEST_Q) != AT(SEQLEN_Q);
}
static bool has_tail(double length, double tile, double most) {
  const double tail = fmod(length, tile);
  return length > tile && tail > 0 && tail <= most;
}
FEATURE(tail_of_64) {
  return has_tail(s->number[of], 64, n);
}
FEATURE(tail_of_128) {
  return has_tail(s->number[of], 128, n);
}

/* ---- masks: the window of row i is i + shift - left .. i + shift + right ---- */

FEATURE(row_without_keys) {
  const double shift = AT(TOP_LEFT) ? 0 : AT(LEAST_SHIFT), lost = AT(TOP_LEFT) ? -AT(LEAST_SHIFT) : 0;
  return AT(SHORTEST_K) == 0 || (AT(RIGHT) >= 0 && shift + AT(RIGHT) < 0) ||
         (AT(LEFT) >= 0 && lost > AT(LEFT));
}
FEATURE(right_hides_nothing) {
  const double shift = AT(TOP_LEFT) ? 0 : AT(LEAST_SHIFT);
  return AT(RIGHT) >= 0 && shift + AT(RIGHT) >= AT(LONGEST_K) - 1;
}
FEATURE(left_hides_nothing) {
  const double shift = AT(TOP_LEFT) ? 0 : AT(MOST_SHIFT);
  return AT(LEFT) >= 0 && AT(SEQLEN_Q) - 1 + shift - AT(LEFT) <= 0;
}
FEATURE(right_meets_keys) {
  const double shift = AT(TOP_LEFT) ? 0 : AT(LEAST_SHIFT);
  return AT(RIGHT) >= 0 && shift + AT(RIGHT) < AT(LONGEST_K);
}
FEATURE(left_meets_keys) {
  const double shift = AT(TOP_LEFT) ? 0 : AT(MOST_SHIFT);
  return AT(LEFT) >= 0 && AT(SEQLEN_Q) - 1 + shift - AT(LEFT) >= 0;
}
FEATURE(right_hides) {
  return AT(RIGHT) >= 0 && !right_hides_nothing(s, of, n);
}
FEATURE(left_hides) {
  return AT(LEFT) >= 0 && !left_hides_nothing(s, of, n);
}
FEATURE(narrow) {
  return AT(LEFT) >= 0 && AT(RIGHT) >= 0 && AT(LEFT) + AT(RIGHT) + 1 < n;
}

/* ---- heads and scores ---- */

FEATURE(group_above) {
  return AT(HEADS_Q) > n * AT(HEADS_KV);
}
FEATURE(power_of_two_heads) {
  return AT(HEADS_Q) > 0 && exp2(round(log2(AT(HEADS_Q)))) == AT(HEADS_Q);
}

/* ---- scores ---- */

FEATURE(usual_scale) {
  return fabs(AT(SCALE) * sqrt(AT(HEAD_DIM)) - 1) <= n;
}
FEATURE(bias_by_axis) {
  return strchr(s->name[FA_SHAPE_BIAS], (char)n) != NULL;
}
FEATURE(bias_for_all) {
  return s->name[FA_SHAPE_BIAS][0] && !strchr(s->name[FA_SHAPE_BIAS], (char)n);
}
FEATURE(slopes_by_batch) {
  return strcmp(s->name[FA_SHAPE_ALIBI], "batch") == 0;
}

/* ---- memory and caches ---- */

FEATURE(fewer_new_keys) {
  return AT(NEW) > 0 && AT(NEW) < AT(SEQLEN_Q);
}
FEATURE(whole_rotary) {
  return AT(ROTARY) > 0 && AT(ROTARY) == AT(HEAD_DIM);
}

/* What one says first costs least. Tile sizes cost more, thresholds most: there are many of them, and one of many
 * fits by chance. */
enum { PLAIN = 8, USUAL = 9, TILE = 10, RARE = 11 };

#define N(name) FA_SHAPE_##name
#define NO_NUMBER FA_SHAPE_NUMBERS
#define DIVISIBLE(name, of, n)                                                                               \
  { name " % " #n " == 0", name " % " #n " != 0", TILE, divides, of, n }
#define DIVISIBLE_BY_TILES(name, of)                                                                         \
  DIVISIBLE(name, of, 128), DIVISIBLE(name, of, 64), DIVISIBLE(name, of, 32), DIVISIBLE(name, of, 16),       \
      DIVISIBLE(name, of, 8), DIVISIBLE(name, of, 2)
#define ALL_DIVISIBLE(name, of, n)                                                                           \
  {                                                                                                          \
    "every sequence's " name " % " #n " == 0", "some sequence's " name " % " #n " != 0", TILE, divides, of,  \
        n                                                                                                    \
  }
#define SHORT_TAIL(name, of, tile, most)                                                                     \
  { name " > " #tile " and " name " % " #tile " in 1.." #most, NULL, RARE, tail_of_##tile, of, most }
#define SOME_SHORT_TAIL(name, of, tile, most)                                                                \
  { "some sequence's " name " % " #tile " in 1.." #most ", after a tile", NULL, RARE, up_to, of, most }
#define ABOVE_BY(name, holds, of, n)                                                                         \
  { name " > " #n, name " <= " #n, RARE, holds, of, n }
#define ABOVE(name, of, n) ABOVE_BY(name, above, of, n)
#define ABOVE_TILES(name, of)                                                                                \
  ABOVE(name, of, 1), ABOVE(name, of, 16), ABOVE(name, of, 32), ABOVE(name, of, 64), ABOVE(name, of, 128),   \
      ABOVE(name, of, 256), ABOVE(name, of, 512), ABOVE(name, of, 1024)

static const fa_cause_feature features[] = {
    {"seqlen_q > seqlen_k", "seqlen_q <= seqlen_k", PLAIN, below, N(LEAST_SHIFT), 0},
    {"seqlen_q < seqlen_k", "seqlen_q >= seqlen_k", PLAIN, above, N(MOST_SHIFT), 0},
    {"seqlen_q == seqlen_k", "seqlen_q != seqlen_k", PLAIN, as_many, NO_NUMBER, 0},
    {"seqlen_q > 0", "seqlen_q == 0", PLAIN, above, N(SEQLEN_Q), 0},
    {"seqlen_k > 0", "seqlen_k == 0", PLAIN, above, N(LONGEST_K), 0},
    {"right >= seqlen_k", NULL, PLAIN, reaches, N(RIGHT), N(LONGEST_K)},
    {"left >= seqlen_k", NULL, PLAIN, reaches, N(LEFT), N(LONGEST_K)},
    {"right >= seqlen_q", NULL, USUAL, reaches, N(RIGHT), N(SEQLEN_Q)},
    {"left >= seqlen_q", NULL, USUAL, reaches, N(LEFT), N(SEQLEN_Q)},
    {"left is bounded", "left is unbounded", PLAIN, at_least, N(LEFT), 0},
    {"right is bounded", "right is unbounded", PLAIN, at_least, N(RIGHT), 0},
    {"left == 0", "left != 0", USUAL, is, N(LEFT), 0},
    {"right == 0", "right != 0", USUAL, is, N(RIGHT), 0},
    {"the right edge hides nothing", NULL, USUAL, right_hides_nothing, NO_NUMBER, 0},
    {"the left edge hides nothing", NULL, USUAL, left_hides_nothing, NO_NUMBER, 0},
    {"the right edge hides keys", NULL, USUAL, right_hides, NO_NUMBER, 0},
    {"the left edge hides keys", NULL, USUAL, left_hides, NO_NUMBER, 0},
    {"the right edge hides keys or ends with them", NULL, USUAL, right_meets_keys, NO_NUMBER, 0},
    {"the left edge hides keys or begins with them", NULL, USUAL, left_meets_keys, NO_NUMBER, 0},
    {"some row sees no key", "every row sees a key", PLAIN, row_without_keys, NO_NUMBER, 0},
    {"some sequence has no queries", "every sequence has queries", PLAIN, is, N(SHORTEST_Q), 0},
    {"some sequence has no keys", "every sequence has keys", PLAIN, is, N(SHORTEST_K), 0},
    {"sequences differ in length", NULL, USUAL, other_lengths, NO_NUMBER, 0},
    {"scale < 0", "scale >= 0", PLAIN, below, N(SCALE), 0},
    {"scale == 0", "scale != 0", PLAIN, is, N(SCALE), 0},
    {"scale <= 0", "scale > 0", PLAIN, at_most, N(SCALE), 0},
    {"scale is 1/sqrt(head_dim)", "scale is not 1/sqrt(head_dim)", USUAL, usual_scale, NO_NUMBER, 1e-6},
    {"batch > 1", "batch == 1", USUAL, above, N(BATCH), 1},
    {"heads_q > 1", "heads_q == 1", USUAL, above, N(HEADS_Q), 1},
    {"heads_kv > 1", "heads_kv == 1", USUAL, above, N(HEADS_KV), 1},
    ABOVE_BY("heads_q / heads_kv", group_above, NO_NUMBER, 2),
    ABOVE_BY("heads_q / heads_kv", group_above, NO_NUMBER, 4),
    ABOVE_BY("heads_q / heads_kv", group_above, NO_NUMBER, 8),
    {"heads_q is a power of two", "heads_q is no power of two", TILE, power_of_two_heads, NO_NUMBER, 0},
    DIVISIBLE("heads_q", N(HEADS_Q), 2),
    {"head_dim_v > head_dim", "head_dim_v <= head_dim", USUAL, exceeds, N(HEAD_DIM_V), N(HEAD_DIM)},
    {"head_dim_v < head_dim", "head_dim_v >= head_dim", USUAL, exceeds, N(HEAD_DIM), N(HEAD_DIM_V)},
    DIVISIBLE_BY_TILES("seqlen_k", N(SEQLEN_K)),
    DIVISIBLE_BY_TILES("seqlen_q", N(SEQLEN_Q)),
    DIVISIBLE_BY_TILES("head_dim", N(HEAD_DIM)),
    DIVISIBLE_BY_TILES("head_dim_v", N(HEAD_DIM_V)),
    SHORT_TAIL("seqlen_k", N(SEQLEN_K), 128, 8),
    SHORT_TAIL("seqlen_k", N(SEQLEN_K), 128, 16),
    SHORT_TAIL("seqlen_k", N(SEQLEN_K), 128, 64),
    SHORT_TAIL("seqlen_k", N(SEQLEN_K), 64, 1),
    SHORT_TAIL("seqlen_k", N(SEQLEN_K), 64, 8),
    SHORT_TAIL("seqlen_k", N(SEQLEN_K), 64, 16),
    SHORT_TAIL("seqlen_k", N(SEQLEN_K), 64, 32),
    SHORT_TAIL("seqlen_q", N(SEQLEN_Q), 128, 8),
    SHORT_TAIL("seqlen_q", N(SEQLEN_Q), 128, 64),
    SHORT_TAIL("seqlen_q", N(SEQLEN_Q), 64, 1),
    SHORT_TAIL("seqlen_q", N(SEQLEN_Q), 64, 8),
    SHORT_TAIL("seqlen_q", N(SEQLEN_Q), 64, 32),
    SOME_SHORT_TAIL("seqlen_k", N(TAIL_K_64), 64, 8),
    SOME_SHORT_TAIL("seqlen_k", N(TAIL_K_128), 128, 8),
    SOME_SHORT_TAIL("seqlen_k", N(TAIL_K_128), 128, 64),
    SOME_SHORT_TAIL("seqlen_q", N(TAIL_Q_64), 64, 8),
    SOME_SHORT_TAIL("seqlen_q", N(TAIL_Q_128), 128, 64),
    ALL_DIVISIBLE("seqlen_k", N(COMMON_K), 128),
    ALL_DIVISIBLE("seqlen_k", N(COMMON_K), 64),
    ALL_DIVISIBLE("seqlen_k", N(COMMON_K), 16),
    ALL_DIVISIBLE("seqlen_q", N(COMMON_Q), 128),
    ALL_DIVISIBLE("seqlen_q", N(COMMON_Q), 64),
    ALL_DIVISIBLE("seqlen_q", N(COMMON_Q), 16),
    ABOVE_TILES("seqlen_q", N(SEQLEN_Q)),
    ABOVE_TILES("seqlen_k", N(LONGEST_K)),
    ABOVE("head_dim", N(HEAD_DIM), 32),
    ABOVE("head_dim", N(HEAD_DIM), 64),
    ABOVE("head_dim", N(HEAD_DIM), 96),
    ABOVE("head_dim", N(HEAD_DIM), 128),
    ABOVE("head_dim", N(HEAD_DIM), 192),
    ABOVE("head_dim", N(HEAD_DIM), 256),
    ABOVE("head_dim_v", N(HEAD_DIM_V), 64),
    ABOVE("head_dim_v", N(HEAD_DIM_V), 128),
    ABOVE("head_dim_v", N(HEAD_DIM_V), 256),
    {"the window is narrower than 16 keys", NULL, RARE, narrow, NO_NUMBER, 16},
    {"the window is narrower than 64 keys", NULL, RARE, narrow, NO_NUMBER, 64},
    {"the window is narrower than 128 keys", NULL, RARE, narrow, NO_NUMBER, 128},
    {"softcap <= 1", NULL, RARE, up_to, N(SOFTCAP), 1},
    {"p >= 0.5", NULL, RARE, at_least, N(DROPOUT), 0.5},
    {"bias differs by batch", NULL, USUAL, bias_by_axis, NO_NUMBER, 'b'},
    {"bias differs by head", NULL, USUAL, bias_by_axis, NO_NUMBER, 'h'},
    {"bias differs by row", NULL, USUAL, bias_by_axis, NO_NUMBER, 'q'},
    {"bias is the same for all batches", NULL, USUAL, bias_for_all, NO_NUMBER, 'b'},
    {"bias is the same for all heads", NULL, USUAL, bias_for_all, NO_NUMBER, 'h'},
    {"bias is the same for all rows", NULL, USUAL, bias_for_all, NO_NUMBER, 'q'},
    {"slopes differ by batch", NULL, USUAL, slopes_by_batch, NO_NUMBER, 0},
    {"tensors have gaps", "tensors have no gaps", USUAL, above, N(GAP), 0},
    {"tensors are expanded", "no tensor is expanded", USUAL, above, N(EXPAND), 0},
    {"tensors begin off their alignment", "all tensors are aligned", USUAL, above, N(OFFSET), 0},
    {"tensors go on past the last token", NULL, USUAL, above, N(TAIL), 0},
    {"more than two runs are compared", NULL, RARE, above, N(REPEAT), 2},
    {"page_size % 64 == 0", NULL, TILE, parts, N(PAGE), 64},
    {"page_size % 16 == 0", NULL, TILE, parts, N(PAGE), 16},
    {"more new keys than queries", NULL, USUAL, exceeds, N(NEW), N(SEQLEN_Q)},
    {"fewer new keys than queries", NULL, USUAL, fewer_new_keys, NO_NUMBER, 0},
    {"rotary_dim == head_dim", NULL, USUAL, whole_rotary, NO_NUMBER, 0},
    {"splits > 1", "splits <= 1", USUAL, above, N(SPLITS), 1},
    {"q_block % 128 == 0", NULL, TILE, parts, N(Q_BLOCK), 128},
    {"q_block % 64 == 0", NULL, TILE, parts, N(Q_BLOCK), 64},
    {"kv_block % 128 == 0", NULL, TILE, parts, N(KV_BLOCK), 128},
    {"kv_block % 64 == 0", NULL, TILE, parts, N(KV_BLOCK), 64},
};

const fa_cause_feature *fa_cause_feature_at(int i) {
  return i >= 0 && i < (int)(sizeof features / sizeof *features) ? &features[i] : NULL;
}
