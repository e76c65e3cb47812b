/* Data and memory: fills, layouts, strides. They use random streams of their own, independent of the shapes.
 * Only ill-posed combinations are removed, for the reasons given at each rule. */
#include "cases/tensors/table.h"
#include "fuzz/generate/draw.h"
#include "fuzz/generate/parts.h"

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))
#define PICK(r, a) ((a)[fa_rng_below(r, COUNT(a))])

/* ---- fills ---- */

/* Fills of a whole case: q, k and v belong together. */
static const fa_fill whole[] = {
    FA_FILL_LOGITS_4X,     FA_FILL_LOGITS_64X,     FA_FILL_SMALL,          FA_FILL_HEAVY_TAIL,
    FA_FILL_V_OFFSET,      FA_FILL_OUTLIER,        FA_FILL_UNIFORM,        FA_FILL_NEGATIVE_LOGITS,
    FA_FILL_STAIRCASE_UP,  FA_FILL_STAIRCASE_DOWN, FA_FILL_POSITIONAL_V,   FA_FILL_ONE_HOT,
    FA_FILL_UNIFORM_EXACT, FA_FILL_INTEGER,        FA_FILL_DUPLICATE_KEYS, FA_FILL_TIES,
    FA_FILL_CANCELLATION,  FA_FILL_SENTINEL,       FA_FILL_ZERO,           FA_FILL_NEAR_MAX};
static const fa_fill values[] = {FA_FILL_V_OFFSET,  FA_FILL_POSITIONAL_V, FA_FILL_CANCELLATION,
                                 FA_FILL_DENORMAL,  FA_FILL_UNIFORM,      FA_FILL_INTEGER,
                                 FA_FILL_HEAVY_TAIL};
static const fa_fill gradients[] = {FA_FILL_DO_ALIGNED, FA_FILL_DO_ONE_HOT, FA_FILL_SMALL, FA_FILL_INTEGER,
                                    FA_FILL_UNIFORM,    FA_FILL_V_OFFSET,   FA_FILL_ZERO,  FA_FILL_DENORMAL};
static const fa_fill biases[] = {FA_FILL_NEG_INF_PREFIX, FA_FILL_NEG_INF_PREFIX, FA_FILL_NEG_INF_ROWS,
                                 FA_FILL_FINFO_MIN,      FA_FILL_SMALL,          FA_FILL_ZERO};
static const fa_fill mild[] = {FA_FILL_NORMAL, FA_FILL_NORMAL, FA_FILL_NORMAL, FA_FILL_UNIFORM,
                               FA_FILL_SMALL};

/* fa_fill_needs gives the reason for each. */
static bool is_well_posed(const fa_problem *p, fa_fill f) {
  const double plain = fa_default_scale(p->head_dim);
  const unsigned needs = fa_fill_describe(f)->needs;
  unsigned has = 0;
  if (p->scale == plain && p->softcap == 0 && !p->alibi.present) has |= FA_FILL_NEEDS_PLAIN_SCORES;
  if (p->head_dim <= 16) has |= FA_FILL_NEEDS_16_DIMENSIONS;
  if (p->scale <= plain && p->scale >= -plain) has |= FA_FILL_NEEDS_NO_LARGER_SCALE;
  if (p->dtype != FA_F16 || !p->backward) has |= FA_FILL_NEEDS_WIDE_GRADIENTS;
  if (p->dropout.p == 0) has |= FA_FILL_NEEDS_NO_DROPOUT;
  if (!p->quantized.present) has |= FA_FILL_NEEDS_16_BITS;
  return (needs & ~has) == 0;
}

/* dO.v / (1-p) of large values makes a dS that f16 cannot hold: rightly infinite. */
static void keep_ds_in_f16(fa_case *c) {
  const fa_problem *p = &c->problem;
  if (p->dtype != FA_F16 || !p->backward || p->dropout.p <= 0.9) return;
  if (fa_fill_describe(c->fill[FA_T_V])->large_v) c->fill[FA_T_V] = FA_FILL_NORMAL;
  if (c->fill[FA_T_DO] == FA_FILL_V_OFFSET) c->fill[FA_T_DO] = FA_FILL_NORMAL;
}

void fa_generate_settle_fills(fa_case *c) {
  static const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_DO};
  for (int i = 0; i < COUNT(ids); ++i)
    if (!is_well_posed(&c->problem, c->fill[ids[i]])) c->fill[ids[i]] = FA_FILL_NORMAL;
  /* Logits of 6e4 make P uncertain by a tenth: with an offset of 8, that is more than the values differ. */
  if (c->fill[FA_T_Q] == FA_FILL_SENTINEL && c->fill[FA_T_V] == FA_FILL_V_OFFSET)
    c->fill[FA_T_V] = FA_FILL_NORMAL;
  keep_ds_in_f16(c);
}

