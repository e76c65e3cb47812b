/* The mistakes that this subject can be told to make: FA_PLANTED names those that it makes, and for which calls.
 *
 *   FA_PLANTED=window_right_one_fewer                           always
 *   FA_PLANTED=last_key_tile_lost:128                           with a number: here the size of a tile
 *   FA_PLANTED="mask_ignored@head_dim>64&dtype=f16,alibi_sign"  where conditions hold; several at once
 *   FA_PLANTED=three_bugs                                       a set of such
 *   FA_PLANTED=corrupt:bits:7                                   no mistake: outputs are spoilt (corrupt.h) */
#ifndef FA_TESTS_EXPLAIN_PLANTED_MISTAKES_H
#define FA_TESTS_EXPLAIN_PLANTED_MISTAKES_H

#include "gpu/plugin.h"

#include <stdbool.h>

/* A mistake is named as the hypothesis that should find it; a suffix after __ tells kinds of it apart. The second
 * argument is what it is without a number: 1, or a tile, a distance, a percentage. */
#define PL_MISTAKES(X)                                                                                       \
  X(scale_missing, 1)                                                                                        \
  X(scale_twice, 1)                                                                                          \
  X(scale_of_padded_head_dim, 1)                                                                             \
  X(scale_times, 90)                                                                                         \
  X(scale_log2e, 1)                                                                                          \
  X(lse_base_2, 1)                                                                                           \
  X(lse_without_max, 1)                                                                                      \
  X(lse_without_scale, 1)                                                                                    \
  X(lse_without_scale__of_max, 1)                                                                            \
  X(lse_negated, 1)                                                                                          \
  X(mask_other_corner, 1)                                                                                    \
  X(mask_one_key_more, 1)                                                                                    \
  X(mask_one_key_fewer, 1)                                                                                   \
  X(window_left_one_more, 1)                                                                                 \
  X(window_left_one_fewer, 1)                                                                                \
  X(window_right_one_more, 1)                                                                                \
  X(window_right_one_fewer, 1)                                                                               \
  X(window_ignored, 1)                                                                                       \
  X(window_left_ignored, 1)                                                                                  \
  X(window_right_ignored, 1)                                                                                 \
  X(mask_ignored, 1)                                                                                         \
  X(mask_whole_tiles, 64)                                                                                    \
  X(mask_whole_tiles__of_keys, 64)                                                                           \
  X(last_key_lost, 1)                                                                                        \
  X(last_key_tile_lost, 64)                                                                                  \
  X(last_key_tile_lost__in_part, 64)                                                                         \
  X(first_key_tile_lost, 64)                                                                                 \
  X(first_key_tile_lost__in_part, 64)                                                                        \
  X(keys_past_end_as_zeros, 64)                                                                              \
  X(last_rows_lost, 64)                                                                                      \
  X(other_kv_head_modulo, 1)                                                                                 \
  X(other_kv_head_neighbour, 1)                                                                              \
  X(first_kv_head_for_all, 1)                                                                                \
  X(other_sequence, 1)                                                                                       \
  X(other_page, 1)                                                                                           \
  X(k_for_v, 1)                                                                                              \
  X(v_for_k, 1)                                                                                              \
  X(q_for_k, 1)                                                                                              \
  X(softcap_missing, 1)                                                                                      \
  X(softcap_before_scale, 1)                                                                                 \
  X(softcap_twice, 1)                                                                                        \
  X(alibi_missing, 1)                                                                                        \
  X(alibi_other_corner, 1)                                                                                   \
  X(alibi_of_other_head, 1)                                                                                  \
  X(alibi_of_other_head__kv, 1)                                                                              \
  X(alibi_sign, 1)                                                                                           \
  X(bias_missing, 1)                                                                                         \
  X(bias_transposed, 1)                                                                                      \
  X(bias_of_other_head, 1)                                                                                   \
  X(bias_of_other_batch, 1)                                                                                  \
  X(bias_not_scaled, 1)                                                                                      \
  X(dbias_not_summed, 1)                                                                                     \
  X(dropout_missing, 1)                                                                                      \
  X(dropout_inverted, 1)                                                                                     \
  X(dropout_not_scaled, 1)                                                                                   \
  X(dropout_scaled_twice, 1)                                                                                 \
  X(dropout_other_rounds, 1)                                                                                 \
  X(dropout_other_offset, 1)                                                                                 \
  X(dropout_missing_in_backward, 1)                                                                          \
  X(delta_missing, 1)                                                                                        \
  X(delta_of_unrounded_o, 1)                                                                                 \
  X(delta_of_rounded_p, 1)                                                                                   \
  X(dq_without_scale, 1)                                                                                     \
  X(dk_without_scale, 1)                                                                                     \
  X(dq_scaled_twice, 1)                                                                                      \
  X(dk_scaled_twice, 1)                                                                                      \
  X(one_head_of_group, 1)                                                                                    \
  X(one_head_of_group__first, 1)                                                                             \
  X(one_head_of_group__lost, 1)                                                                              \
  X(dk_of_other_head, 1)                                                                                     \
  X(dlse_ignored, 1)                                                                                         \
  X(o_not_rescaled, 1000)                                                                                    \
  X(o_not_normalised, 1)                                                                                     \
  X(max_not_subtracted, 1)                                                                                   \
  X(l_not_rescaled, 1)                                                                                       \
  X(rows_swapped, 8)                                                                                         \
  X(columns_swapped, 1)                                                                                      \
  X(fragments_transposed, 1)                                                                                 \
  X(halves_swapped, 1)                                                                                       \
  X(output_zero, 1)                                                                                          \
  X(output_of_other_rows, 64)                                                                                \
  X(output_of_other_rows__queries, 64)                                                                       \
  X(rounded_p_bf16, 1)                                                                                       \
  X(rounded_p_bf16__in_ds, 1)                                                                                \
  X(rounded_p_f16, 1)                                                                                        \
  X(rounded_p_e4m3, 1)                                                                                       \
  X(rounded_p_e5m2, 1)                                                                                       \
  X(operands_tf32, 1)                                                                                        \
  X(operands_bf16, 1)                                                                                        \
  X(accumulate_f16, 1)                                                                                       \
  X(accumulate_f16__scores, 1)                                                                               \
  X(accumulate_bf16, 1)                                                                                      \
  X(accumulate_bf16__tiles, 64)                                                                              \
  X(truncated_instead_of_rounded, 1)                                                                         \
  X(score_mod_ignored, 1)                                                                                    \
  X(mask_mod_ignored, 1)                                                                                     \
  X(mask_mod_ignored__first_pair, 70)                                                                        \
  X(block_list_ignored, 1)                                                                                   \
  X(rotary_missing, 1)                                                                                       \
  X(rotary_other_style, 1)                                                                                   \
  X(cache_not_appended, 1)

