#include "gpu/contract/lse.h"

#include "cases/tensors/guard.h"

#include <math.h>
#include <string.h>

#define LN_2 0.693147180559945309417232121458

bool fa_contract_lse_is_ours(const fa_contract *c) {
  return !c->lse_base_2 && !c->lse_unscaled && c->lse_layout == FA_LSE_AS_CALL && c->lse_dtype == FA_F32 &&
         c->lse_alibi == FA_LSE_ALIBI_DISTANCE;
}

void fa_contract_own_lse(fa_contract *c) {
  const fa_tensor_bits outputs = c->outputs;
  fa_contract_init(c);
  c->outputs = outputs;
}

/* ---- layout ---- */

void fa_contract_lse_describe(const fa_problem *p, const fa_contract *c, fa_tensor *theirs) {
  const bool packed = p->cu_seqlens_q.n > 0 && c->lse_layout != FA_LSE_PADDED && !p->lse_padded;
  const bool tokens = c->lse_layout == FA_LSE_TOKENS_HEADS;
  const int64_t rows = packed ? fa_problem_total_q(p) : p->seqlen_q;
  int64_t step = 1;
  *theirs = (fa_tensor){.dtype = c->lse_dtype, .rank = packed ? 2 : 3};
  theirs->shape[0] = p->batch;
  theirs->shape[theirs->rank - 2] = tokens ? rows : p->heads_q;
  theirs->shape[theirs->rank - 1] = tokens ? p->heads_q : rows;
  for (int a = theirs->rank - 1; a >= 0; step *= theirs->shape[a--]) theirs->stride[a] = step;
}

/* Where their tensor has row i of head h of sequence b, whose first row is token `start` of a packed call. */
static const char *their_element(const fa_contract *c, const fa_tensor *theirs, int64_t b, int64_t h,
                                 int64_t i, int64_t start) {
  const bool tokens = c->lse_layout == FA_LSE_TOKENS_HEADS;
  const int last = theirs->rank - 1;
  const int64_t row = theirs->rank == 2 ? start + i : i;
  int64_t index[FA_MAX_RANK] = {b};
  index[last - 1] = tokens ? row : h;
  index[last] = tokens ? h : row;
  return theirs->data + fa_tensor_offset(theirs, index);
}

/* ---- values ---- */

/* True if the element still is one of the NaN poisons; *word gets its 16 bits. */
static bool is_poison(fa_dtype dtype, const char *element, uint16_t *word) {
  static const uint16_t poison[] = {FA_PATTERN_POISON_A, FA_PATTERN_POISON_B};
  for (size_t i = 0; i < 2; ++i)
    if (fa_pattern_first_difference(element, fa_dtype_size(dtype), FA_PATTERN_WORD(poison[i])) ==
        fa_dtype_size(dtype)) {
      *word = poison[i];
      return true;
    }
  return false;
}

typedef struct lengths {
  int64_t start, rows, keys; /* first token of a packed call, rows, keys that are not hidden by leftpad */
} lengths;

static lengths lengths_of(const fa_problem *p, int64_t b) {
  const fa_int32_array *cu_q = &p->cu_seqlens_q, *cu_k = &p->cu_seqlens_k;
  lengths n = {.rows = p->seqlen_q, .keys = p->seqlen_k};
  if (cu_q->n > 0) n.start = cu_q->v[b], n.rows = (int64_t)cu_q->v[b + 1] - cu_q->v[b];
  if (cu_k->n > 0) n.keys = (int64_t)cu_k->v[b + 1] - cu_k->v[b];
  if (p->kvcache.present) n.keys = p->kvcache.len.v[b] + p->kvcache.n_new;
  if (p->seqused_k.n > 0) n.keys = p->seqused_k.v[b];
  if (p->leftpad_k.n > 0) n.keys -= p->leftpad_k.v[b];
  return n;
}

