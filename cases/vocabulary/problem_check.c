/* Rules between fields of a problem. They must survive a struct of random bytes as long as its pointers are
 * valid: every number is checked before it is used as an index or factor. */
#include "cases/vocabulary/problem_check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_check_range(const char *field, int64_t value, int64_t lo, int64_t hi, fa_error *err) {
  if (value >= lo && value <= hi) return FA_OK;
  BAD("$.%s: %lld is not in %lld .. %lld", field, (long long)value, (long long)lo, (long long)hi);
}

fa_status fa_check_array(const char *field, const fa_int32_array *a, int64_t n, int64_t lo, int64_t hi,
                         fa_error *err) {
  if (a->n == 0) return FA_OK; /* absent */
  if (a->n < 0 || !a->v) BAD("$.%s: an array of %lld elements without data", field, (long long)a->n);
  if (a->n != n) BAD("$.%s: has %lld elements, must have %lld", field, (long long)a->n, (long long)n);
  for (int64_t i = 0; i < n; ++i)
    if (a->v[i] < lo || a->v[i] > hi)
      BAD("$.%s[%lld]: %d is not in %lld .. %lld", field, (long long)i, a->v[i], (long long)lo,
          (long long)hi);
  return FA_OK;
}

/* ---- scalars ---- */

static fa_status check_enums(const fa_problem *p, fa_error *err) {
  if ((unsigned)p->family >= FA_N_FAMILIES) BAD("$.family: unknown family number %d", (int)p->family);
  if (p->dtype != FA_F16 && p->dtype != FA_BF16 && p->dtype != FA_F32)
    BAD("$.dtype: must be f16, bf16 or f32");
  if ((unsigned)p->mask.type >= FA_N_MASKS) BAD("$.mask.type: unknown type number %d", (int)p->mask.type);
  if ((unsigned)p->mask.align > FA_ALIGN_TOP_LEFT)
    BAD("$.mask.align: unknown alignment number %d", (int)p->mask.align);
  if ((unsigned)p->empty_lse > FA_EMPTY_ZERO) BAD("$.empty_lse: unknown number %d", (int)p->empty_lse);
  if ((unsigned)p->block_sparse.source > FA_BLOCKS_DENSITY)
    BAD("$.block_sparse: unknown source number %d", (int)p->block_sparse.source);
  return FA_OK;
}

static fa_status check_sizes(const fa_problem *p, fa_error *err) {
  TRY(fa_check_range("batch", p->batch, 1, FA_MAX_BATCH, err));
  TRY(fa_check_range("heads_q", p->heads_q, 1, FA_MAX_HEADS, err));
  TRY(fa_check_range("heads_kv", p->heads_kv, 1, FA_MAX_HEADS, err));
  TRY(fa_check_range("seqlen_q", p->seqlen_q, 0, FA_MAX_LENGTH, err));
  TRY(fa_check_range("seqlen_k", p->seqlen_k, 0, FA_MAX_LENGTH, err));
  TRY(fa_check_range("head_dim", p->head_dim, 1, FA_MAX_HEAD_DIM, err));
  TRY(fa_check_range("head_dim_v", p->head_dim_v, 1, FA_MAX_HEAD_DIM, err));
  TRY(fa_check_range("splits", p->splits, 0, FA_MAX_SPLITS, err));
  if (p->heads_q % p->heads_kv)
    BAD("$.heads_q: %lld is not a multiple of heads_kv %lld", (long long)p->heads_q, (long long)p->heads_kv);
  return FA_OK;
}

static fa_status check_numbers(const fa_problem *p, fa_error *err) {
  /* Kernels take both as f32. */
  if (!(fabs(p->scale) <= FLT_MAX)) BAD("$.scale: %g is not a finite f32", p->scale);
  if (!(p->softcap >= 0 && p->softcap <= FLT_MAX))
    BAD("$.softcap: %g is not in 0 (off) .. the largest f32", p->softcap);
  if (p->softcap > 0 && !((float)p->softcap > 0)) BAD("$.softcap: %g is 0 in f32", p->softcap);
  if (!(p->dropout.p >= 0 && p->dropout.p < 1)) BAD("$.dropout.p: %.17g is not in [0, 1)", p->dropout.p);
  if ((float)p->dropout.p >= 1) BAD("$.dropout.p: %.17g is 1 in f32, must be in [0, 1)", p->dropout.p);
  return FA_OK;
}

