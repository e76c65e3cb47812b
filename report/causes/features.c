#include "report/causes/features.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define AT(name) (s->number[FA_SHAPE_##name])
#define FEATURE(name) static bool name(const fa_shape *s, double n)

/* ---- lengths ---- */

FEATURE(more_queries) {
  return AT(LEAST_SHIFT) < n;
}
FEATURE(more_keys) {
  return AT(MOST_SHIFT) > n;
}
FEATURE(as_many) {
  return AT(LEAST_SHIFT) == n && AT(MOST_SHIFT) == n;
}
FEATURE(no_queries) {
  return AT(SHORTEST_Q) == n;
}
FEATURE(no_keys) {
  return AT(SHORTEST_K) == n;
}
FEATURE(other_lengths) {
  return AT(SHORTEST_Q) != AT(SEQLEN_Q) + n;
}
FEATURE(q_above) {
  return AT(SEQLEN_Q) > n;
}
FEATURE(k_above) {
  return AT(LONGEST_K) > n;
}
FEATURE(q_divides) {
  return fmod(AT(SEQLEN_Q), n) == 0;
}
FEATURE(k_divides) {
  return fmod(AT(SEQLEN_K), n) == 0;
}
FEATURE(all_q_divide) {
  return fmod(AT(COMMON_Q), n) == 0;
}
FEATURE(all_k_divide) {
  return fmod(AT(COMMON_K), n) == 0;
}
static bool has_tail(double length, double tile, double most) {
  const double tail = fmod(length, tile);
  return length > tile && tail > 0 && tail <= most;
}
FEATURE(q_tail_of_64) {
  return has_tail(AT(SEQLEN_Q), 64, n);
}
FEATURE(q_tail_of_128) {
  return has_tail(AT(SEQLEN_Q), 128, n);
}
FEATURE(k_tail_of_64) {
  return has_tail(AT(SEQLEN_K), 64, n);
}
FEATURE(k_tail_of_128) {
  return has_tail(AT(SEQLEN_K), 128, n);
}

FEATURE(some_q_tail_of_64) {
  return AT(TAIL_Q_64) > 0 && AT(TAIL_Q_64) <= n;
}
FEATURE(some_q_tail_of_128) {
  return AT(TAIL_Q_128) > 0 && AT(TAIL_Q_128) <= n;
}
FEATURE(some_k_tail_of_64) {
  return AT(TAIL_K_64) > 0 && AT(TAIL_K_64) <= n;
}
FEATURE(some_k_tail_of_128) {
  return AT(TAIL_K_128) > 0 && AT(TAIL_K_128) <= n;
}

/* ---- masks: the window of row i is i + shift - left .. i + shift + right ---- */

