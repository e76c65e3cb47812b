/* Roundings that a kernel claims not to do. */
#include "fuzz/explain/hypothesis.h"

#include <math.h>

static const fa_ref_rounding of_bf16 = {8, -126, 0x1.fep127, false}, of_f16 = {11, -14, 65504, false},
                             of_tf32 = {11, -126, 0x1.ffcp127, false}, of_e4m3 = {4, -6, 448, false},
                             of_e5m2 = {3, -14, 57344, false};

/* The bounds of a kernel that does round so. */
static void widen(const fa_ref_rounding *p, bool ds_too, fa_mistake *m) {
  fa_profile *f = &m->profile;
  const double u = ldexp(p->cut ? 2 : 1, -p->bits), floor = ldexp(1, p->lowest - p->bits);
  m->of_precision = true;
  f->u_p = fmax(f->u_p, u);
  f->floor_p = fmax(f->floor_p, floor);
  if (!ds_too) return;
  f->u_ds = fmax(f->u_ds, u);
  f->floor_ds = fmax(f->floor_ds, floor);
}

static const int tiles[] = {64, 128, 32, 1 << 20, 16};
enum { N_TILES = sizeof tiles / sizeof *tiles };

/* P is rounded while the maximum is the one so far: which one that is depends on the tiles. */
static bool round_p(const fa_failure *x, const fa_ref_rounding *to, int v, fa_mistake *m) {
  m->twist.walk.tile = tiles[v % N_TILES];
  m->twist.walk.backwards = v >= N_TILES;
  m->twist.p = m->twist.ds = *to;
  widen(to, true, m);
  return x->config->profile->u_p < ldexp(1, -to->bits) || to->cut;
}

/* The later variant: in dS = P (dP - delta) alone, where P is divided by its sum. */
static bool round_p_in_ds(const fa_failure *x, const fa_ref_rounding *to, fa_mistake *m) {
  const double u = ldexp(1, -to->bits);
  m->of_precision = true;
  m->twist.p_in_ds = *to;
  m->profile.u_p_in_ds = fmax(m->profile.u_p_in_ds, u);
  return x->config->profile->u_p_in_ds < u;
}

static bool rounded(const fa_failure *x, const fa_ref_rounding *to, const char *name, int v, fa_mistake *m) {
  const bool in_ds = v == 2 * N_TILES;
  fa_mistake_say(m, in_ds ? "P rounded to %s in dS" : "P rounded to %s", name);
  return in_ds ? round_p_in_ds(x, to, m) : round_p(x, to, v, m);
}

static bool rounded_p_bf16(const fa_failure *x, int v, fa_mistake *m) {
  return rounded(x, &of_bf16, "bf16", v, m);
}

static bool rounded_p_f16(const fa_failure *x, int v, fa_mistake *m) {
  return rounded(x, &of_f16, "f16", v, m);
}

static bool rounded_p_e4m3(const fa_failure *x, int v, fa_mistake *m) {
  return rounded(x, &of_e4m3, "fp8 e4m3", v, m);
}

static bool rounded_p_e5m2(const fa_failure *x, int v, fa_mistake *m) {
  return rounded(x, &of_e5m2, "fp8 e5m2", v, m);
}

/* The O that its delta is made of is not the one that it returned. Where that one is wrong, this says nothing. */
static bool delta_of_unrounded_o(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->of_precision = true;
  m->profile.delta = FA_DELTA_EXACT_O;
  fa_mistake_say(m, "delta taken from O before it is rounded");
  return x->config->profile->delta == FA_DELTA_STORED_O && x->judged->from_o && !fa_failure_find(x, FA_T_O);
}

static bool delta_of_rounded_p(const fa_failure *x, int v, fa_mistake *m) {
  m->of_precision = true;
  m->profile.delta = FA_DELTA_SUM_P_DP;
  m->twist.p_in_delta = v ? of_f16 : of_bf16;
  fa_mistake_say(m, "delta summed from a P that is rounded to %s", v ? "f16" : "bf16");
  return !fa_failure_find(x, FA_T_O);
}

