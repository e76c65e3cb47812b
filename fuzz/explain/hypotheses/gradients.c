/* The backward's own mistakes. */
#include "fuzz/explain/hypothesis.h"

static bool delta_missing(const fa_failure *x, int v, fa_mistake *m) {
  (void)x;
  m->twist.delta_missing = v == 0;
  m->twist.delta_negated = v == 1;
  fa_mistake_say(m, v ? "delta added instead of subtracted" : "delta missing");
  return true;
}

static bool dlse_ignored(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  const bool given = x->in->t[FA_T_DLSE].data != NULL;
  m->in.t[FA_T_DLSE].data = NULL;
  fa_mistake_say(m, "dLSE ignored");
  return given;
}

static bool factor(const fa_failure *x, fa_tensor_id id, bool twice, int v, fa_mistake *m) {
  static const char *const texts[] = {"", ", but by log2(e)", ", but by 1 / log2(e)"};
  const double by[] = {1, LOG2_E, 1 / LOG2_E}, scale = twice ? x->p->scale : 1 / x->p->scale;
  m->by[id] = scale * by[v];
  if (twice)
    fa_mistake_say(m, "%s scaled twice", id == FA_T_DQ ? "dQ" : "dK");
  else
    fa_mistake_say(m, "%s not scaled%s", id == FA_T_DQ ? "dQ" : "dK", texts[v]);
  return x->p->scale != 1;
}

static bool dq_without_scale(const fa_failure *x, int v, fa_mistake *m) {
  return factor(x, FA_T_DQ, false, v, m);
}

static bool dk_without_scale(const fa_failure *x, int v, fa_mistake *m) {
  return factor(x, FA_T_DK, false, v, m);
}

static bool dq_scaled_twice(const fa_failure *x, int v, fa_mistake *m) {
  return factor(x, FA_T_DQ, true, v, m);
}

static bool dk_scaled_twice(const fa_failure *x, int v, fa_mistake *m) {
  return factor(x, FA_T_DK, true, v, m);
}

static bool one_head_of_group(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const texts[] = {"dK and dV of a group's last head only",
                                      "dK and dV of a group's first head only",
                                      "dK and dV averaged over a group's heads",
                                      "a group's last head left out", "a group's first head left out"};
  if (v < 2)
    m->twist.one_member = v == 0 ? -1 : 1;
  else if (v == 2)
    m->by[FA_T_DK] = m->by[FA_T_DV] = 1 / (double)x->place.group;
  else
    m->twist.lost_member = v == 3 ? -1 : 1;
  fa_mistake_say(m, "%s", texts[v]);
  return x->place.group > (v < 3 ? 1 : 2);
}

/* number: heads further on */
static bool next_head(const fa_mistake *m, const fa_failure *x, const fa_failed *t, fa_place *at) {
  const int64_t n = fa_places_heads(x, t);
  at->h = (at->h + m->number[0] + n) % n;
  return true;
}

static bool dk_of_other_head(const fa_failure *x, int v, fa_mistake *m) {
  m->number[0] = v ? -1 : 1;
  m->moved = next_head;
  fa_mistake_say(m, "dK and dV of the head %s", v ? "before" : "after");
  return x->place.heads_kv > (v ? 2 : 1);
}

#define DK_DV (FA_BIT(FA_T_DK) | FA_BIT(FA_T_DV))
#define THROUGH_DS (FA_OF_BACKWARD & ~FA_BIT(FA_T_DV))
const fa_hypothesis fa_hypotheses_of_gradients[] = {
    {"delta_missing", "delta is not subtracted", THROUGH_DS, 2, delta_missing},
    {"dlse_ignored", "the gradient of the LSE is ignored", THROUGH_DS, 1, dlse_ignored},
    {"dq_without_scale", "dQ lacks the scale", FA_BIT(FA_T_DQ), 3, dq_without_scale},
    {"dk_without_scale", "dK lacks the scale", FA_BIT(FA_T_DK), 3, dk_without_scale},
    {"dq_scaled_twice", "dQ has the scale twice", FA_BIT(FA_T_DQ), 1, dq_scaled_twice},
    {"dk_scaled_twice", "dK has the scale twice", FA_BIT(FA_T_DK), 1, dk_scaled_twice},
    {"one_head_of_group", "dK and dV are not summed over a group's heads", DK_DV | FA_BIT(FA_T_DQ), 5,
     one_head_of_group},
    {"dk_of_other_head", "dK and dV are those of another head", DK_DV, 2, dk_of_other_head},
    {.name = NULL}};