FEATURE(row_without_keys) {
  const double shift = AT(TOP_LEFT) ? 0 : AT(LEAST_SHIFT), lost = AT(TOP_LEFT) ? -AT(LEAST_SHIFT) : 0;
  return AT(SHORTEST_K) == n || (AT(RIGHT) >= 0 && shift + AT(RIGHT) < 0) ||
         (AT(LEFT) >= 0 && lost > AT(LEFT));
}
FEATURE(left_bounded) {
  return AT(LEFT) >= n;
}
FEATURE(right_bounded) {
  return AT(RIGHT) >= n;
}
FEATURE(left_is) {
  return AT(LEFT) == n;
}
FEATURE(right_is) {
  return AT(RIGHT) == n;
}
FEATURE(right_past_keys) {
  return AT(RIGHT) >= n && AT(RIGHT) >= AT(LONGEST_K);
}
FEATURE(left_past_keys) {
  return AT(LEFT) >= n && AT(LEFT) >= AT(LONGEST_K);
}
FEATURE(right_past_queries) {
  return AT(RIGHT) >= n && AT(RIGHT) >= AT(SEQLEN_Q);
}
FEATURE(left_past_queries) {
  return AT(LEFT) >= n && AT(LEFT) >= AT(SEQLEN_Q);
}
FEATURE(right_hides_nothing) {
  const double shift = AT(TOP_LEFT) ? 0 : AT(LEAST_SHIFT);
  return AT(RIGHT) >= n && shift + AT(RIGHT) >= AT(LONGEST_K) - 1;
}
FEATURE(left_hides_nothing) {
  const double shift = AT(TOP_LEFT) ? 0 : AT(MOST_SHIFT);
  return AT(LEFT) >= n && AT(SEQLEN_Q) - 1 + shift - AT(LEFT) <= 0;
}
FEATURE(right_meets_keys) {
  const double shift = AT(TOP_LEFT) ? 0 : AT(LEAST_SHIFT);
  return AT(RIGHT) >= n && shift + AT(RIGHT) < AT(LONGEST_K);
}
FEATURE(left_meets_keys) {
  const double shift = AT(TOP_LEFT) ? 0 : AT(MOST_SHIFT);
  return AT(LEFT) >= n && AT(SEQLEN_Q) - 1 + shift - AT(LEFT) >= 0;
}
FEATURE(right_hides) {
  return AT(RIGHT) >= 0 && !right_hides_nothing(s, n);
}
FEATURE(left_hides) {
  return AT(LEFT) >= 0 && !left_hides_nothing(s, n);
}
FEATURE(narrow) {
  return AT(LEFT) >= 0 && AT(RIGHT) >= 0 && AT(LEFT) + AT(RIGHT) + 1 < n;
}

/* ---- heads ---- */

FEATURE(batch_above) {
  return AT(BATCH) > n;
}
FEATURE(heads_above) {
  return AT(HEADS_Q) > n;
}
FEATURE(kv_heads_above) {
  return AT(HEADS_KV) > n;
}
FEATURE(group_above) {
  return AT(HEADS_Q) > n * AT(HEADS_KV);
}
FEATURE(heads_divide) {
  return fmod(AT(HEADS_Q), n) == 0;
}
FEATURE(power_of_two_heads) {
  return AT(HEADS_Q) > n && exp2(round(log2(AT(HEADS_Q)))) == AT(HEADS_Q);
}
FEATURE(d_divides) {
  return fmod(AT(HEAD_DIM), n) == 0;
}
FEATURE(dv_divides) {
  return fmod(AT(HEAD_DIM_V), n) == 0;
}
FEATURE(d_above) {
  return AT(HEAD_DIM) > n;
}
FEATURE(dv_above) {
  return AT(HEAD_DIM_V) > n;
}
FEATURE(wider_v) {
  return AT(HEAD_DIM_V) > AT(HEAD_DIM) + n;
}
FEATURE(narrower_v) {
  return AT(HEAD_DIM_V) < AT(HEAD_DIM) - n;
}

/* ---- scores ---- */

FEATURE(scale_below) {
  return AT(SCALE) < n;
}
FEATURE(scale_is) {
  return AT(SCALE) == n;
}
FEATURE(scale_at_most) {
  return AT(SCALE) <= n;
}
FEATURE(usual_scale) {
  return fabs(AT(SCALE) * sqrt(AT(HEAD_DIM)) - 1) <= n;
}
FEATURE(softcap_below) {
  return AT(SOFTCAP) > 0 && AT(SOFTCAP) < n;
}
FEATURE(dropout_above) {
  return AT(DROPOUT) >= n;
}
FEATURE(bias_by_axis) {
  return strchr(s->name[FA_SHAPE_BIAS], (char)n) != NULL;
}
FEATURE(bias_for_all) {
  return s->name[FA_SHAPE_BIAS][0] && !strchr(s->name[FA_SHAPE_BIAS], (char)n);
}
FEATURE(slopes_by_batch) {
  return strcmp(s->name[FA_SHAPE_ALIBI], "batch") == n;
}

/* ---- memory and caches ---- */

