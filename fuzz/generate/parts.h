/* The parts of the random case generator. Each part uses random streams of its own, so that data, layout and
 * features stay independent of each other: a change of shapes in one profile does not change all fills. */
#ifndef FA_FUZZ_GENERATE_PARTS_H
#define FA_FUZZ_GENERATE_PARTS_H

#include "cases/base/rng.h"
#include "cases/recipe/case.h"

/* One row of the table in fuzz/generate/draw.c: what a profile favours. Probabilities are in 0..1. */
typedef struct fa_gen_rules {
  int family[FA_N_FAMILIES]; /* weights */
  double varlen, causal, window, dropout, bias, blocks, alibi, softcap, scale;
  double expressions; /* of a flex case: score_mod, mask_mod or both */
  double sinks;
  double lse_padded; /* of cases whose queries are packed */
  double topk;       /* of cases over a cache: lists of keys in place of a mask */
  double quantized;  /* of flash cases and of those over a cache: operands of 8 bits */
  double mla;        /* of cases over a cache: latent attention; of flash cases: its prefill */
  double seqused, leftpad, splits, group, odd_dim, empty, crowd, layout, huge, fills;
  double chunk, mask_bits; /* of cases that have no other mask; bits: of families that can have them */
  bool mixed; /* every family may have every feature that makes sense, combinations that no kernel has too */
  int64_t pairs_dim; /* usual limit of batch * heads_q * Sq * Sk * (D + Dv): the cost of one case */
  int64_t longest;   /* lengths above this are not drawn */
  int even_heads; /* not 0: every length, a batch of 1 or 2 and every number of heads up to this are equally
                     likely, elements are 16 bits wide; pairs_dim is ignored */
  int dims;       /* head dim is then 64, or with 2 also 128 */
} fa_gen_rules;

/* How much of a profile's variety a case has. Draws after the first FA_GEN_WILD_DRAWS take turns. */
typedef enum fa_gen_tame {
  FA_GEN_WILD,         /* all of it */
  FA_GEN_TAME_RULES,   /* rare features are rarer, outputs are the usual ones */
  FA_GEN_TAME_LENGTHS, /* and lengths are whole tiles */
  FA_GEN_TAME_SQUARE,  /* and there are as many queries as keys */
  FA_GEN_N_TAME
} fa_gen_tame;
#define FA_GEN_WILD_DRAWS 32

typedef struct fa_gen {
  const fa_gen_rules *rules;
  uint64_t key;              /* of this case: computed from profile, seed and index */
  const fa_rng_edits *edits; /* draws that are given; NULL: none */
  fa_case *c;
  fa_gen_tame tame;
  int64_t budget; /* pairs (Sq * Sk summed over sequences) that one query head may have */
} fa_gen;

typedef enum fa_gen_stream {
  FA_GEN_FAMILY = 1,
  FA_GEN_HEADS,
  FA_GEN_DIMS,
  FA_GEN_LENGTHS,
  FA_GEN_VARLEN,
  FA_GEN_MASK,
  FA_GEN_DROPOUT,
  FA_GEN_SCORE,
  FA_GEN_BIAS,
  FA_GEN_BLOCKS,
  FA_GEN_CACHE,
  FA_GEN_OUTPUTS,
  FA_GEN_FILLS,
  FA_GEN_LAYOUT,
  FA_GEN_MEMORY,
  FA_GEN_EXPRESSIONS,
  FA_GEN_PAGES,
  FA_GEN_MIXED,
  FA_GEN_TAME,
  FA_GEN_SCORE_OPERATORS,
  FA_GEN_MASK_OPERATORS,
  FA_GEN_LIST_SHAPES,
  FA_GEN_MASKS,
  FA_GEN_MERGE,
  FA_GEN_SINKS,
  FA_GEN_N_STREAMS,
  FA_GEN_SINK_FILLS = FA_GEN_SINKS + 1000, /* beyond the others */
  FA_GEN_MLA,                              /* likewise: their draws cannot be given */
  FA_GEN_TOPK,
  FA_GEN_LSE_LAYOUT,
  FA_GEN_QUANTIZED,
  FA_GEN_QUANTIZED_FILLS
} fa_gen_stream;

static inline fa_rng fa_gen_rng(const fa_gen *g, fa_gen_stream stream) {
  fa_rng r = fa_rng_make(g->key, stream);
  r.edits = g->edits;
  return r;
}

/* ---- fuzz/generate/shape.c: family, heads, head dims, lengths ---- */
fa_status fa_gen_shape(fa_gen *g);
#define FA_GEN_USED_KEYS                                                                                     \
  1000 /* the first draw of used keys in stream FA_GEN_VARLEN, which other lengths come before */
/* A length from the edge table or log-uniform, at most longest; 0 with the rules' probability of empty
 * sequences. */
int64_t fa_gen_length(const fa_gen *g, fa_rng *r, int64_t longest);

/* ---- fuzz/generate/feature.c: masks, dropout, score chain, bias, outputs ---- */
fa_status fa_gen_features(fa_gen *g);

/* ---- fuzz/generate/masks.c: chunks and custom masks. After the features, because they replace a mask. ---- */
void fa_gen_masks(fa_gen *g);

/* ---- fuzz/generate/sparse.c: KV cache, block-sparse lists ---- */
fa_status fa_gen_cache(fa_gen *g);
fa_status fa_gen_blocks(fa_gen *g);

/* ---- fuzz/generate/mla.c: latent attention, if the chances are so ---- */
/* Heads, head dims and scale; after those of other cases, which it replaces. */
void fa_gen_mla_shape(fa_gen *g);
/* Pages of the size that its kernels have; draws that other caches do not have. */
void fa_gen_mla_pages(fa_gen *g);

/* ---- fuzz/generate/topk.c: lists of keys, if the chances are so. After the features, which it takes some of. ---- */
fa_status fa_gen_topk(fa_gen *g);

/* ---- fuzz/generate/quantized.c: operands of 8 bits, if the chances are so. After the features, which they take some of. ---- */
void fa_gen_quantized(fa_gen *g);
void fa_gen_quantized_fills(fa_gen *g); /* after the other fills */

/* ---- fuzz/generate/given.c: the rules of cases of which draws are given ---- */
fa_gen_rules fa_gen_given_rules(const fa_gen_rules *rules, bool wide);

/* ---- fuzz/generate/tame.c. They do nothing to a wild case. ---- */
fa_gen_rules fa_gen_tame_rules(const fa_gen_rules *rules);
void fa_gen_tame_lengths(fa_gen *g); /* after fa_gen_shape */
void fa_gen_tame_outputs(fa_gen *g); /* after fa_gen_features */

/* ---- fuzz/generate/expr.c: score_mod, mask_mod. After fa_problem_complete, because they use the lengths.
 * ---- */
fa_status fa_gen_expressions(fa_gen *g);

/* ---- fuzz/generate/merge.c: partial states, where the family is merge ---- */
fa_status fa_gen_merge(fa_gen *g); /* everything but data and memory */
void fa_gen_merge_fills(fa_gen *g);
/* A tensor to be given huge strides. */
fa_tensor_id fa_gen_merge_huge(fa_rng *r);

/* ---- fuzz/generate/data.c: fills, strides. After everything else, because they depend on the problem.
 * ---- */
void fa_gen_fills(fa_gen *g);
void fa_gen_layout(fa_gen *g);
/* Poison, repetitions and schedule; tokens past the last; huge strides. */
void fa_gen_memory(fa_gen *g);

#endif
