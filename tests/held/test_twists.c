/* What the reference computes with a mistake in it, values and bounds, for every kind of mistake, and with what only some kernels say
 * of their arithmetic: what tests/ref/recorded/twists.txt holds. That mistakes are told from each other is another test's matter
 * (tests/explain).
 *
 * usage: test_ref_twists [--write]    (from the top of the source tree) */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/attention/astray.h"
#include "ref/engine/call.h"
#include "ref/reference.h"
#include "tests/held/digest.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static const char *const cases[] = {
#include "tests/explain/base_cases.inc"
#include "tests/held/twist_cases.inc"
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void one_key_less(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                         int64_t *lo, int64_t *hi) {
  (void)c, (void)e;
  if (i % t->number[0] == 1 && *hi - *lo > t->number[1]) *hi -= t->number[1];
}

static void next_head(const fa_ref_twist *t, const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence **e,
                      int64_t *head) {
  (void)e;
  if (id == (fa_tensor_id)t->number[0]) *head = (*head + 1) % c->heads_kv;
}

#define F16                                                                                                  \
  { .bits = 11, .lowest = -24, .max = 65504 }
#define E4M3                                                                                                 \
  { .bits = 4, .lowest = -9, .max = 448 }
#define BF16_CUT                                                                                             \
  { .bits = 8, .lowest = -133, .max = 0x1.fep127, .cut = true }

static const struct {
  const char *name;
  fa_ref_twist twist;
} twists[] = {
    {"range", {.range = one_key_less, .number = {3, 1}}},
    {"source_k", {.source = next_head, .number = {FA_T_K}}},
    {"source_v", {.source = next_head, .number = {FA_T_V}}},
    {"heads_modulo", {.heads_modulo = true}},
    {"heads_shift", {.heads_shift = 1}},
    {"heads_shift_back", {.heads_shift = -1}},
    {"one_member", {.one_member = 1}},
    {"last_member", {.one_member = -1}},
    {"lost_member", {.lost_member = 1}},
    {"lost_last_member", {.lost_member = -1}},
    {"walk_o", {.walk = {.tile = 16, .o_stays = true}}},
    {"walk_sum", {.walk = {.tile = 16, .sum_stays = true}}},
    {"walk_both", {.walk = {.tile = 32, .o_stays = true, .sum_stays = true}}},
    {"walk_only", {.walk = {.tile = 16, .o_stays = true, .only = 1}}},
    {"walk_only_sum", {.walk = {.tile = 16, .sum_stays = true, .only = 2}}},
    {"walk_backwards", {.walk = {.tile = 16, .backwards = true, .o_stays = true}}},
    {"walk_backwards_sum", {.walk = {.tile = 24, .backwards = true, .sum_stays = true}}},
    {"walk_p", {.walk = {.tile = 16, .sum_stays = true}, .p = E4M3}},
    {"o_not_divided", {.o_not_divided = true}},
    {"lse_of_max", {.lse_astray = true, .lse_by_max = 1}},
    {"lse_of_both", {.lse_astray = true, .lse_by_max = 0.75, .lse_by_log = 1.5}},
    {"first_pair", {.mask_of_first_pair = true}},
    {"softcap_twice", {.softcap_twice = true}},
    {"softcap_not_derived", {.softcap_not_derived = true}},
    {"alibi_from_top", {.alibi_from_top = true}},
    {"alibi_signed", {.alibi_signed = true}},
    {"drop_inverted", {.drop_inverted = true}},
    {"drop_rounds", {.drop_rounds = 7}},
    {"drop_factor", {.drop_factor = 1.5}},
    {"drop_factor_inverted", {.drop_factor = 0.5, .drop_inverted = true}},
    {"drop_factor_less", {.drop_factor = 0.5}},
    {"p", {.p = E4M3}},
    {"p_cut", {.p = BF16_CUT}},
    {"ds", {.ds = E4M3}},
    {"p_in_ds", {.p_in_ds = BF16_CUT}},
    {"p_in_delta", {.p_in_delta = E4M3}},
    {"coarse", {.coarse = {.to = F16, .tile = 16, .sum = true}}},
    {"coarse_part", {.coarse = {.to = F16, .tile = 32, .part = true}}},
    {"coarse_both", {.coarse = {.to = BF16_CUT, .within = 8, .tile = 32, .sum = true, .part = true}}},
    {"coarse_within", {.coarse = {.to = F16, .within = 4, .tile = 16, .sum = true}}},
    {"coarse_scores", {.coarse = {.to = F16, .within = 16, .scores = true}}},
    {"coarse_dp", {.coarse = {.to = BF16_CUT, .dp = true}}},
    {"coarse_all",
     {.coarse = {.to = F16, .within = 16, .tile = 64, .sum = true, .scores = true, .dp = true}}},
    {"coarse_backwards", {.coarse = {.to = F16, .tile = 16, .sum = true, .backwards = true}}},
    {"delta_missing", {.delta_missing = true}},
    {"delta_negated", {.delta_negated = true}},
};
enum { N_TWISTS = sizeof twists / sizeof *twists };

/* ---- what only some kernels say of their arithmetic ---- */