/* From a stream of their own, so that the other fills of a case do not depend on its sinks. */
static void draw_sinks(fa_gen *g) {
  static const fa_fill sinks[] = {FA_FILL_SINK_SIZES, FA_FILL_SINK_SIZES, FA_FILL_SINK_SIZES, FA_FILL_NORMAL,
                                  FA_FILL_HEAVY_TAIL, FA_FILL_SINK_NONE,  FA_FILL_ZERO};
  fa_rng r = fa_gen_rng(g, FA_GEN_SINK_FILLS);
  if (g->c->problem.sinks.present) g->c->fill[FA_T_SINKS] = PICK(&r, sinks);
}

void fa_gen_fills(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_FILLS);
  fa_case *c = g->c;
  if (c->problem.family == FA_MERGE) {
    fa_gen_merge_fills(g);
    return;
  }
  fa_fill all = PICK(&r, mild);
  bool special = fa_rng_chance(&r, g->rules->fills);
  if (special) {
    fa_fill drawn = PICK(&r, whole);
    if (is_well_posed(&c->problem, drawn)) all = drawn;
  }
  fa_case_set_fill(c, all);
  if (special && fa_rng_chance(&r, 0.35)) c->fill[FA_T_V] = PICK(&r, values);
  if (special && fa_rng_chance(&r, 0.4)) c->fill[FA_T_DO] = PICK(&r, gradients);
  fa_generate_settle_fills(c);
  c->fill[FA_T_BIAS] = fa_rng_chance(&r, 0.35) ? PICK(&r, biases) : FA_FILL_NORMAL;
  /* Its mask is made for the bias's own lengths: an entry with fewer keys may see none but those at the type's least
   * number, and there a float cannot hold the logarithm of their number. */
  if (g->rules->mixed && c->fill[FA_T_BIAS] == FA_FILL_FINFO_MIN) c->fill[FA_T_BIAS] = FA_FILL_SMALL;
  c->fill[FA_T_DLSE] = FA_FILL_NORMAL;
  draw_sinks(g);
  fa_gen_quantized_fills(g);
}

/* ---- layout ---- */

/* Rows of attention in 8 bits begin on 16 bytes and differ: its kernels load them by maps, and take no others. */
static void align_recipe(const fa_case *c, fa_tensor_id id, fa_stride_recipe *s) {
  if (!c->problem.quantized.queries || (id != FA_T_Q && id != FA_T_K && id != FA_T_V && id != FA_T_O)) return;
  for (int axis = 0; axis < 3; ++axis) {
    s->gap[axis] = (s->gap[axis] + 15) / 16 * 16;
    s->expand[axis] = false;
  }
  s->offset = (s->offset + 15) / 16 * 16;
}

static void draw_recipe(fa_gen *g, fa_rng *r, fa_tensor_id id, bool may_expand) {
  static const int64_t gaps[] = {1, 2, 3, 8, 16, 64}, offsets[] = {1, 2, 3, 4, 7, 8, 33};
  fa_stride_recipe *s = &g->c->strides[id];
  for (int axis = 0; axis < 3; ++axis)
    if (fa_rng_chance(r, 0.3)) s->gap[axis] = PICK(r, gaps);
  if (fa_rng_chance(r, 0.3)) s->offset = PICK(r, offsets);
  /* Two tensors expanded along the same axis hide each other's mistakes: expand one axis, and rarely. */
  if (may_expand && fa_rng_chance(r, 0.25)) s->expand[fa_rng_below(r, 3)] = true;
  align_recipe(g->c, id, s);
}

/* Several tensors in one buffer, as far as the problem's lengths, head dims and types allow. */
static fa_packing draw_packing(const fa_case *c, fa_rng *r) {
  const fa_problem *p = &c->problem;
  if (p->family == FA_MERGE || p->family == FA_KVCACHE || p->head_dim != p->head_dim_v ||
      !fa_rng_chance(r, 0.4))
    return FA_PACK_NONE;
  return fa_can_pack_qkv(p) ? FA_PACK_QKV : FA_PACK_KV;
}

void fa_gen_layout(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_LAYOUT);
  fa_case *c = g->c;
  if (!fa_rng_chance(&r, g->rules->layout)) return;
  c->layout = (fa_layout)fa_rng_below(&r, 3);
  c->packing = draw_packing(c, &r);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (fa_tensor_describe((fa_tensor_id)id)->axes == FA_AXES_ROWS) continue; /* drawn last */
    bool owner = c->packing == FA_PACK_QKV ? id == FA_T_Q : id == FA_T_K;
    bool packed = c->packing != FA_PACK_NONE && (id == FA_T_K || id == FA_T_V || (id == FA_T_Q && owner));
    bool written = fa_tensor_is_updated(&c->problem, (fa_tensor_id)id);
    if (!fa_case_has_strides(id) || !fa_case_uses(c, id)) continue;
    if (!fa_rng_chance(&r, 0.35) || (packed && !owner)) continue;
    draw_recipe(g, &r, id, !fa_tensor_id_is_output(id) && !packed && !written);
  }
  static const fa_tensor_id rows[] = {FA_T_LSE, FA_T_DLSE};
  for (int i = 0; i < COUNT(rows); ++i)
    if (fa_case_uses(c, rows[i]) && fa_rng_chance(&r, 0.35)) draw_recipe(g, &r, rows[i], false);
}

