#include "fuzz/explain/compute.h"

#include "ref/reference.h"

#include <math.h>
#include <string.h>

/* Gives up the tensor's want in `from`. */
static void move(fa_wants *to, fa_wants *from, fa_tensor_id id) {
  const fa_want empty = {0};
  if (!from->t[id].value || to->t[id].value) return;
  to->t[id] = from->t[id];
  from->t[id] = empty;
}

static fa_ref_options options_of(const fa_failure *x, const fa_mistake *m) {
  const fa_judge_config *c = x->config;
  return (fa_ref_options){.n_threads = c->n_threads,
                          .profile = m->values_only ? NULL : &m->profile,
                          .generic = c->generic,
                          .twist = &m->twist};
}

/* Where a backward is not judged from the subject's own forward, a mistake is in both. */
static bool needs_forward(const fa_failure *x, const fa_mistake *m) {
  return !m->end_to_end && !(x->judged->from_lse && x->judged->from_o);
}

/* One backward, of these rows and keys. forward: the mistaken one, or NULL where the subject's own serves. */
static fa_status backward(const fa_failure *x, fa_mistake *m, const fa_wants *forward, fa_tensor_bits set,
                          fa_wants *out, fa_error *err) {
  const fa_judged *j = x->judged;
  const fa_ref_options options = options_of(x, m);
  const fa_tensor *o = j->from_o && !m->end_to_end ? &x->got->t[FA_T_O] : NULL;
  fa_wants wants = {0};
  const fa_status status = fa_ref_backward(&m->p, &m->in, o, j->from_lse && !m->end_to_end ? &j->lse : NULL,
                                           forward ? forward : &j->forward, &options, &wants, err);
  for (int id = 0; status == FA_OK && id < FA_T_COUNT; ++id)
    if (set >> id & 1) move(out, &wants, (fa_tensor_id)id);
  fa_wants_free(&wants);
  return status;
}

static void set_parts(fa_mistake *m, const fa_scope *s, bool rows, bool keys) {
  m->twist.rows = s->rows;
  m->twist.keys = s->keys;
  m->twist.n_rows = rows ? s->n_rows : 0;
  m->twist.n_keys = keys ? s->n_keys : 0;
}

static fa_status compute_backward(const fa_failure *x, fa_mistake *m, fa_tensor_bits set, const fa_scope *s,
                                  fa_wants *out, fa_error *err) {
  const fa_tensor_bits of_keys = set & (FA_BIT(FA_T_DK) | FA_BIT(FA_T_DV)),
                       others = set & FA_OF_BACKWARD & ~of_keys;
  fa_wants forward = {0};
  fa_status status = FA_OK;
  if (needs_forward(x, m)) {
    const fa_ref_options options = options_of(x, m);
    const bool rows_do = !s->whole && !of_keys;
    set_parts(m, s, rows_do, false);
    status = fa_ref_forward(&m->p, &m->in, &options, &forward, err);
  }
  const fa_wants *own = needs_forward(x, m) ? &forward : NULL;
  if (s->whole) {
    if (status == FA_OK) status = backward(x, m, own, set, out, err);
  } else {
    const bool by_keys = m->profile.delta != FA_DELTA_SUM_P_DP;
    set_parts(m, s, true, false);
    if (status == FA_OK && (others & FA_BIT(FA_T_DQ))) status = backward(x, m, own, others, out, err);
    set_parts(m, s, false, by_keys);
    if (status == FA_OK && of_keys) status = backward(x, m, own, of_keys, out, err);
  }
  fa_wants_free(&forward);
  return status;
}

typedef struct scaling {
  fa_want *w;
  double by;
} scaling;

static void scale(void *context, int64_t first, int64_t n) {
  const scaling *s = context;
  fa_want_multiply(s->w, first, n, s->by);
}

/* The factors of the outputs, and what else comes last. */
static void finish(const fa_failure *x, const fa_mistake *m, const fa_scope *s, fa_wants *out) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    scaling by = {&out->t[id], m->by[id]};
    const fa_failed *t = s->whole ? NULL : fa_failure_find(x, (fa_tensor_id)id);
    if (by.by == 1 || !by.w->value) continue;
    if (s->whole) scale(&by, 0, by.w->n);
    if (t) fa_scope_each(x, s, t, scale, &by);
  }
  if (m->after) m->after(m, x, out);
}

fa_status fa_mistake_compute(const fa_failure *x, fa_mistake *m, fa_tensor_bits set, const fa_scope *s,
                             fa_wants *out, fa_error *err) {
  fa_status status = FA_OK;
  memset(out, 0, sizeof *out);
  set_parts(m, s, false, false);
  if (set & ~FA_OF_BACKWARD) {
    const fa_ref_options options = options_of(x, m);
    set_parts(m, s, !s->whole, false);
    status = fa_ref_forward(&m->p, &m->in, &options, out, err);
  }
  if (status == FA_OK && (set & FA_OF_BACKWARD)) status = compute_backward(x, m, set, s, out, err);
  if (status == FA_OK) finish(x, m, s, out);
  if (status != FA_OK) fa_wants_free(out);
  return status;
}