#define PL_ENUMERATOR(name, number) PL_##name,
typedef enum pl_mistake { PL_MISTAKES(PL_ENUMERATOR) PL_N } pl_mistake;
#undef PL_ENUMERATOR

#define PL_PLANTED 8
#define PL_CONDITIONS 6

typedef struct pl_condition {
  char key[16], op[3], value[16];
  int64_t modulo; /* 0: the key's value itself, else its remainder */
} pl_condition;

typedef struct pl_planted {
  pl_mistake what;
  int64_t number;
  int n;
  pl_condition condition[PL_CONDITIONS];
} pl_planted;

typedef struct pl_plan {
  int n;
  pl_planted planted[PL_PLANTED];
} pl_plan;

/* text NULL or "": none. False: what it cannot read is in message. */
bool pl_plan_read(const char *text, pl_plan *out, char *message, size_t size);

/* number[PL_N]: 0 for a mistake that is not made in this call, else its number. */
void pl_plan_for(const pl_plan *plan, const fa_plugin_problem *p, int64_t *number);

/* What a condition compares: a number of the problem. False: no such key. */
bool pl_feature(const fa_plugin_problem *p, const char *key, int64_t *out);
bool pl_feature_word(const fa_plugin_problem *p, const char *key, const char **out);

#endif
