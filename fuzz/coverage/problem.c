/* Features of a problem: lengths, heads, masks, scores, dropout, caches, splits. */
#include "cases/expr/ast.h"
#include "cases/vocabulary/problem_expr.h"
#include "fuzz/coverage/table.h"

static void cover_lengths(fa_coverage *v, const fa_problem *p) {
  static const int64_t edges[] = {0,  1,  2,  7,   8,   15,  16,  17,  31,  32,  33,  63, 64,
                                  65, 80, 96, 127, 128, 129, 191, 192, 193, 255, 256, 257};
  for (size_t k = 0; k < sizeof edges / sizeof *edges; ++k) {
    fa_coverage_see_number(v, FA_COVER_LENGTHS, 60, "seqlen_q ", edges[k], p->seqlen_q == edges[k]);
    fa_coverage_see_number(v, FA_COVER_LENGTHS, 60, "seqlen_k ", edges[k], p->seqlen_k == edges[k]);
  }
  fa_coverage_see(v, FA_COVER_LENGTHS, 300, "seqlen_k % 128 == 64", p->seqlen_k % 128 == 64);
  fa_coverage_see(v, FA_COVER_LENGTHS, 600, "seqlen_k % 64 == 1", p->seqlen_k % 64 == 1);
  fa_coverage_see(v, FA_COVER_LENGTHS, 800, "seqlen_k % 32 == 1", p->seqlen_k % 32 == 1);
  fa_coverage_see(v, FA_COVER_LENGTHS, 300, "seqlen_q % 64 == 63", p->seqlen_q % 64 == 63);
  fa_coverage_see(v, FA_COVER_LENGTHS, 600, "seqlen_q > 8 seqlen_k > 0",
                  p->seqlen_k > 0 && p->seqlen_q > 8 * p->seqlen_k);
  fa_coverage_see(v, FA_COVER_LENGTHS, 600, "seqlen_k > 8 seqlen_q > 0",
                  p->seqlen_q > 0 && p->seqlen_k > 8 * p->seqlen_q);
  fa_coverage_see(v, FA_COVER_LENGTHS, 2000, "seqlen_q == seqlen_k", p->seqlen_q == p->seqlen_k);
  fa_coverage_see(v, FA_COVER_LENGTHS, 100, "seqlen_k > 1000", p->seqlen_k > 1000);
}

static void cover_heads(fa_coverage *v, const fa_problem *p) {
  static const int64_t dims[] = {1,  2,  3,  4,  5,  6,  7,   8,   16,  24,  32,
                                 40, 48, 56, 72, 80, 96, 112, 128, 160, 192, 256};
  int64_t group = p->heads_q / p->heads_kv;
  for (size_t k = 0; k < sizeof dims / sizeof *dims; ++k)
    fa_coverage_see_number(v, FA_COVER_HEADS, 150, "head_dim ", dims[k], p->head_dim == dims[k]);
  fa_coverage_see(v, FA_COVER_HEADS, 4000, "head_dim 64 or 128, flash, 16 bit",
                  p->family == FA_FLASH && p->dtype != FA_F32 && (p->head_dim == 64 || p->head_dim == 128));
  fa_coverage_see(v, FA_COVER_HEADS, 500, "head_dim_v > head_dim", p->head_dim_v > p->head_dim);
  fa_coverage_see(v, FA_COVER_HEADS, 500, "head_dim_v < head_dim", p->head_dim_v < p->head_dim);
  for (int64_t g = 1; g <= 8; ++g)
    if (g != 6 && g != 7) fa_coverage_see_number(v, FA_COVER_HEADS, 200, "group of ", g, group == g);
  fa_coverage_see(v, FA_COVER_HEADS, 1500, "one KV head of many query heads",
                  p->heads_kv == 1 && p->heads_q > 1);
  fa_coverage_see(v, FA_COVER_HEADS, 4000, "batch > 1", p->batch > 1);
  fa_coverage_see(v, FA_COVER_OFFSETS, 8, "batch > 256", p->batch > 256);
  for (int f = 0; f < FA_N_FAMILIES; ++f)
    fa_coverage_see(v, FA_COVER_HEADS, f == FA_MERGE ? 900 : 1500, fa_family_name((fa_family)f),
                    p->family == (fa_family)f);
  fa_coverage_see(v, FA_COVER_HEADS, 5000, "f16", p->dtype == FA_F16);
  fa_coverage_see(v, FA_COVER_HEADS, 5000, "bf16", p->dtype == FA_BF16);
  fa_coverage_see(v, FA_COVER_HEADS, 1500, "f32", p->dtype == FA_F32);
}