/* What ALiBi counted from the column makes the LSE larger by, a step of a row; 0 where it is not. */
static double column_slope(const fa_problem *p, const fa_contract *c, const fa_tensors *in, int64_t b,
                           int64_t h) {
  const fa_tensor *slopes = &in->t[FA_T_ALIBI_SLOPES];
  if (c->lse_alibi != FA_LSE_ALIBI_COLUMN || !p->alibi.present || !slopes->data) return 0;
  const int64_t index[FA_MAX_RANK] = {slopes->rank == 2 ? b : h, h};
  return fa_tensor_get(slopes, index);
}

typedef struct conversion {
  double factor; /* undoes base and scale */
  double slope;  /* and this, for each place from the first key to the diagonal, is taken away */
} conversion;

/* The value in our conventions. diagonal: the row's last key under a causal mask; below 0 it has none. */
static double convert(const conversion *x, double value, int64_t diagonal) {
  if (!isfinite(value)) return value;
  if (x->slope == 0) return x->factor == 1 ? value : value * x->factor;
  return diagonal < 0 ? value : value * x->factor - x->slope * (double)diagonal;
}

static void take_row(const fa_contract *c, const conversion *x, const fa_tensor *theirs,
                     const fa_tensor *ours, const int64_t at[3], const lengths *n, int64_t shift) {
  const int64_t b = at[0], h = at[1], i = at[2];
  const char *from = their_element(c, theirs, b, h, i, n->start);
  const int64_t ours_index[FA_MAX_RANK] = {ours->rank == 2 ? h : b, ours->rank == 2 ? n->start + i : h, i};
  char *to = ours->data + fa_tensor_offset(ours, ours_index);
  uint16_t word;
  if (is_poison(theirs->dtype, from, &word))
    fa_pattern_fill(to, fa_dtype_size(ours->dtype), FA_PATTERN_WORD(word));
  else if (n->keys > 0)
    fa_store(ours->dtype, to, convert(x, fa_load(theirs->dtype, from), i + shift));
  else
    fa_store(ours->dtype, to, fa_load(theirs->dtype, from));
}

static bool fits(const fa_tensor *a, const fa_tensor *b) {
  bool same = a->dtype == b->dtype && a->rank == b->rank;
  for (int i = 0; same && i < a->rank; ++i) same = a->shape[i] == b->shape[i];
  return same;
}

fa_status fa_contract_take_lse(const fa_problem *p, const fa_contract *c, const fa_tensors *in,
                               const fa_tensor *theirs, fa_tensor *ours, fa_error *err) {
  fa_tensor wanted;
  char want[160], got[160];
  fa_contract_lse_describe(p, c, &wanted);
  if (!fits(theirs, &wanted)) {
    fa_tensor_shape_text(&wanted, want, sizeof want);
    fa_tensor_shape_text(theirs, got, sizeof got);
    return fa_fail(err, FA_ERR_INPUT, "lse is %s, the call needs %s", got, want);
  }
  const double factor = (c->lse_base_2 ? LN_2 : 1) * (c->lse_unscaled ? p->scale : 1);
  for (int64_t b = 0; b < p->batch; ++b) {
    const lengths n = lengths_of(p, b);
    const int64_t shift = p->mask.align == FA_ALIGN_TOP_LEFT ? 0 : n.keys - n.rows;
    for (int64_t h = 0; h < p->heads_q; ++h) {
      const conversion x = {factor, column_slope(p, c, in, b, h)};
      for (int64_t i = 0; i < n.rows; ++i)
        take_row(c, &x, theirs, ours, (const int64_t[]){b, h, i}, &n, shift);
    }
  }
  return FA_OK;
}

double fa_contract_lse_roundoff(const fa_contract *c) {
  const double u = fa_dtype_unit_roundoff(FA_F32), narrow = fa_dtype_unit_roundoff(c->lse_dtype);
  double sum = narrow > u ? narrow : 0;
  if (c->lse_base_2) sum += 2 * u;   /* a constant in f32, and the product with it */
  if (c->lse_unscaled) sum += 2 * u; /* a quotient, and our product */
  return sum;
}