static void atomics(fa_profile *p) {
  fa_profile_add_keys_in_memory(p, 48);
  fa_profile_add_bias_in_memory(p);
  p->dq_atomic = p->dbuffer_atomic = p->dsinks_atomic = true;
  p->floor_dq = 0x1p-20;
}

static void partials_in_io(fa_profile *p) {
  p->gqa_partials_in_io = true;
}

static void narrow_delta(fa_profile *p) {
  p->delta = FA_DELTA_STORED_O;
  p->u_delta = 0x1p-9, p->floor_delta = 0x1p-30;
}

static void p_kept(fa_profile *p) {
  p->p_kept = true, p->u_p_in_ds = 0x1p-9;
}

static void splits(fa_profile *p) {
  p->max_splits = 16;
  p->u_partials = 0x1p-12, p->floor_partials = 0x1p-25, p->max_partials = 65504;
}

static void cut(fa_profile *p) {
  p->truncated_p = p->truncated_ds = 0x1p-8, p->operands_cut = true;
  for (int i = 0; i < FA_N_PRODUCTS; ++i) p->operand[i] = 0x1p-11;
}

static void narrow_scores(fa_profile *p) {
  p->u_scores = 0x1p-9, p->floor_scores = 0x1p-20, p->max_scores = 3;
  p->u_dp = 0x1p-9, p->floor_dp = 0x1p-20, p->max_dp = 5;
}

static void small_operands(fa_profile *p) {
  for (int i = 0; i < FA_N_PRODUCTS; ++i)
    p->operand_max[i] = 2, p->operand_step[i] = 0x1p-7, p->operand_floor[i] = 0x1p-9;
}

static void small_weights(fa_profile *p) {
  p->max_weight = 1.2, p->max_p = 0.5, p->floor_p = p->floor_ds = 0x1p-12, p->ds_scaled = true;
}

/* dP exceeds its type. */
static void narrow_dp(fa_profile *p) {
  p->u_dp = 0x1p-9;
  p->max_dp = 2;
}

static void floors(fa_profile *p) {
  p->floor_dq = 0.01, p->floor_ds = 0.002, p->u_scores = 0x1p-12;
}

static void no_tiles(fa_profile *p) {
  p->block_n = 0;
}

static const struct {
  const char *name;
  void (*alter)(fa_profile *p);
} altered[] = {{"atomics", atomics},
               {"partials_in_io", partials_in_io},
               {"narrow_delta", narrow_delta},
               {"p_kept", p_kept},
               {"splits", splits},
               {"cut", cut},
               {"narrow_scores", narrow_scores},
               {"small_operands", small_operands},
               {"small_weights", small_weights},
               {"narrow_dp", narrow_dp},
               {"floors", floors},
               {"no_tiles", no_tiles}};
enum { N_ALTERED = sizeof altered / sizeof *altered };

typedef struct subject {
  fa_case c;
  fa_tensors in;
  fa_profile profile;
  digest right[2][FA_T_COUNT]; /* of both passes */
} subject;

/* Or different in last bits, which another order of additions changes too. */
static bool is_same(const digest *a, const digest *b) {
  for (int k = 0; k < DIGEST_SUMS; ++k)
    if (!(fabs(a->sum[k] - b->sum[k]) <= 1e-8 * fabs(b->sum[k]))) return false;
  return a->n == b->n && a->odd == b->odd;
}

/* A line for each output that the mistake changes, and for all without one. */
static void hold_pass(digest_book *b, subject *s, const char *name, const char *way, bool twisted, int pass,
                      const fa_wants *w) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const digest d = digest_of(&w->t[id]);
    digest *right = &s->right[pass][id];
    if (!twisted) *right = d;
    if (twisted ? !is_same(&d, right) : d.n > 0) digest_hold(b, name, way, (fa_tensor_id)id, &d);
  }
}

/* Where an LSE is given another value, nothing is left of what its rounding lost; elsewhere something may be. */
static int64_t check_rest(const char *way, const fa_ref_twist *twist, const fa_want *lse) {
  int64_t rests = 0;
  for (int64_t e = 0; lse->rest && e < lse->n; ++e) rests += lse->rest[e] != 0;
  if (twist && (twist->walk.sum_stays || twist->lse_astray))
    CHECK_MSG(rests == 0, "%s: %lld", way, (long long)rests);
  return rests;
}

static void hold(digest_book *b, subject *s, const char *name, const char *way, const fa_ref_twist *twist,
                 const fa_wants *right) {
  const fa_problem *p = &s->c.problem;
  const fa_ref_options opt = {.n_threads = 1, .profile = &s->profile, .generic = true, .twist = twist};
  fa_wants forward = {0}, backward = {0};
  fa_error err = {""};
  const fa_status status = fa_ref_forward(p, &s->in, &opt, &forward, &err);
  if (status == FA_ERR_INPUT) { /* so coarse that an expression has no value */
    const digest none = {.n = -1};
    digest_hold(b, name, way, FA_T_O, &none);
    return;
  }
  REQUIRE(status == FA_OK);
  hold_pass(b, s, name, way, twist != NULL, 0, &forward);
  const int64_t rests = check_rest(way, twist, &forward.t[FA_T_LSE]);
  if (twist && twist->o_not_divided) CHECK_MSG(rests > 0, "%s, %s", name, way);
  if (p->backward) {
    const fa_wants *from = right ? right : &forward;
    const fa_tensor o = digest_tensor_of(&from->t[FA_T_O]);
    REQUIRE(fa_ref_backward(p, &s->in, &o, NULL, from, &opt, &backward, &err) == FA_OK);
    hold_pass(b, s, name, way, twist != NULL, 1, &backward);
  }
  fa_wants_free(&forward);
  fa_wants_free(&backward);
}

