/* Macros of the key readers (cases/codec/json.c, cases/codec/keys.c, cases/codec/keys_flex.c). */
#ifndef FA_CASES_CODEC_KEYS_H
#define FA_CASES_CODEC_KEYS_H

#include "cases/codec/read.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define TRY(e)                                                                                               \
  do {                                                                                                       \
    fa_status try_status = (e);                                                                              \
    if (try_status != FA_OK) return try_status;                                                              \
  } while (0)

/* One key's reader; P is the problem it reads into. */
#define READER(name) static fa_status name(fa_case_reader *r, const cJSON *v)
#define P (r->c.problem)

/* Reads a word into an enum whose values are the positions in the list of words. */
#define READ_WORD(field, ...)                                                                                \
  do {                                                                                                       \
    static const char *const words[] = {__VA_ARGS__};                                                        \
    int word = 0;                                                                                            \
    TRY(fa_read_word(r, v, words, (int)(sizeof words / sizeof *words), &word));                              \
    field = word;                                                                                            \
    return FA_OK;                                                                                            \
  } while (0)

/* Keys whose value is an object. */
fa_case_read_fn fa_read_mask, fa_read_dropout, fa_read_alibi, fa_read_fill, fa_read_bias, fa_read_kvcache,
    fa_read_strides, fa_read_block_sparse, fa_read_buffers, fa_read_zero, fa_read_mask_bits, fa_read_merge,
    fa_read_sinks, fa_read_mla, fa_read_topk, fa_read_quantized;
/* A fill that tensor id may have; FA_T_COUNT: that every filled tensor may have. */
fa_status fa_read_fill_name(fa_case_reader *r, const cJSON *v, fa_tensor_id id, fa_fill *out);
/* Defaults of family merge, and sizes that its case may not give apart; after every key was read, and before
 * fa_problem_complete. */
fa_status fa_read_merge_finish(fa_case_reader *r);
/* The sizes and the scale that follow from "mla". After the other defaults. */
fa_status fa_read_mla_finish(fa_case_reader *r);

/* Whether queries are of 8 bits where nothing is said. */
void fa_read_quantized_finish(fa_case_reader *r);

#endif