static fa_status check_mask(const fa_problem *p, fa_error *err) {
  const fa_mask *m = &p->mask;
  TRY(fa_check_range("mask.left", m->left, -1, INT32_MAX, err));
  TRY(fa_check_range("mask.right", m->right, -1, INT32_MAX, err));
  TRY(fa_check_range("mask.size", m->size, 0, INT32_MAX, err));
  if (!fa_mask_has_left(m) && m->left != -1)
    BAD("$.mask.left: %lld, but only mask types \"window\" and \"chunk\" have a left edge",
        (long long)m->left);
  if (!fa_mask_has_edges(m) && m->right != -1)
    BAD("$.mask.right: %lld, but only mask type \"window\" has a right edge", (long long)m->right);
  if (m->type == FA_MASK_CHUNK && m->size == 0) BAD("$.mask.size: missing; a chunk has at least one key");
  if (m->type != FA_MASK_CHUNK && m->size != 0)
    BAD("$.mask.size: %lld, but only mask type \"chunk\" has a size", (long long)m->size);
  return FA_OK;
}

/* The bits replace a mask type that the diagonal ends, and what hides pairs in its own way. */
static fa_status check_mask_bits(const fa_problem *p, fa_error *err) {
  const fa_mask_bits *m = &p->mask_bits;
  if (!m->present) return FA_OK;
  if (p->family != FA_FLASH && p->family != FA_KVCACHE)
    BAD("$.mask_bits: family \"%s\" has none (flash and kvcache have)", fa_family_name(p->family));
  if ((unsigned)m->source >= FA_N_BITS_SOURCES) BAD("$.mask_bits: unknown source number %d", (int)m->source);
  if (!(m->density >= 0 && m->density <= 1)) BAD("$.mask_bits.density: %g is not in 0 .. 1", m->density);
  if (m->source != FA_BITS_DENSITY && m->density != 0)
    BAD("$.mask_bits.density: %g, but the bits are a tree's", m->density);
  if (!(m->empty_rows >= 0 && m->empty_rows <= 1))
    BAD("$.mask_bits.empty_rows: %g is not in 0 .. 1", m->empty_rows);
  if (p->mask.type != FA_MASK_NONE && p->mask.type != FA_MASK_WINDOW)
    BAD("$.mask_bits: they replace mask type \"%s\"; only a window may be beside them",
        fa_mask_describe(p->mask.type)->name);
  if (p->score_mod || p->mask_mod || p->block_sparse.present)
    BAD("$.mask_bits: not together with %s", p->score_mod  ? "score_mod"
                                             : p->mask_mod ? "mask_mod"
                                                           : "block_sparse");
  return FA_OK;
}

/* Byte offsets are int32; asked when all lengths are known to be right. */
static fa_status check_mask_bytes(const fa_problem *p, fa_error *err) {
  if (!p->mask_bits.present) return FA_OK;
  const int64_t bytes = fa_problem_mask_bytes(p, p->batch);
  if (bytes < 0 || bytes > INT32_MAX) BAD("$.mask_bits: a bit for every pair takes more than 2^31 - 1 bytes");
  return FA_OK;
}

/* What has no meaning, whatever a kernel can do: nobody trains through a cache, and the debug matrix is a
 * layout of the flash kernels. */
static fa_status check_flags(const fa_problem *p, fa_error *err) {
  if (p->backward && p->family == FA_KVCACHE) BAD("$.backward: family \"kvcache\" has no backward pass");
  if (p->grad_lse && !p->backward) BAD("$.grad_lse: true needs backward true");
  if (p->return_softmax && p->family != FA_FLASH)
    BAD("$.return_softmax: family \"%s\" has none (flash has)", fa_family_name(p->family));
  return FA_OK;
}

static fa_status check_lse_layout(const fa_problem *p, fa_error *err) {
  if (p->lse_padded && p->cu_seqlens_q.n == 0)
    BAD("$.lse_layout: \"padded\" is for packed queries (cu_seqlens_q), others have no rows to pad");
  return FA_OK;
}