/* A copy in double, rounded. */
static bool round_input(fa_tensor_id id, const fa_ref_rounding *to, fa_mistake *m) {
  fa_tensor *t = &m->in.t[id];
  const fa_tensor from = *t;
  const int64_t n = fa_tensor_count(&from);
  int64_t index[FA_MAX_RANK];
  if (!from.data) return true;
  double *value = fa_mistake_alloc(m, (size_t)n * sizeof *value);
  if (!value) return false;
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(&from, e, index);
    value[e] = fa_ref_round(to, fa_tensor_get(&from, index));
  }
  t->dtype = FA_F64;
  t->data = (char *)value;
  for (int64_t a = t->rank - 1, step = 1; a >= 0; step *= t->shape[a--]) t->stride[a] = step;
  return true;
}

/* The inputs alone; or P and dS too. */
static bool round_operands(const fa_failure *x, const fa_ref_rounding *to, int v, fa_mistake *m) {
  const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_DO};
  if (x->p->kvcache.present || fa_dtype_unit_roundoff(x->p->dtype) >= ldexp(1, -to->bits)) return false;
  for (int i = 0; i < 4; ++i)
    if (!round_input(ids[i], to, m)) return false;
  m->of_precision = true;
  return v == 0 || round_p(x, to, v - 1, m);
}

static bool operands_tf32(const fa_failure *x, int v, fa_mistake *m) {
  fa_mistake_say(m, v ? "operands and P rounded to tf32" : "operands rounded to tf32");
  return round_operands(x, &of_tf32, v, m);
}

static bool operands_bf16(const fa_failure *x, int v, fa_mistake *m) {
  fa_mistake_say(m, v ? "operands and P rounded to bf16" : "operands rounded to bf16");
  return round_operands(x, &of_bf16, v, m);
}

static fa_ref_rounding cut_to(fa_dtype t) {
  fa_ref_rounding to = t == FA_BF16 ? of_bf16 : of_f16;
  to.cut = true;
  return to;
}

/* Outputs of the element type, cut instead of rounded. */
static void cut_outputs(const fa_mistake *m, const fa_failure *x, fa_wants *w) {
  const fa_ref_rounding to = cut_to(x->p->dtype);
  (void)m;
  for (int i = 0; i < x->n; ++i) {
    fa_want *t = &w->t[x->tensor[i].id];
    if (!t->value || t->dtype != x->p->dtype) continue;
    for (int64_t e = 0; e < t->n; ++e) {
      t->accum[e] += (float)fa_half_ulp(t->dtype, t->value[e]);
      t->value[e] = fa_ref_round(&to, t->value[e]);
    }
  }
}

static bool truncated(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const texts[] = {"outputs cut off instead of rounded", "P cut off instead of rounded"};
  const fa_ref_rounding to = cut_to(x->p->dtype);
  fa_mistake_say(m, "%s", texts[v > 0]);
  if (x->p->dtype != FA_F16 && x->p->dtype != FA_BF16) return false;
  m->of_precision = true;
  if (v > 0) return round_p(x, &to, v - 1, m);
  m->after = cut_outputs;
  return true;
}

#define ANY FA_OF_ALL
#define THROUGH_DS (FA_OF_BACKWARD & ~FA_BIT(FA_T_DV))
const fa_hypothesis fa_hypotheses_of_precision[] = {
    {"truncated_instead_of_rounded", "outputs, or P and dS, are cut off instead of rounded", ANY,
     1 + 2 * N_TILES, truncated},
    {"rounded_p_f16", "P and dS are rounded to f16", ANY, 2 * N_TILES + 1, rounded_p_f16},
    {"rounded_p_bf16", "P and dS are rounded to bf16", ANY, 2 * N_TILES + 1, rounded_p_bf16},
    {"rounded_p_e4m3", "P and dS are rounded to fp8 e4m3", ANY, 2 * N_TILES + 1, rounded_p_e4m3},
    {"rounded_p_e5m2", "P and dS are rounded to fp8 e5m2", ANY, 2 * N_TILES + 1, rounded_p_e5m2},
    {"operands_tf32", "inputs, or all operands, are rounded to tf32", ANY, 1 + 2 * N_TILES, operands_tf32},
    {"operands_bf16", "inputs, or all operands, are rounded to bf16", ANY, 1 + 2 * N_TILES, operands_bf16},
    {"delta_of_unrounded_o", "delta is not taken from the O that was returned", THROUGH_DS, 1,
     delta_of_unrounded_o},
    {"delta_of_rounded_p", "delta is the sum of a P that is rounded", THROUGH_DS, 2, delta_of_rounded_p},
    {.name = NULL}};