/* Packed queries over a cache come without offsets of keys. */
static bool empty_sequence(const fa_int32_array *cu, int64_t b) {
  return cu->n > 0 && cu->v[b + 1] == cu->v[b];
}

static void cover_varlen(fa_coverage *v, const fa_problem *p) {
  bool varlen = fa_problem_is_varlen(p), first = false, last = false, middle = false, q_only = false,
       k_only = false, both = false;
  for (int64_t b = 0; varlen && b < p->batch; ++b) {
    bool q = empty_sequence(&p->cu_seqlens_q, b), k = empty_sequence(&p->cu_seqlens_k, b);
    first |= b == 0 && p->batch > 1 && (q || k);
    last |= b == p->batch - 1 && b > 0 && (q || k);
    middle |= b > 0 && b < p->batch - 1 && (q || k);
    q_only |= q && !k;
    k_only |= k && !q;
    both |= q && k;
  }
  fa_coverage_see(v, FA_COVER_VARLEN, 2500, "variable length", varlen);
  fa_coverage_see(v, FA_COVER_VARLEN, 250, "varlen: 8 entries and more", varlen && p->batch >= 8);
  fa_coverage_see(v, FA_COVER_VARLEN, 300, "varlen: first entry empty", first);
  fa_coverage_see(v, FA_COVER_VARLEN, 300, "varlen: middle entry empty", middle);
  fa_coverage_see(v, FA_COVER_VARLEN, 300, "varlen: last entry empty", last);
  fa_coverage_see(v, FA_COVER_VARLEN, 300, "varlen: no queries, but keys", q_only);
  fa_coverage_see(v, FA_COVER_VARLEN, 300, "varlen: queries, but no keys", k_only);
  fa_coverage_see(v, FA_COVER_VARLEN, 300, "varlen: neither", both);
  fa_coverage_see(v, FA_COVER_VARLEN, 30, "varlen: no query at all", varlen && fa_problem_total_q(p) == 0);
  fa_coverage_see(v, FA_COVER_VARLEN, 30, "varlen: no key at all", varlen && fa_problem_total_k(p) == 0);
  fa_coverage_see(v, FA_COVER_VARLEN, 700, "seqused_k", p->seqused_k.n > 0);
  fa_coverage_see(v, FA_COVER_VARLEN, 150, "leftpad_k, not in a cache",
                  p->leftpad_k.n > 0 && p->family != FA_KVCACHE);
}