static fa_status check_sinks(const fa_problem *p, fa_error *err) {
  const fa_sinks *s = &p->sinks;
  if (!s->present && (s->grad || s->in_lse))
    BAD("$.sinks: there are none, but they have a gradient or an LSE");
  /* Its gradient to a logit is dLSE P / (1 - p_sink), a quotient that overflows beside a large sink. */
  if (s->present && !s->in_lse && p->grad_lse)
    BAD("$.sinks.in_lse: false, but grad_lse is the gradient of an LSE that holds the sink");
  return FA_OK;
}

/* ---- variable length ---- */

static fa_status check_cu_seqlens(const char *field, const char *length, const fa_problem *p,
                                  const fa_int32_array *cu, int64_t longest, fa_error *err) {
  TRY(fa_check_array(field, cu, p->batch + 1, 0, FA_MAX_LENGTH, err));
  if (cu->n == 0) return FA_OK;
  if (cu->v[0] != 0) BAD("$.%s[0]: %d, must be 0", field, cu->v[0]);
  int64_t max = 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t n = (int64_t)cu->v[b + 1] - cu->v[b];
    if (n < 0)
      BAD("$.%s[%lld]: %d is less than the entry before it, %d; it must not decrease", field,
          (long long)(b + 1), cu->v[b + 1], cu->v[b]);
    if (n > max) max = n;
  }
  if (longest != max)
    BAD("$.%s: %lld, but the longest entry of %s has %lld", length, (long long)longest, field,
        (long long)max);
  return FA_OK;
}

static fa_status check_varlen(const fa_problem *p, fa_error *err) {
  if (p->cu_seqlens_k.n != 0 && p->family == FA_KVCACHE)
    BAD("$.cu_seqlens_k: family \"kvcache\" takes its keys from the cache; only its queries can be packed");
  const bool alone = p->family == FA_KVCACHE || p->family == FA_MERGE;
  if ((p->cu_seqlens_q.n != 0) != (p->cu_seqlens_k.n != 0) && !alone)
    BAD("$.%s: missing; without a cache cu_seqlens_q and cu_seqlens_k come together",
        p->cu_seqlens_q.n ? "cu_seqlens_k" : "cu_seqlens_q");
  TRY(check_cu_seqlens("cu_seqlens_q", "seqlen_q", p, &p->cu_seqlens_q, p->seqlen_q, err));
  TRY(check_cu_seqlens("cu_seqlens_k", "seqlen_k", p, &p->cu_seqlens_k, p->seqlen_k, err));
  TRY(fa_check_array("seqused_k", &p->seqused_k, p->batch, 0, p->seqlen_k, err));
  if (p->seqused_k.n != 0 && p->family == FA_KVCACHE)
    BAD("$.seqused_k: family \"kvcache\" takes its lengths from kvcache.len");
  const char *leftpad = p->family == FA_KVCACHE ? "kvcache.leftpad" : "leftpad_k";
  TRY(fa_check_array(leftpad, &p->leftpad_k, p->batch, 0, p->seqlen_k, err));
  for (int64_t b = 0; b < p->batch && p->family != FA_KVCACHE; ++b) {
    int64_t n = p->cu_seqlens_k.n ? (int64_t)p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b] : p->seqlen_k;
    if (p->seqused_k.n && p->seqused_k.v[b] > n)
      BAD("$.seqused_k[%lld]: %d is more than the entry's %lld keys", (long long)b, p->seqused_k.v[b],
          (long long)n);
    if (p->seqused_k.n) n = p->seqused_k.v[b];
    if (p->leftpad_k.n && p->leftpad_k.v[b] > n)
      BAD("$.leftpad_k[%lld]: %d is more than the entry's %lld keys", (long long)b, p->leftpad_k.v[b],
          (long long)n);
  }
  return FA_OK;
}

/* ---- ALiBi, KV cache ---- */

static fa_status check_alibi(const fa_problem *p, fa_error *err) {
  const fa_alibi *a = &p->alibi;
  if (!a->present) {
    if (a->standard || a->n != 0) BAD("$.alibi: absent, but has slopes");
    return FA_OK;
  }
  if (a->n != p->heads_q && a->n != p->batch * p->heads_q)
    BAD("$.alibi.slopes: %lld slopes; must be heads_q = %lld or batch x heads_q", (long long)a->n,
        (long long)p->heads_q);
  if (!a->slopes) BAD("$.alibi.slopes: missing");
  for (int64_t i = 0; i < a->n; ++i)
    if (!isfinite(a->slopes[i]))
      BAD("$.alibi.slopes: slope %lld is %g, must be a finite f32", (long long)i, a->slopes[i]);
  if (!a->standard) return FA_OK;
  float *want = malloc((size_t)p->heads_q * sizeof *want);
  if (!want) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_alibi_standard(p->heads_q, want);
  bool same = a->n == p->heads_q && memcmp(want, a->slopes, (size_t)a->n * sizeof *want) == 0;
  free(want);
  if (!same) BAD("$.alibi.slopes: said to be standard, but are not");
  return FA_OK;
}