/* ---- memory, repetition, schedule ---- */

/* Tensors with strides of their own; packed ones follow their owner. */
static bool has_own_strides(const fa_case *c, fa_tensor_id id) {
  const bool packed = (c->packing == FA_PACK_QKV && (id == FA_T_K || id == FA_T_V)) ||
                      (c->packing == FA_PACK_KV && id == FA_T_V);
  return fa_case_has_strides(id) && fa_case_uses(c, id) && !packed;
}

/* Tokens past the last sequence: memory that must not be touched. */
static void draw_tails(fa_case *c, fa_rng *r) {
  static const int64_t tails[] = {1, 8, 64, 500, 8192};
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (has_own_strides(c, (fa_tensor_id)id)) c->strides[id].tail = PICK(r, tails);
}

static bool is_newer(fa_tensor_id id) {
  return fa_tensor_has_parts(id) || fa_tensor_describe(id)->axes == FA_AXES_HEADS;
}

/* One of the tensors of attention: parts and sinks are left out of the count, which was there before them. */
static fa_tensor_id any_of_attention(fa_rng *r) {
  int n = 0, id = -1;
  for (int k = 0; k < FA_T_COUNT; ++k) n += !is_newer((fa_tensor_id)k);
  for (int64_t left = fa_rng_below(r, n); left >= 0; --left) do
      ++id;
    while (is_newer((fa_tensor_id)id));
  return (fa_tensor_id)id;
}

/* Gives tensors that few cases have their share. */
static fa_tensor_id huge_candidate(const fa_case *c, fa_rng *r) {
  if (c->problem.family == FA_MERGE) return fa_gen_merge_huge(r);
  const bool second = fa_rng_chance(r, 0.5);
  if (c->problem.bias.present && fa_rng_chance(r, 0.5))
    return second ? FA_T_BIAS : fa_tensor_gradient_of(FA_T_BIAS);
  if (c->problem.kvcache.n_new > 0 && fa_rng_chance(r, 0.5)) return second ? FA_T_K_NEW : FA_T_V_NEW;
  return any_of_attention(r);
}

/* One axis of one tensor gets a stride so large that its last element is beyond 2^31 bytes, 2^31 elements or
 * 2^32 elements. Few rows, because each becomes an island of its own in reserved address space. */
static void draw_huge(fa_case *c, fa_rng *r) {
  static const int64_t beyond[] = {(int64_t)1 << 30, (int64_t)1 << 31, (int64_t)1 << 31, (int64_t)1 << 32};
  int64_t shape[4], at_most = 512;
  for (int attempt = 0; attempt < 12; ++attempt) {
    const fa_tensor_id id = huge_candidate(c, r);
    const int axis = (int)fa_rng_below(r, 3);
    if (!has_own_strides(c, id)) continue;
    fa_case_tensor_shape(c, id, shape);
    if (shape[axis] < 2 || c->strides[id].expand[axis]) continue;
    if (shape[0] * shape[1] * shape[2] > at_most || shape[3] < 1) continue;
    const fa_stride_recipe before = c->strides[id];
    int64_t gap = PICK(r, beyond) / (shape[axis] - 1) + fa_rng_below(r, 64);
    if (fa_rng_chance(r, 0.5)) gap = (gap + 7) / 8 * 8; /* rows keep their alignment */
    c->strides[id].gap[axis] = gap;
    align_recipe(c, id, &c->strides[id]);
    if (fa_case_validate(c, NULL) == FA_OK) return;
    c->strides[id] = before;
  }
}

void fa_gen_memory(fa_gen *g) {
  static const fa_poison poisons[] = {FA_POISON_INF, FA_POISON_ZERO, FA_POISON_FINITE};
  static const int64_t repeats[] = {1, 3, 3, 5, 8};
  fa_rng r = fa_gen_rng(g, FA_GEN_MEMORY);
  fa_case *c = g->c;
  if (fa_rng_chance(&r, 0.4)) c->poison = PICK(&r, poisons);
  if (fa_rng_chance(&r, 0.06)) c->repeat = PICK(&r, repeats);
  if (fa_rng_chance(&r, 0.3)) c->schedule_seed = fa_rng_next(&r);
  if (fa_problem_is_varlen(&c->problem) && fa_rng_chance(&r, 0.3)) draw_tails(c, &r);
  if (fa_rng_chance(&r, g->rules->huge)) draw_huge(c, &r);
}