static void cover_masks(fa_coverage *v, const fa_problem *p) {
  const fa_mask *m = &p->mask;
  bool window = fa_mask_has_edges(m);
  fa_coverage_see(v, FA_COVER_MASKS, 3000, "no mask", m->type == FA_MASK_NONE);
  fa_coverage_see(v, FA_COVER_MASKS, 4000, "causal", m->type == FA_MASK_CAUSAL);
  fa_coverage_see(v, FA_COVER_MASKS, 500, "causal, top left",
                  m->type == FA_MASK_CAUSAL && m->align == FA_ALIGN_TOP_LEFT);
  fa_coverage_see(v, FA_COVER_MASKS, 800, "causal, seqlen_q > seqlen_k: rows without keys",
                  m->type == FA_MASK_CAUSAL && m->align == FA_ALIGN_BOTTOM_RIGHT &&
                      p->seqlen_q > p->seqlen_k);
  fa_coverage_see(v, FA_COVER_MASKS, 2000, "window", window);
  fa_coverage_see(v, FA_COVER_MASKS, 100, "window, top left", window && m->align == FA_ALIGN_TOP_LEFT);
  fa_coverage_see(v, FA_COVER_MASKS, 150, "window: left open", window && m->left == -1);
  fa_coverage_see(v, FA_COVER_MASKS, 80, "window: right open", window && m->right == -1);
  fa_coverage_see(v, FA_COVER_MASKS, 200, "window: left 0", window && m->left == 0);
  fa_coverage_see(v, FA_COVER_MASKS, 300, "window: right 0", window && m->right == 0);
  fa_coverage_see(v, FA_COVER_MASKS, 150, "window: left seqlen_k - 1", window && m->left == p->seqlen_k - 1);
  fa_coverage_see(v, FA_COVER_MASKS, 150, "window: left seqlen_k", window && m->left == p->seqlen_k);
  fa_coverage_see(v, FA_COVER_MASKS, 150, "window: left > seqlen_k", window && m->left > p->seqlen_k);
  fa_coverage_see(v, FA_COVER_MASKS, 80, "window: right seqlen_q - 1", window && m->right == p->seqlen_q - 1);
  fa_coverage_see(v, FA_COVER_MASKS, 80, "window: right > seqlen_q", window && m->right > p->seqlen_q);
  fa_coverage_see(v, FA_COVER_MASKS, 50, "window (0, 0)", window && m->left == 0 && m->right == 0);
  fa_coverage_see(v, FA_COVER_MASKS, 300, "window, variable length", window && fa_problem_is_varlen(p));
}

static void cover_score(fa_coverage *v, const fa_problem *p) {
  const double plain = fa_default_scale(p->head_dim);
  fa_coverage_see(v, FA_COVER_SCORES, 200, "scale 0", p->scale == 0);
  fa_coverage_see(v, FA_COVER_SCORES, 300, "scale negative", p->scale < 0);
  fa_coverage_see(v, FA_COVER_SCORES, 300, "scale larger than usual", p->scale > plain);
  fa_coverage_see(v, FA_COVER_SCORES, 800, "softcap", p->softcap > 0);
  fa_coverage_see(v, FA_COVER_SCORES, 500, "ALiBi, standard slopes", p->alibi.present && p->alibi.standard);
  fa_coverage_see(v, FA_COVER_SCORES, 300, "ALiBi, own slopes",
                  p->alibi.present && !p->alibi.standard && p->alibi.n == p->heads_q);
  fa_coverage_see(v, FA_COVER_SCORES, 80, "ALiBi, own slopes per entry",
                  p->alibi.present && p->alibi.n > p->heads_q);
  const fa_bias *b = &p->bias;
  for (int k = 0; k < 8; ++k) {
    static const char *const names[] = {"bias [1,1,1,k]", "bias [b,1,1,k]", "bias [1,h,1,k]",
                                        "bias [b,h,1,k]", "bias [1,1,q,k]", "bias [b,1,q,k]",
                                        "bias [1,h,q,k]", "bias [b,h,q,k]"};
    fa_coverage_see(v, FA_COVER_SCORES, 60, names[k],
                    b->present && (int)b->per_batch + 2 * (int)b->per_head + 4 * (int)b->per_query == k);
  }
  fa_coverage_see(v, FA_COVER_SCORES, 1000, "bias with gradient", b->present && b->grad && p->backward);
  fa_coverage_see(v, FA_COVER_SCORES, 400, "bias without gradient", b->present && !b->grad);
}

static void cover_sinks(fa_coverage *v, const fa_problem *p) {
  const fa_sinks *s = &p->sinks;
  const bool hidden = fa_mask_has_edges(&p->mask);
  fa_coverage_see(v, FA_COVER_SCORES, 40, "sinks", s->present);
  fa_coverage_see(v, FA_COVER_SCORES, 15, "sinks with gradient", s->grad && p->backward);
  fa_coverage_see(v, FA_COVER_SCORES, 3, "sinks with gradient and grad_lse", s->grad && p->grad_lse);
  fa_coverage_see(v, FA_COVER_SCORES, 8, "sinks, LSE without them", s->present && !s->in_lse);
  fa_coverage_see(v, FA_COVER_SCORES, 5, "sinks under a softcap", s->present && p->softcap > 0);
  fa_coverage_see(v, FA_COVER_SCORES, 8, "sinks under a window", s->present && hidden);
  fa_coverage_see(v, FA_COVER_SCORES, 8, "sinks, groups of heads", s->present && p->heads_q > p->heads_kv);
  fa_coverage_see(v, FA_COVER_SCORES, 5, "sinks, splits", s->present && p->splits > 1);
  fa_coverage_see(v, FA_COVER_SCORES, 5, "sinks, pages", s->present && p->kvcache.page_size > 0);
  fa_coverage_see(v, FA_COVER_SCORES, 3, "sinks, no key in a row",
                  s->present && p->mask.type == FA_MASK_CAUSAL && p->seqlen_q > p->seqlen_k);
}

