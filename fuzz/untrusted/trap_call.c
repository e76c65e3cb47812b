#include "fuzz/untrusted/trap_call.h"

#include "cases/base/rng.h"
#include "cases/data/build.h"
#include "cases/tensors/table.h"

#include <math.h>
#include <string.h>

#define TRIES 64

/* Changes the copy of the case in *t, and makes its tensors. *fits = false: there is no such trap here. */
typedef fa_status make_fn(fa_rng *rng, const fa_tensors *in, fa_trap_call *t, bool *fits, fa_error *err);

static fa_status other_data(fa_rng *rng, const fa_tensors *in, fa_trap_call *t, bool *fits, fa_error *err) {
  (void)in;
  t->c.data_seed = fa_rng_next(rng);
  *fits = true;
  return fa_case_build(&t->c, &t->in, err);
}

/* The same queries over other keys and values, as in decoding. */
static fa_status other_keys(fa_rng *rng, const fa_tensors *in, fa_trap_call *t, bool *fits, fa_error *err) {
  static const fa_tensor_id same[] = {FA_T_Q, FA_T_DO};
  const fa_status status = other_data(rng, in, t, fits, err);
  for (int i = 0; status == FA_OK && i < 2; ++i)
    if (in->t[same[i]].data) fa_tensor_copy(&t->in.t[same[i]], &in->t[same[i]]);
  return status;
}

/* ---- one element ---- */

/* Far enough from what it was for the answer to change beyond its bound. */
static double another_value(double x) {
  return fabs(x) >= 1 ? -x : x < 0 ? x - 2 : x + 2;
}

/* Unused slots of a cache are NaN, and to write there would change nothing. */
static bool change_one(fa_rng *rng, const fa_tensor *x) {
  int64_t index[FA_MAX_RANK];
  const int64_t n = x->data ? fa_tensor_count(x) : 0;
  for (int i = 0; n > 0 && i < TRIES; ++i) {
    fa_tensor_unravel(x, fa_rng_below(rng, n), index);
    const double value = fa_tensor_get(x, index);
    if (!isfinite(value)) continue;
    fa_tensor_set(x, index, another_value(value));
    return true;
  }
  return false;
}

static fa_status other_element(fa_rng *rng, const fa_tensors *in, fa_trap_call *t, bool *fits,
                               fa_error *err) {
  static const fa_tensor_id of[] = {FA_T_V, FA_T_Q, FA_T_K, FA_T_DO};
  const fa_status status = fa_tensors_clone(&t->in, in, err);
  const int first = (int)fa_rng_below(rng, 4);
  for (int i = 0; status == FA_OK && i < 4 && !*fits; ++i)
    *fits = change_one(rng, &t->in.t[of[(first + i) % 4]]);
  return status;
}

/* ---- the same tensors ---- */

/* Smaller, because a larger one can make right answers overflow. */
static fa_status other_scale(fa_rng *rng, const fa_tensors *in, fa_trap_call *t, bool *fits, fa_error *err) {
  static const double factor[] = {0.5, 0.625, 0.75, 0.875};
  *fits = t->c.problem.scale != 0;
  t->c.problem.scale *= factor[fa_rng_below(rng, 4)];
  return *fits ? fa_tensors_clone(&t->in, in, err) : FA_OK;
}

static fa_status other_dropout(fa_rng *rng, const fa_tensors *in, fa_trap_call *t, bool *fits,
                               fa_error *err) {
  *fits = t->c.problem.dropout.p > 0;
  t->c.problem.dropout.seed = fa_rng_next(rng);
  return *fits ? fa_tensors_clone(&t->in, in, err) : FA_OK;
}

/* One key fewer in a sequence that has some. The values of the others stay what they were. */
static fa_status other_lengths(fa_rng *rng, const fa_tensors *in, fa_trap_call *t, bool *fits,
                               fa_error *err) {
  fa_problem *p = &t->c.problem;
  fa_int32_array *lengths = p->kvcache.present ? &p->kvcache.len : &p->seqused_k;
  (void)in;
  for (int i = 0; lengths->n > 0 && i < TRIES && !*fits; ++i) {
    int32_t *length = &lengths->v[fa_rng_below(rng, lengths->n)];
    if (*length < 2) continue;
    --*length;
    *fits = true;
  }
  *fits = *fits && fa_case_validate(&t->c, NULL) == FA_OK;
  return *fits ? fa_case_build(&t->c, &t->in, err) : FA_OK;
}

/* ---- which ---- */