/* Two sequences that append to one cache row would race. */
static fa_status check_cache_rows(const fa_problem *p, fa_error *err) {
  const fa_kvcache *c = &p->kvcache;
  TRY(fa_check_array("kvcache.batch_idx", &c->batch_idx, p->batch, 0, FA_MAX_BATCH - 1, err));
  if (c->batch_idx.n == 0) return FA_OK;
  if (c->page_size) BAD("$.kvcache.batch_idx: not together with page_size (the block table maps entries)");
  if (c->n_new == 0) return FA_OK;
  int64_t rows = fa_problem_cache_rows(p);
  int32_t *user = calloc((size_t)rows, sizeof *user); /* batch index + 1 */
  if (!user) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_status status = FA_OK;
  for (int64_t b = 0; b < p->batch && status == FA_OK; ++b) {
    int32_t *u = &user[c->batch_idx.v[b]];
    if (*u)
      status = fa_fail(err, FA_ERR_INPUT,
                       "$.kvcache.batch_idx[%lld]: cache row %d is entry %d's too; with new keys each "
                       "entry needs its own",
                       (long long)b, c->batch_idx.v[b], *u - 1);
    *u = (int32_t)b + 1;
  }
  free(user);
  return status;
}

/* A latent cache is stored once: what K's columns hold is final, rotary embedding included. */
static fa_status check_latent(const fa_problem *p, fa_error *err) {
  if (!p->kvcache.v_in_k) return FA_OK;
  if (p->head_dim_v > p->head_dim)
    BAD("$.mla: V is the first head_dim_v %lld columns of K, which has %lld", (long long)p->head_dim_v,
        (long long)p->head_dim);
  if (p->kvcache.rotary_dim)
    BAD("$.kvcache.rotary: not together with mla, whose cache holds columns that are rotated already");
  return FA_OK;
}

static fa_status check_kvcache(const fa_problem *p, fa_error *err) {
  const fa_kvcache *c = &p->kvcache;
  if (p->family != FA_KVCACHE) {
    if (c->present || c->len.n || c->batch_idx.n || c->n_new || c->page_size || c->rotary_dim ||
        c->shared_pages || c->v_in_k)
      BAD("$.kvcache: only family \"kvcache\" has one, not \"%s\"", fa_family_name(p->family));
    return FA_OK;
  }
  if (!c->present) BAD("$.kvcache: missing; family \"kvcache\" needs it");
  if (c->len.n == 0) BAD("$.kvcache.len: missing; one length for each of %lld entries", (long long)p->batch);
  TRY(fa_check_range("kvcache.new", c->n_new, 0, FA_MAX_LENGTH, err));
  TRY(fa_check_range("kvcache.page_size", c->page_size, 0, FA_MAX_LENGTH, err));
  TRY(fa_check_array("kvcache.len", &c->len, p->batch, 0, p->seqlen_k, err));
  if (c->page_size && p->seqlen_k % c->page_size)
    BAD("$.kvcache.page_size: seqlen_k %lld, the capacity of an entry, is not a multiple of %lld",
        (long long)p->seqlen_k, (long long)c->page_size);
  if (c->shared_pages && !c->page_size)
    BAD("$.kvcache.shared_pages: %lld, but there are no pages (page_size is 0)", (long long)c->shared_pages);
  TRY(fa_check_range("kvcache.shared_pages", c->shared_pages, 0,
                     c->page_size ? p->seqlen_k / c->page_size : 0, err));
  TRY(check_cache_rows(p, err));
  for (int64_t b = 0; b < p->batch; ++b) {
    if (c->len.v[b] + c->n_new > p->seqlen_k)
      BAD("$.kvcache.len[%lld]: %d and %lld new keys are more than the capacity seqlen_k %lld", (long long)b,
          c->len.v[b], (long long)c->n_new, (long long)p->seqlen_k);
    if (p->leftpad_k.n && p->leftpad_k.v[b] > c->len.v[b] + c->n_new)
      BAD("$.kvcache.leftpad[%lld]: %d is more than the entry's %lld keys", (long long)b, p->leftpad_k.v[b],
          (long long)(c->len.v[b] + c->n_new));
  }
  TRY(check_latent(p, err));
  TRY(fa_check_range("kvcache.rotary.dim", c->rotary_dim, 0, p->head_dim, err));
  if (c->rotary_dim % 2) BAD("$.kvcache.rotary.dim: %lld is odd", (long long)c->rotary_dim);
  if (c->rotary_interleaved && c->rotary_dim == 0)
    BAD("$.kvcache.rotary.interleaved: true, but rotary.dim is 0");
  return FA_OK;
}