static void cover_dropout(fa_coverage *v, const fa_problem *p) {
  static const double chances[] = {0.1, 0.17, 0.5, 0.9, 0.001, 1e-5, 0.99};
  static const char *const names[] = {"dropout 0.1",   "dropout 0.17", "dropout 0.5", "dropout 0.9",
                                      "dropout 0.001", "dropout 1e-5", "dropout 0.99"};
  const fa_dropout *d = &p->dropout;
  for (int k = 0; k < 7; ++k) fa_coverage_see(v, FA_COVER_DROPOUT, 80, names[k], d->p == chances[k]);
  fa_coverage_see(v, FA_COVER_DROPOUT, 800, "dropout, flash", d->p > 0 && p->family == FA_FLASH);
  fa_coverage_see(v, FA_COVER_DROPOUT, 800, "dropout, memeff", d->p > 0 && p->family == FA_MEMEFF);
  fa_coverage_see(v, FA_COVER_DROPOUT, 200, "dropout, variable length", d->p > 0 && fa_problem_is_varlen(p));
  fa_coverage_see(v, FA_COVER_DROPOUT, 500, "dropout seed > 2^32", d->p > 0 && d->seed >> 32);
  fa_coverage_see(v, FA_COVER_DROPOUT, 500, "dropout offset > 2^32", d->p > 0 && d->offset >> 32);
  fa_coverage_see(v, FA_COVER_DROPOUT, 50, "dropout offset just below 2^32",
                  d->p > 0 && d->offset < 1ull << 32 && d->offset >> 31);
  fa_coverage_see(v, FA_COVER_DROPOUT, 300, "return_softmax", p->return_softmax);
}

/* True if score_mod reads a buffer of this rank (2: an element per pair) and type. */
static bool reads_like(const fa_problem *p, int rank, bool is_int) {
  fa_expr e;
  bool reads = false;
  if (!p->score_mod || p->n_captures == 0 || fa_expr_of(p, FA_EXPR_SCORE_MOD, &e, NULL) != FA_OK)
    return false;
  for (int k = 0; k < p->n_captures; ++k) {
    const fa_capture *c = &p->captures[k];
    const bool size = rank < 2 || (c->shape[0] == p->seqlen_q && c->shape[1] == p->seqlen_k);
    reads |= c->rank == rank && fa_capture_is_int(c) == is_int && size && fa_expr_reads(&e, k);
  }
  fa_expr_free(&e);
  return reads;
}

/* A buffer with strides of its own; repeated: one of them is 0 and repeats an element. */
static bool has_strides(const fa_problem *p, bool repeated) {
  bool found = false;
  for (int k = 0; k < p->n_captures; ++k) {
    const fa_capture *c = &p->captures[k];
    for (int i = 0; i < c->n_strides; ++i) found |= !repeated || (c->stride[i] == 0 && c->shape[i] > 1);
  }
  return found;
}