/* Some rows and some keys, and nothing else is computed. */
static void hold_parts(digest_book *b, subject *s, const char *name) {
  const fa_problem *p = &s->c.problem;
  const int64_t last = p->batch - 1, head = p->heads_q - 1, of_kv = p->heads_kv - 1;
  const fa_ref_part rows[] = {{.b = 0, .h = 0, .first = 2, .n = 5},
                              {.b = last, .h = head, .first = 1, .n = 9}};
  const fa_ref_part keys[] = {{.b = 0, .h = 0, .first = 3, .n = 11},
                              {.b = last, .h = of_kv, .first = 7, .n = 17}};
  const fa_ref_twist parts = {.n_rows = 2, .rows = rows, .n_keys = 2, .keys = keys},
                     only_rows = {.n_rows = 1, .rows = rows + 1}, only_keys = {.n_keys = 1, .keys = keys + 1};
  const fa_ref_options opt = {.n_threads = 1, .profile = &s->profile, .generic = true};
  fa_wants right = {0};
  fa_error err = {""};
  REQUIRE(fa_ref_forward(p, &s->in, &opt, &right, &err) == FA_OK);
  hold(b, s, name, "parts", &parts, &right);
  hold(b, s, name, "only_rows", &only_rows, &right);
  hold(b, s, name, "only_keys", &only_keys, &right);
  fa_wants_free(&right);
}

static void hold_case(digest_book *b, int n) {
  char name[20];
  subject s;
  fa_error err = {""};
  snprintf(name, sizeof name, "case%d", n);
  REQUIRE(fa_case_from_text(cases[n], &s.c, &err) == FA_OK);
  REQUIRE(fa_case_build(&s.c, &s.in, &err) == FA_OK);
  s.profile = fa_profile_get(s.c.problem.dtype == FA_F32 ? "simt-f32" : "mma-ampere", s.c.problem.dtype);
  hold(b, &s, name, "right", NULL, NULL);
  for (int i = 0; i < N_TWISTS; ++i) hold(b, &s, name, twists[i].name, &twists[i].twist, NULL);
  hold_parts(b, &s, name);
  for (int i = 0; i < N_ALTERED; ++i) {
    const fa_profile as_named = s.profile;
    const fa_ref_twist none = {.number = {0}};
    altered[i].alter(&s.profile);
    hold(b, &s, name, altered[i].name, &none, NULL);
    s.profile = as_named;
  }
  fa_tensors_free(&s.in);
  fa_case_free(&s.c);
}

/* To nearest and towards 0, at the ends of the range. */
static void check_round(void) {
  const fa_ref_rounding none = {.bits = 0}, near = {.bits = 4, .lowest = -6, .max = 100},
                        cut = {.bits = 4, .lowest = -6, .max = 100, .cut = true};
  const double x[] = {1.0, 1.0625, 1.07, -1.19, 15.9, 97, 1e9, -1e9, 0x1p-7, 0x1.8p-10, 0x1p-40, 0, 0.3};
  const double to_near[] = {1, 1, 1.125, -1.25, 16, 96, 100, -100, 0x1p-7, 0x1p-9, 0, 0, 0.3125},
               towards_0[] = {1, 1, 1, -1.125, 15, 96, 100, -100, 0x1p-7, 0, 0, 0, 0.28125};
  for (size_t i = 0; i < sizeof x / sizeof *x; ++i) {
    CHECK(fa_ref_round(&none, x[i]) == x[i]);
    CHECK_MSG(fa_ref_round(&near, x[i]) == to_near[i], "%g: %g", x[i], fa_ref_round(&near, x[i]));
    CHECK_MSG(fa_ref_round(&cut, x[i]) == towards_0[i], "%g: %g", x[i], fa_ref_round(&cut, x[i]));
  }
  CHECK(isinf(fa_ref_round(&near, INFINITY)) && isnan(fa_ref_round(&near, NAN)));
}

int main(int argc, char **argv) {
  const bool writes = argc > 1 && strcmp(argv[1], "--write") == 0;
  digest_book b = {.f = fopen("tests/ref/recorded/twists.txt", writes ? "w" : "r"), .writes = writes};
  char more[8];
  REQUIRE(b.f);
  check_round();
  for (int n = 0; n < N_CASES; ++n) hold_case(&b, n);
  CHECK_MSG(writes || !fgets(more, sizeof more, b.f), "more is recorded than there is");
  CHECK(fclose(b.f) == 0);
  return check_done();
}