/* ---- element counts ---- */

typedef struct tensor_size {
  const char *field, *tensor;
  bool present;
  int64_t dim[4];
} tensor_size;

static fa_status check_counts(const fa_problem *p, fa_error *err) {
  bool paged = p->kvcache.page_size > 0;
  int64_t rows_q = fa_problem_total_q(p), rows_k = fa_problem_total_k(p), hq = p->heads_q, hk = p->heads_kv;
  if (p->family == FA_KVCACHE && !paged) rows_k = fa_problem_cache_rows(p) * p->seqlen_k;
  int64_t round_q = (p->seqlen_q + 127) / 128 * 128, round_k = (p->seqlen_k + 127) / 128 * 128;
  const tensor_size sizes[] = {
      {"seqlen_q", "q", true, {rows_q, hq, p->head_dim, 1}},
      {"seqlen_k", "k", true, {rows_k, hk, p->head_dim, 1}},
      {"seqlen_k", "v", true, {rows_k, hk, p->head_dim_v, 1}},
      {"seqlen_q", "o", true, {rows_q, hq, p->head_dim_v, 1}},
      {"kvcache.new", "k_new", p->kvcache.n_new > 0, {p->batch, p->kvcache.n_new, hk, p->head_dim}},
      {"kvcache.page_size",
       "block_table",
       paged,
       {p->batch, paged ? p->seqlen_k / p->kvcache.page_size : 0, 1, 1}},
      {"bias",
       "bias",
       p->bias.present,
       {p->bias.per_batch ? p->batch : 1, p->bias.per_head ? hq : 1, p->bias.per_query ? p->seqlen_q : 1,
        p->seqlen_k}},
      {"lse_layout", "lse", p->lse_padded, {p->batch, hq, p->seqlen_q, 1}},
      {"merge.parts", "o_parts", p->family == FA_MERGE, {p->merge.parts, rows_q, hq, p->head_dim}},
      {"return_softmax", "p_debug", p->return_softmax, {p->batch, hq, round_q, round_k}},
  };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const tensor_size *s = &sizes[i];
    if (!s->present) continue;
    int64_t count = 1;
    bool overflow = false;
    for (int d = 0; d < 4; ++d) overflow |= __builtin_mul_overflow(count, s->dim[d], &count);
    if (overflow)
      BAD("$.%s: tensor %s would have more than 2^63 elements, the limit is %lld", s->field, s->tensor,
          (long long)FA_MAX_ELEMENTS);
    if (count > FA_MAX_ELEMENTS)
      BAD("$.%s: tensor %s would have %lld elements, the limit is %lld", s->field, s->tensor,
          (long long)count, (long long)FA_MAX_ELEMENTS);
  }
  return FA_OK;
}

fa_status fa_problem_validate(const fa_problem *p, fa_error *err) {
  TRY(check_enums(p, err));
  TRY(check_sizes(p, err));
  TRY(check_numbers(p, err));
  TRY(check_mask(p, err));
  TRY(check_mask_bits(p, err));
  TRY(check_flags(p, err));
  TRY(fa_check_merge(p, err));
  TRY(check_varlen(p, err));
  TRY(check_lse_layout(p, err));
  TRY(check_alibi(p, err));
  TRY(check_sinks(p, err));
  TRY(check_kvcache(p, err));
  TRY(fa_check_topk(p, err));
  TRY(fa_check_quantized(p, err));
  TRY(fa_check_block_sparse(p, err));
  TRY(fa_check_captures(p, err));
  TRY(check_mask_bytes(p, err));
  return check_counts(p, err);
}