static void cover_buffers(fa_coverage *v, const fa_problem *p) {
  fa_coverage_see(v, FA_COVER_SCORES, 60, "buffer of bool", fa_problem_has_buffer(p, FA_BOOL, false));
  fa_coverage_see(v, FA_COVER_SCORES, 40, "buffer of i64", fa_problem_has_buffer(p, FA_I64, false));
  fa_coverage_see(v, FA_COVER_SCORES, 60, "buffer of f16", fa_problem_has_buffer(p, FA_F16, false));
  fa_coverage_see(v, FA_COVER_SCORES, 60, "buffer of bf16", fa_problem_has_buffer(p, FA_BF16, false));
  fa_coverage_see(v, FA_COVER_SCORES, 40, "gradient of a buffer of 16 bits",
                  fa_problem_has_buffer(p, FA_F16, true) || fa_problem_has_buffer(p, FA_BF16, true));
  fa_coverage_see(v, FA_COVER_SCORES, 60, "buffer with strides", has_strides(p, false));
  fa_coverage_see(v, FA_COVER_SCORES, 30, "buffer with an axis of stride 0", has_strides(p, true));
  fa_coverage_see(v, FA_COVER_SCORES, 5, "more than 8 buffers", p->n_captures > 8);
}

static void cover_families(fa_coverage *v, const fa_problem *p) {
  const fa_kvcache *c = &p->kvcache;
  const fa_block_sparse *s = &p->block_sparse;
  fa_coverage_see(v, FA_COVER_CACHE, 800, "cache: append", c->n_new > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 600, "cache: pages", c->page_size > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 30, "cache: page of 1", c->page_size == 1);
  fa_coverage_see(v, FA_COVER_CACHE, 300, "cache: pages and append", c->page_size > 0 && c->n_new > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 250, "cache: other rows", c->batch_idx.n > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 250, "cache: leftpad", c->present && p->leftpad_k.n > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 200, "cache: rotary", c->rotary_dim > 0 && !c->rotary_interleaved);
  fa_coverage_see(v, FA_COVER_CACHE, 200, "cache: rotary, interleaved", c->rotary_interleaved);
  fa_coverage_see(v, FA_COVER_CACHE, 200, "cache: rotary of a part",
                  c->rotary_dim > 0 && c->rotary_dim < p->head_dim);
  fa_coverage_see(v, FA_COVER_SPLITS, 600, "cache: splits", c->present && p->splits > 1);
  fa_coverage_see(v, FA_COVER_CACHE, 350, "cache: one query", c->present && p->seqlen_q == 1);
  fa_coverage_see(v, FA_COVER_SPLITS, 200, "splits elsewhere", !c->present && p->splits > 1);
  fa_coverage_see(v, FA_COVER_SCORES, 600, "blocks: density", s->present && s->source == FA_BLOCKS_DENSITY);
  fa_coverage_see(v, FA_COVER_SCORES, 300, "blocks: lists", s->present && s->source == FA_BLOCKS_LISTS);
  fa_coverage_see(v, FA_COVER_SCORES, 40, "blocks: from mask_mod",
                  s->present && s->source == FA_BLOCKS_MASK_MOD);
  fa_coverage_see(v, FA_COVER_SCORES, 400, "score_mod", p->score_mod);
  fa_coverage_see(v, FA_COVER_SCORES, 300, "mask_mod", p->mask_mod);
  fa_coverage_see(v, FA_COVER_SCORES, 300, "buffers of expressions", p->n_captures > 0);
  fa_coverage_see(v, FA_COVER_SCORES, 30, "buffer of one element", reads_like(p, 0, false));
  fa_coverage_see(v, FA_COVER_SCORES, 30, "buffer of as many elements as pairs", reads_like(p, 2, false));
  fa_coverage_see(v, FA_COVER_SCORES, 60, "i32 buffer in score_mod", reads_like(p, 1, true));
  cover_buffers(v, p);
  fa_coverage_see(v, FA_COVER_SCORES, 60, "blocks above 128",
                  s->present && (s->q_block > 128 || s->kv_block > 128));
  fa_coverage_see(v, FA_COVER_SCORES, 60, "blocks of 48, 80 or 96",
                  s->present && (s->q_block % 32 == 16 || s->kv_block % 32 == 16 || s->q_block == 96 ||
                                 s->kv_block == 96));
  fa_coverage_see(v, FA_COVER_SCORES, 40, "full blocks under mask_mod",
                  s->present && s->source == FA_BLOCKS_LISTS && p->mask_mod);
  fa_coverage_see(v, FA_COVER_SCORES, 80, "blocks: density 0",
                  s->present && s->source == FA_BLOCKS_DENSITY && s->density == 0);
  fa_coverage_see(v, FA_COVER_SCORES, 80, "blocks: density 1",
                  s->present && s->source == FA_BLOCKS_DENSITY && s->density == 1);
  fa_coverage_see(v, FA_COVER_SCORES, 90, "blocks: lists per head",
                  s->present && s->source == FA_BLOCKS_LISTS && s->list_heads > 1);
  fa_coverage_see(v, FA_COVER_SCORES, 10, "blocks: lists shared by some heads or entries",
                  s->present && s->source == FA_BLOCKS_LISTS &&
                      ((s->list_heads > 1 && s->list_heads < p->heads_q) ||
                       (s->list_batch > 1 && s->list_batch < p->batch)));
  fa_coverage_see(v, FA_COVER_SCORES, 300, "forward only", !p->backward && p->family != FA_KVCACHE);
  fa_coverage_see(v, FA_COVER_SCORES, 1500, "grad_lse", p->grad_lse);
  fa_coverage_see(v, FA_COVER_SCORES, 20, "padded LSE", p->lse_padded);
  fa_coverage_see(v, FA_COVER_SCORES, 3, "padded dLSE", p->lse_padded && p->grad_lse);
  fa_coverage_see(v, FA_COVER_SCORES, 150, "empty_lse 0", p->empty_lse == FA_EMPTY_ZERO);
  fa_coverage_see(v, FA_COVER_SCORES, 150, "memeff: empty_lse -inf",
                  p->family == FA_MEMEFF && p->empty_lse == FA_EMPTY_NEG_INF);
}

