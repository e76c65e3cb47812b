/* A merge of partial states as the call of gpu/fa.h that it is. */
#include "gpu/args/problem.h"

void fa_args_states(const fa_problem *p, fa_states *s) {
  const bool packed = fa_problem_is_varlen(p);
  fa_states_init(s);
  s->dtype = p->dtype;
  s->parts_dtype = p->merge.parts_dtype;
  s->parts = p->merge.parts;
  s->batch = packed ? 1 : p->batch;
  s->rows = packed ? fa_problem_total_q(p) : p->seqlen_q;
  s->heads = p->heads_q;
  s->head_dim = p->head_dim;
  s->base_2 = p->merge.base_2;
}

/* Strides of [.., B, S, H, D] or [.., total, H, D] behind the first `skip` axes. */
static fa_strides wide(const fa_tensor *t, int skip) {
  const int64_t *s = t->stride + skip;
  return t->rank - skip == 4 ? (fa_strides){s[0], s[1], s[2]} : (fa_strides){0, s[0], s[1]};
}
/* Of [.., B, H, S] or [.., H, total]. */
static fa_strides narrow(const fa_tensor *t, int skip) {
  const int64_t *s = t->stride + skip;
  return t->rank - skip == 3 ? (fa_strides){s[0], s[2], s[1]} : (fa_strides){0, s[1], s[0]};
}

/* Of the problem's type and so many axes; `packed` has no batch axis. */
static bool fits(const fa_problem *p, const fa_tensors *t, fa_tensor_id id, int axes) {
  const fa_tensor *x = &t->t[id];
  return x->data && x->dtype == fa_tensor_dtype(p, id) && x->rank == axes - (fa_problem_is_varlen(p) ? 1 : 0);
}

const char *fa_args_states_tensors(const fa_problem *p, const fa_tensors *t, fa_states *s) {
  const fa_tensor *x = t->t;
  fa_args_states(p, s);
  if (!fits(p, t, FA_T_O_PARTS, 5) || !fits(p, t, FA_T_LSE_PARTS, 4))
    return "o_parts or lse_parts is missing, or has another dtype or rank than the problem says";
  if (!fits(p, t, FA_T_O, 4) || !fits(p, t, FA_T_LSE, 3))
    return "o or lse is missing, or has another dtype or rank than the problem says";
  s->o_parts = x[FA_T_O_PARTS].data;
  s->lse_parts = (const float *)x[FA_T_LSE_PARTS].data;
  s->o = x[FA_T_O].data;
  s->lse = (float *)x[FA_T_LSE].data;
  s->o_parts_step = x[FA_T_O_PARTS].stride[0];
  s->lse_parts_step = x[FA_T_LSE_PARTS].stride[0];
  s->o_parts_stride = wide(&x[FA_T_O_PARTS], 1);
  s->lse_parts_stride = narrow(&x[FA_T_LSE_PARTS], 1);
  s->o_stride = wide(&x[FA_T_O], 0);
  s->lse_stride = narrow(&x[FA_T_LSE], 0);
  return NULL;
}

const char *fa_args_states_gradients(const fa_problem *p, const fa_tensors *t, fa_states_gradients *g) {
  const fa_tensor *x = t->t;
  fa_states_gradients_init(g);
  if (!fits(p, t, FA_T_DO, 4) || !fits(p, t, FA_T_DO_PARTS, 5) || !fits(p, t, FA_T_DLSE_PARTS, 4))
    return "do, do_parts or dlse_parts is missing, or has another dtype or rank than the problem says";
  g->d_o = x[FA_T_DO].data;
  g->d_lse = (const float *)x[FA_T_DLSE].data;
  g->do_parts = x[FA_T_DO_PARTS].data;
  g->dlse_parts = (float *)x[FA_T_DLSE_PARTS].data;
  g->do_stride = wide(&x[FA_T_DO], 0);
  if (g->d_lse) g->dlse_stride = narrow(&x[FA_T_DLSE], 0);
  g->do_parts_step = x[FA_T_DO_PARTS].stride[0];
  g->dlse_parts_step = x[FA_T_DLSE_PARTS].stride[0];
  g->do_parts_stride = wide(&x[FA_T_DO_PARTS], 1);
  g->dlse_parts_stride = narrow(&x[FA_T_DLSE_PARTS], 1);
  return NULL;
}