FEATURE(gaps) {
  return AT(GAP) > n;
}
FEATURE(expanded) {
  return AT(EXPAND) > n;
}
FEATURE(offsets) {
  return AT(OFFSET) > n;
}
FEATURE(tails) {
  return AT(TAIL) > n;
}
FEATURE(repeated) {
  return AT(REPEAT) > n;
}
FEATURE(page_divides) {
  return AT(PAGE) > 0 && fmod(AT(PAGE), n) == 0;
}
FEATURE(more_new_keys) {
  return AT(NEW) > AT(SEQLEN_Q) + n;
}
FEATURE(fewer_new_keys) {
  return AT(NEW) > 0 && AT(NEW) < AT(SEQLEN_Q) - n;
}
FEATURE(whole_rotary) {
  return AT(ROTARY) > n && AT(ROTARY) == AT(HEAD_DIM);
}
FEATURE(splits_above) {
  return AT(SPLITS) > n;
}
FEATURE(q_block_divides) {
  return AT(Q_BLOCK) > 0 && fmod(AT(Q_BLOCK), n) == 0;
}
FEATURE(kv_block_divides) {
  return AT(KV_BLOCK) > 0 && fmod(AT(KV_BLOCK), n) == 0;
}

/* What one says first costs least. Tile sizes cost more, thresholds most: there are many of them, and one of many
 * fits by chance. */
enum { PLAIN = 8, USUAL = 9, TILE = 10, RARE = 11 };