static void cover_splits(fa_coverage *v, const fa_problem *p) {
  static const int64_t primes[] = {2, 3, 5, 7};
  const int64_t blocks = (p->seqlen_k + 63) / 64;
  bool prime = false;
  for (size_t k = 0; k < sizeof primes / sizeof *primes; ++k) prime |= p->splits == primes[k];
  fa_coverage_see(v, FA_COVER_SPLITS, 100, "one split, asked for", p->splits == 1);
  fa_coverage_see(v, FA_COVER_SPLITS, 300, "a prime number of splits", prime);
  fa_coverage_see(v, FA_COVER_SPLITS, 100, "more splits than blocks of keys",
                  p->splits > 1 && p->splits > blocks);
  fa_coverage_see(v, FA_COVER_SPLITS, 60, "splits that a window or padding hides whole",
                  p->splits > 1 && blocks > 1 && (fa_mask_has_edges(&p->mask) || p->leftpad_k.n > 0));
}

static void cover_crowds(fa_coverage *v, const fa_problem *p) {
  fa_coverage_see(v, FA_COVER_OFFSETS, 1, "batch > 10000", p->batch > 10000);
  fa_coverage_see(v, FA_COVER_HEADS, 400, "group of an odd number above 1",
                  p->heads_q / p->heads_kv > 1 && p->heads_q / p->heads_kv % 2 == 1);
  fa_coverage_see(v, FA_COVER_HEADS, 800, "head_dim no multiple of 8", p->head_dim % 8 != 0);
  fa_coverage_see(v, FA_COVER_HEADS, 2000, "head_dim no multiple of 32", p->head_dim % 32 != 0);
  fa_coverage_see(v, FA_COVER_HEADS, 1000, "head_dim_v other than head_dim", p->head_dim_v != p->head_dim);
}

void fa_coverage_problem(fa_coverage *v, const fa_problem *p) {
  cover_lengths(v, p);
  cover_varlen(v, p);
  cover_masks(v, p);
  cover_heads(v, p);
  cover_crowds(v, p);
  cover_score(v, p);
  cover_dropout(v, p);
  cover_families(v, p);
  fa_coverage_cache(v, p);
  cover_splits(v, p);
  fa_coverage_mixed(v, p);
  fa_coverage_operators(v, p);
  fa_coverage_masks(v, p);
  fa_coverage_latent(v, p);
  fa_coverage_quantized(v, p);
  fa_coverage_merge(v, p);
  cover_sinks(v, p);
}