static make_fn *const makes[] = {
    [FA_TRAP_DATA] = other_data,   [FA_TRAP_KEYS] = other_keys,       [FA_TRAP_ELEMENT] = other_element,
    [FA_TRAP_SCALE] = other_scale, [FA_TRAP_DROPOUT] = other_dropout, [FA_TRAP_LENGTHS] = other_lengths};
enum { N_KINDS = sizeof makes / sizeof *makes };

static int kinds_of(const fa_problem *p, fa_trap kind[N_KINDS]) {
  int n = 0;
  kind[n++] = FA_TRAP_DATA;
  kind[n++] = FA_TRAP_KEYS;
  kind[n++] = FA_TRAP_ELEMENT;
  if (p->scale != 0) kind[n++] = FA_TRAP_SCALE;
  if (p->dropout.p > 0) kind[n++] = FA_TRAP_DROPOUT;
  if ((p->kvcache.present || p->seqused_k.n > 0) && !p->mask_bits.present && !p->topk.present)
    kind[n++] = FA_TRAP_LENGTHS;
  return n;
}

/* Each kind once, before one comes again. */
static fa_trap kind_at(const fa_rules *r, int64_t number, uint64_t which, const fa_problem *p) {
  fa_trap kind[N_KINDS];
  const int n = kinds_of(p, kind);
  fa_rng rng = fa_rng_make(fa_secret_number(&r->secret, "trap kind", (uint64_t)number, 0), 0);
  for (int i = n - 1; i > 0; --i) {
    const int64_t k = fa_rng_below(&rng, i + 1);
    const fa_trap moved = kind[i];
    kind[i] = kind[k];
    kind[k] = moved;
  }
  return kind[which % (uint64_t)n];
}

#define SMALL_RUN 8 /* items: then nothing is left to chance */
#define SHORT_RUN 64

int fa_trap_calls(const fa_rules *r, const fa_problem *p) {
  fa_trap kind[N_KINDS];
  if (!fa_rules_have(r, FA_LAYER_REPLAY) || !r) return 0;
  if (r->n_items > 0 && r->n_items <= SMALL_RUN) return kinds_of(p, kind);
  return r->n_items > 0 && r->n_items <= SHORT_RUN ? 2 : 1;
}

static bool is_in_contract(const fa_rules *r, const fa_problem *p, unsigned passes) {
  char why[256];
  return (passes & ~fa_rules_promised(r, p, why, sizeof why)) == 0;
}

fa_status fa_trap_call_make(const fa_rules *r, int64_t number, uint64_t which, const fa_case *c,
                            const fa_tensors *in, unsigned passes, fa_trap_call *out, fa_error *err) {
  fa_rng rng = fa_rng_make(fa_secret_number(&r->secret, "trap", (uint64_t)number, which), 0);
  for (int attempt = 0;; ++attempt) {
    bool fits = false;
    memset(out, 0, sizeof *out);
    if (fa_case_copy(&out->c, c) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    out->kind = attempt > 0 ? FA_TRAP_DATA : kind_at(r, number, which, &c->problem);
    const fa_status status = makes[out->kind](&rng, in, out, &fits, err);
    const bool certain = out->kind == FA_TRAP_DATA;
    if (status == FA_OK && (certain || (fits && is_in_contract(r, &out->c.problem, passes)))) return FA_OK;
    fa_trap_call_free(out);
    if (status != FA_OK) return status;
  }
}

void fa_trap_call_free(fa_trap_call *t) {
  fa_case_free(&t->c);
  fa_tensors_free(&t->in);
}

/* ---- answers ---- */

static bool is_same(const fa_tensor *a, const fa_tensor *b) {
  int64_t index[FA_MAX_RANK];
  const int64_t n = fa_tensor_count(a);
  if (n != fa_tensor_count(b) || a->dtype != b->dtype) return false;
  for (int64_t i = 0; i < n; ++i) {
    fa_tensor_unravel(a, i, index);
    if (memcmp(a->data + fa_tensor_offset(a, index), b->data + fa_tensor_offset(b, index),
               fa_dtype_size(a->dtype)) != 0)
      return false;
  }
  return true;
}

bool fa_outputs_are_same(const fa_tensors *a, const fa_tensors *b, unsigned passes) {
  const fa_tensor_bits outputs = fa_tensors_written_by(passes);
  int64_t n = 0;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!(outputs >> id & 1) || !a->t[id].data || !b->t[id].data) continue;
    if (!is_same(&a->t[id], &b->t[id])) return false;
    n += fa_tensor_count(&a->t[id]);
  }
  return n > 0;
}