#define DIVISIBLE(name, holds, n)                                                                            \
  { name " % " #n " == 0", name " % " #n " != 0", TILE, holds, n }
#define ALL_DIVISIBLE(name, holds, n)                                                                        \
  { "every " name " % " #n " == 0", "some " name " % " #n " != 0", TILE, holds, n }
#define SHORT_TAIL(name, holds, tile, most)                                                                  \
  { name " > " #tile " and " name " % " #tile " in 1.." #most, NULL, RARE, holds, most }
#define ABOVE(name, holds, n)                                                                                \
  { name " > " #n, name " <= " #n, RARE, holds, n }

static const fa_cause_feature features[] = {
    {"seqlen_q > seqlen_k", "seqlen_q <= seqlen_k", PLAIN, more_queries, 0},
    {"seqlen_q < seqlen_k", "seqlen_q >= seqlen_k", PLAIN, more_keys, 0},
    {"seqlen_q == seqlen_k", "seqlen_q != seqlen_k", PLAIN, as_many, 0},
    {"seqlen_q > 0", "seqlen_q == 0", PLAIN, q_above, 0},
    {"seqlen_k > 0", "seqlen_k == 0", PLAIN, k_above, 0},
    {"right >= seqlen_k", NULL, PLAIN, right_past_keys, 0},
    {"left >= seqlen_k", NULL, PLAIN, left_past_keys, 0},
    {"right >= seqlen_q", NULL, USUAL, right_past_queries, 0},
    {"left >= seqlen_q", NULL, USUAL, left_past_queries, 0},
    {"left is bounded", "left is unbounded", PLAIN, left_bounded, 0},
    {"right is bounded", "right is unbounded", PLAIN, right_bounded, 0},
    {"left == 0", "left != 0", USUAL, left_is, 0},
    {"right == 0", "right != 0", USUAL, right_is, 0},
    {"the right edge hides nothing", NULL, USUAL, right_hides_nothing, 0},
    {"the left edge hides nothing", NULL, USUAL, left_hides_nothing, 0},
    {"the right edge hides keys", NULL, USUAL, right_hides, 0},
    {"the left edge hides keys", NULL, USUAL, left_hides, 0},
    {"the right edge hides keys or ends with them", NULL, USUAL, right_meets_keys, 0},
    {"the left edge hides keys or begins with them", NULL, USUAL, left_meets_keys, 0},
    {"some row sees no key", "every row sees a key", PLAIN, row_without_keys, 0},
    {"some sequence has no queries", "every sequence has queries", PLAIN, no_queries, 0},
    {"some sequence has no keys", "every sequence has keys", PLAIN, no_keys, 0},
    {"sequences differ in length", NULL, USUAL, other_lengths, 0},
    {"scale < 0", "scale >= 0", PLAIN, scale_below, 0},
    {"scale == 0", "scale != 0", PLAIN, scale_is, 0},
    {"scale <= 0", "scale > 0", PLAIN, scale_at_most, 0},
    {"scale is 1/sqrt(head_dim)", "scale is not 1/sqrt(head_dim)", USUAL, usual_scale, 1e-6},
    {"batch > 1", "batch == 1", USUAL, batch_above, 1},
    {"heads_q > 1", "heads_q == 1", USUAL, heads_above, 1},
    {"heads_kv > 1", "heads_kv == 1", USUAL, kv_heads_above, 1},
    ABOVE("heads_q / heads_kv", group_above, 2),
    ABOVE("heads_q / heads_kv", group_above, 4),
    ABOVE("heads_q / heads_kv", group_above, 8),
    {"heads_q is a power of two", "heads_q is no power of two", TILE, power_of_two_heads, 0},
    DIVISIBLE("heads_q", heads_divide, 2),
    {"head_dim_v > head_dim", "head_dim_v <= head_dim", USUAL, wider_v, 0},
    {"head_dim_v < head_dim", "head_dim_v >= head_dim", USUAL, narrower_v, 0},
    DIVISIBLE("seqlen_k", k_divides, 128),
    DIVISIBLE("seqlen_k", k_divides, 64),
    DIVISIBLE("seqlen_k", k_divides, 32),
    DIVISIBLE("seqlen_k", k_divides, 16),
    DIVISIBLE("seqlen_k", k_divides, 8),
    DIVISIBLE("seqlen_k", k_divides, 2),
    DIVISIBLE("seqlen_q", q_divides, 128),
    DIVISIBLE("seqlen_q", q_divides, 64),
    DIVISIBLE("seqlen_q", q_divides, 32),
    DIVISIBLE("seqlen_q", q_divides, 16),
    DIVISIBLE("seqlen_q", q_divides, 8),
    DIVISIBLE("seqlen_q", q_divides, 2),
    DIVISIBLE("head_dim", d_divides, 128),
    DIVISIBLE("head_dim", d_divides, 64),
    DIVISIBLE("head_dim", d_divides, 32),
    DIVISIBLE("head_dim", d_divides, 16),
    DIVISIBLE("head_dim", d_divides, 8),
    DIVISIBLE("head_dim", d_divides, 2),
    DIVISIBLE("head_dim_v", dv_divides, 128),
    DIVISIBLE("head_dim_v", dv_divides, 64),
    DIVISIBLE("head_dim_v", dv_divides, 32),
    DIVISIBLE("head_dim_v", dv_divides, 16),
    DIVISIBLE("head_dim_v", dv_divides, 8),
    DIVISIBLE("head_dim_v", dv_divides, 2),
    SHORT_TAIL("seqlen_k", k_tail_of_128, 128, 8),
    SHORT_TAIL("seqlen_k", k_tail_of_128, 128, 16),
    SHORT_TAIL("seqlen_k", k_tail_of_128, 128, 64),
    SHORT_TAIL("seqlen_k", k_tail_of_64, 64, 1),
    SHORT_TAIL("seqlen_k", k_tail_of_64, 64, 8),
    SHORT_TAIL("seqlen_k", k_tail_of_64, 64, 16),
    SHORT_TAIL("seqlen_k", k_tail_of_64, 64, 32),
    SHORT_TAIL("seqlen_q", q_tail_of_128, 128, 8),
    SHORT_TAIL("seqlen_q", q_tail_of_128, 128, 64),
    SHORT_TAIL("seqlen_q", q_tail_of_64, 64, 1),
    SHORT_TAIL("seqlen_q", q_tail_of_64, 64, 8),
    SHORT_TAIL("seqlen_q", q_tail_of_64, 64, 32),
    {"some sequence's seqlen_k % 64 in 1..8, after a tile", NULL, RARE, some_k_tail_of_64, 8},
    {"some sequence's seqlen_k % 128 in 1..8, after a tile", NULL, RARE, some_k_tail_of_128, 8},
    {"some sequence's seqlen_k % 128 in 1..64, after a tile", NULL, RARE, some_k_tail_of_128, 64},
    {"some sequence's seqlen_q % 64 in 1..8, after a tile", NULL, RARE, some_q_tail_of_64, 8},
    {"some sequence's seqlen_q % 128 in 1..64, after a tile", NULL, RARE, some_q_tail_of_128, 64},
    ALL_DIVISIBLE("sequence's seqlen_k", all_k_divide, 128),
    ALL_DIVISIBLE("sequence's seqlen_k", all_k_divide, 64),
    ALL_DIVISIBLE("sequence's seqlen_k", all_k_divide, 16),
    ALL_DIVISIBLE("sequence's seqlen_q", all_q_divide, 128),
    ALL_DIVISIBLE("sequence's seqlen_q", all_q_divide, 64),
    ALL_DIVISIBLE("sequence's seqlen_q", all_q_divide, 16),
    ABOVE("seqlen_q", q_above, 1),
    ABOVE("seqlen_q", q_above, 16),
    ABOVE("seqlen_q", q_above, 32),
    ABOVE("seqlen_q", q_above, 64),
    ABOVE("seqlen_q", q_above, 128),
    ABOVE("seqlen_q", q_above, 256),
    ABOVE("seqlen_q", q_above, 512),
    ABOVE("seqlen_q", q_above, 1024),
    ABOVE("seqlen_k", k_above, 1),
    ABOVE("seqlen_k", k_above, 16),
    ABOVE("seqlen_k", k_above, 32),
    ABOVE("seqlen_k", k_above, 64),
    ABOVE("seqlen_k", k_above, 128),
    ABOVE("seqlen_k", k_above, 256),
    ABOVE("seqlen_k", k_above, 512),
    ABOVE("seqlen_k", k_above, 1024),
    ABOVE("head_dim", d_above, 32),
    ABOVE("head_dim", d_above, 64),
    ABOVE("head_dim", d_above, 96),
    ABOVE("head_dim", d_above, 128),
    ABOVE("head_dim", d_above, 192),
    ABOVE("head_dim", d_above, 256),
    ABOVE("head_dim_v", dv_above, 64),
    ABOVE("head_dim_v", dv_above, 128),
    ABOVE("head_dim_v", dv_above, 256),
    {"the window is narrower than 16 keys", NULL, RARE, narrow, 16},
    {"the window is narrower than 64 keys", NULL, RARE, narrow, 64},
    {"the window is narrower than 128 keys", NULL, RARE, narrow, 128},
    {"softcap < 1", NULL, RARE, softcap_below, 1},
    {"p >= 0.5", NULL, RARE, dropout_above, 0.5},
    {"bias differs by batch", NULL, USUAL, bias_by_axis, 'b'},
    {"bias differs by head", NULL, USUAL, bias_by_axis, 'h'},
    {"bias differs by row", NULL, USUAL, bias_by_axis, 'q'},
    {"bias is the same for all batches", NULL, USUAL, bias_for_all, 'b'},
    {"bias is the same for all heads", NULL, USUAL, bias_for_all, 'h'},
    {"bias is the same for all rows", NULL, USUAL, bias_for_all, 'q'},
    {"slopes differ by batch", NULL, USUAL, slopes_by_batch, 0},
    {"tensors have gaps", "tensors have no gaps", USUAL, gaps, 0},
    {"tensors are expanded", "no tensor is expanded", USUAL, expanded, 0},
    {"tensors begin off their alignment", "all tensors are aligned", USUAL, offsets, 0},
    {"tensors go on past the last token", NULL, USUAL, tails, 0},
    {"more than two runs are compared", NULL, RARE, repeated, 2},
    {"page_size % 64 == 0", NULL, TILE, page_divides, 64},
    {"page_size % 16 == 0", NULL, TILE, page_divides, 16},
    {"more new keys than queries", NULL, USUAL, more_new_keys, 0},
    {"fewer new keys than queries", NULL, USUAL, fewer_new_keys, 0},
    {"rotary_dim == head_dim", NULL, USUAL, whole_rotary, 0},
    {"splits > 1", "splits <= 1", USUAL, splits_above, 1},
    {"q_block % 128 == 0", NULL, TILE, q_block_divides, 128},
    {"q_block % 64 == 0", NULL, TILE, q_block_divides, 64},
    {"kv_block % 128 == 0", NULL, TILE, kv_block_divides, 128},
    {"kv_block % 64 == 0", NULL, TILE, kv_block_divides, 64},
};

const fa_cause_feature *fa_cause_feature_at(int i) {
  return i >= 0 && i < (int)(sizeof features / sizeof *features) ? &features[i] : NULL;
}

/* ---- words ---- */

static const fa_cause_sentence sentences[] = {
    {"f16", "dtype is f16", "dtype is not f16"},
    {"bf16", "dtype is bf16", "dtype is not bf16"},
    {"f32", "dtype is f32", "dtype is not f32"},
    {"flash", "family is flash", "family is not flash"},
    {"memeff", "family is memeff", "family is not memeff"},
    {"flex", "family is flex", "family is not flex"},
    {"kvcache", "family is kvcache", "family is not kvcache"},
    {"head_dim>128", "head_dim or head_dim_v > 128", "head_dim and head_dim_v <= 128"},
    {"head_dim%8", "head_dim or head_dim_v % 8 != 0", "head_dim and head_dim_v % 8 == 0"},
    {"causal", "mask is causal", "mask is not causal"},
    {"window", "mask is a window", "mask is no window"},
    {"top_left", "mask is aligned top left", "no mask is aligned top left"},
    {"bottom_right", "mask is aligned bottom right, and lengths differ", NULL},
    {"varlen", "sequences are packed", "sequences are not packed"},
    {"gqa", "heads_q > heads_kv", "heads_q == heads_kv"},
    {"head_dim_v", "head_dim_v != head_dim", "head_dim_v == head_dim"},
    {"dlse", "dLSE is given", "no dLSE is given"},
    {"append", "keys are appended", "no keys are appended"},
    {"paged", "the cache has pages", "the cache has no pages"},
    {"splits", "the case says how many splits", NULL},
    {"deterministic", "deterministic gradients", NULL},
    {"captures", "expressions read buffers", NULL},
    {"flash_more", NULL, NULL}, /* other words say what it is */
    {"memeff_more", NULL, NULL},
};

const fa_cause_sentence *fa_cause_sentence_of(const char *word) {
  for (size_t i = 0; i < sizeof sentences / sizeof *sentences; ++i)
    if (strcmp(sentences[i].word, word) == 0) return &sentences[i];
  return NULL;
}

/* ---- values that occur ---- */

void fa_cause_named_features(const fa_shape *s, void (*see)(void *ctx, const char *text), void *ctx) {
  static const char *const said[FA_SHAPE_NAMES] = {
      [FA_SHAPE_LAYOUT] = "layout is %s",   [FA_SHAPE_PACKING] = "%s is one packed tensor",
      [FA_SHAPE_FILL_Q] = "q's data: %s",   [FA_SHAPE_FILL_K] = "k's data: %s",
      [FA_SHAPE_FILL_V] = "v's data: %s",   [FA_SHAPE_FILL_BIAS] = "bias' data: %s",
      [FA_SHAPE_FILL_DO] = "dO's data: %s", [FA_SHAPE_ALIBI] = "ALiBi slopes: %s",
      [FA_SHAPE_LAW] = "law is %s"};
  char text[96];
  for (int i = 0; i < FA_SHAPE_NAMES; ++i) {
    if (!said[i] || !s->name[i][0]) continue;
    snprintf(text, sizeof text, said[i], s->name[i]);
    see(ctx, text);
  }
  snprintf(text, sizeof text, "head_dim == %g", AT(HEAD_DIM));
  see(ctx, text);
  snprintf(text, sizeof text, "head_dim_v == %g", AT(HEAD_DIM_V));
  see(ctx, text);
  if (AT(HEADS_KV) > 0) {
    snprintf(text, sizeof text, "heads_q / heads_kv == %g", AT(HEADS_Q) / AT(HEADS_KV));
    see(ctx, text);
  }
}
