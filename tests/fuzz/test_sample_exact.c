/* What a sample's places are wanted to hold, with which bounds, is what the whole computation wants there, bit for bit:
 * random cases of every profile, and larger ones whose rows come from several blocks. By hand: test_sample_exact PROFILE
 * SEED FIRST COUNT. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "fuzz/generate/draw.h"
#include "fuzz/judging/sample.h"
#include "gpu/backend.h"
#include "ref/reference.h"
#include "tests/support/check.h"
#include "tests/support/share.h"

#include <math.h>
#include <string.h>

static int64_t n_compared[FA_T_COUNT], n_sampled, n_left_out, n_refused;

typedef struct subject {
  const fa_case *c;
  fa_tensors in, got;
  fa_profile profile;
} subject;

static bool same(double a, double b) {
  return a == b || (isnan(a) && isnan(b));
}

static bool same_element(const fa_want *whole, const fa_want *part, int64_t e) {
  return same(whole->value[e], part->value[e]) && same(whole->quant[e], part->quant[e]) &&
         same(whole->accum[e], part->accum[e]) && same(whole->noise[e], part->noise[e]) &&
         (!whole->rest || same(whole->rest[e], part->rest[e])) &&
         (!whole->sum_error || same(whole->sum_error[e], part->sum_error[e]));
}

/* Only the check of vacuity takes it. A row of dQ that shares a block has the largest of more keys in it. */
static bool same_scale(fa_tensor_id id, float whole, float part) {
  if (id == FA_T_LSE) return true;
  return id == FA_T_DQ ? part >= whole && part < 4 * whole + 1 : same(whole, part);
}

static void compare(const subject *x, fa_tensor_id id, const fa_want *whole, const fa_want *part) {
  int64_t wrong = -1;
  for (int64_t n = 0; whole->n > 0 && n < fa_want_spans(part); ++n) {
    const fa_want_span span = fa_want_span_at(part, n);
    for (int64_t e = span.first; wrong < 0 && e < span.first + span.n; ++e)
      if (!same_element(whole, part, e)) wrong = e;
    n_compared[id] += span.n;
    const int64_t row = span.first / whole->shape[whole->rank - 1];
    if (wrong < 0 && !same_scale(id, whole->scale[row], part->scale[row])) wrong = span.first;
  }
  CHECK_MSG(wrong < 0, "%s %s: element %lld: %.17g %g %g, in the sample %.17g %g %g", x->c->name,
            fa_tensor_id_name(id), (long long)wrong, whole->value[wrong], whole->quant[wrong],
            whole->accum[wrong], part->value[wrong], part->quant[wrong], part->accum[wrong]);
  if (wrong >= 0 && check_n_failed < 4) {
    char *line = fa_case_to_line(x->c);
    printf("%s\n", line ? line : "");
    free(line);
  }
}

/* The same with and without the sample. given: gradients from the subject's own forward. */
static void compare_both(const subject *x, const fa_sample_places *places, bool given) {
  const fa_problem *p = &x->c->problem;
  const fa_ref_sample judged = fa_sample_of(places);
  fa_ref_sample needed;
  fa_ref_options all = {.n_threads = 2, .profile = &x->profile, .generic = fa_case_is_generic(x->c)},
                 some = all;
  const fa_tensor *o = given ? &x->got.t[FA_T_O] : NULL, *lse = given ? &x->got.t[FA_T_LSE] : NULL;
  fa_wants whole = {0}, part = {0}, gradients = {0}, few = {0};
  fa_error err = {""};
  REQUIRE(fa_sample_rows_needed(p, &x->in, places, !given || x->profile.p_kept, lse, &needed, &err) == FA_OK);
  some.sample = &needed;
  CHECK_MSG(fa_ref_forward(p, &x->in, &all, &whole, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(fa_ref_forward(p, &x->in, &some, &part, &err) == FA_OK, "%s", err.text);
  compare(x, FA_T_O, &whole.t[FA_T_O], &part.t[FA_T_O]);
  compare(x, FA_T_LSE, &whole.t[FA_T_LSE], &part.t[FA_T_LSE]);
  some.sample = &judged;
  if (p->backward) {
    CHECK(fa_ref_backward(p, &x->in, o, lse, &whole, &all, &gradients, &err) == FA_OK);
    CHECK(fa_ref_backward(p, &x->in, o, lse, &part, &some, &few, &err) == FA_OK);
    for (int id = FA_T_DQ; id <= FA_T_DV; ++id) compare(x, id, &gradients.t[id], &few.t[id]);
  }
  free((void *)needed.row);
  fa_wants_free(&whole);
  fa_wants_free(&part);
  fa_wants_free(&gradients);
  fa_wants_free(&few);
}

static void compare_sample(const subject *x, uint64_t seed) {
  const fa_problem *p = &x->c->problem;
  const fa_sample sample = {
      .rows = 1 + (int64_t)(seed * 7 % 40), .strips = 1 + (int64_t)(seed % 3), .seed = seed};
  fa_sample_places places;
  fa_error err = {""};
  REQUIRE(fa_sample_draw(p, &x->in, &sample, x->c->data_seed, p->backward, &places, &err) == FA_OK);
  CHECK(places.n_rows == (sample.rows < places.of_rows ? sample.rows : places.of_rows));
  n_sampled += places.n_rows;
  n_left_out += places.of_rows - places.n_rows;
  compare_both(x, &places, seed % 4 != 0);
  fa_sample_places_free(&places);
}

static void run_case(const fa_case *c, uint64_t seed) {
  subject x = {.c = c};
  fa_error err = {""};
  fa_outcome outcome;
  const fa_run_options opt = {.passes = FA_PASS_FORWARD | (c->problem.backward ? FA_PASS_BACKWARD : 0),
                              .n_threads = 2};
  REQUIRE(fa_case_build(c, &x.in, &err) == FA_OK);
  fa_backend_ref_f32.profile(NULL, &c->problem, &x.profile);
  if (fa_sample_refused(&c->problem, &x.in, NULL, &x.profile)) {
    ++n_refused;
  } else {
    REQUIRE(fa_tensors_clone(&x.got, &x.in, &err) == FA_OK);
    CHECK(fa_backend_ref_f32.run(NULL, &c->problem, &x.got, &opt, &outcome, &err) == FA_OK);
    compare_sample(&x, seed);
    x.profile =
        fa_profile_get(c->problem.family == FA_MEMEFF ? "recorded-memeff" : "recorded", c->problem.dtype);
    compare_sample(&x, seed + 1);
  }
  fa_tensors_free(&x.in);
  fa_tensors_free(&x.got);
}

static void run_text(const char *text, uint64_t seed) {
  fa_case c;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(text, &c, &err) == FA_OK, "%s", err.text);
  if (!err.text[0]) run_case(&c, seed);
  if (!err.text[0]) fa_case_free(&c);
}

/* Rows of several blocks share one, or do not. */
static void run_large(void) {
  static const char *const text[] = {
      "{\"name\":\"causal\",\"heads_q\":2,\"seqlen_q\":1300,\"seqlen_k\":1300,\"mask\":{\"type\":\"causal\"}"
      "}",
      "{\"name\":\"full\",\"heads_q\":2,\"heads_kv\":1,\"seqlen_q\":1024,\"seqlen_k\":777}",
      "{\"name\":\"offset\",\"heads_q\":2,\"seqlen_q\":900,\"seqlen_k\":1111,\"mask\":{\"type\":\"causal\"}}",
      "{\"name\":\"window\",\"heads_q\":2,\"seqlen_q\":1100,\"seqlen_k\":1100,"
      "\"mask\":{\"type\":\"window\",\"left\":200,\"right\":30}}",
      "{\"name\":\"right\",\"heads_q\":1,\"seqlen_q\":1100,\"seqlen_k\":1500,\"dtype\":\"bf16\",\"head_dim\":"
      "128,"
      "\"head_dim_v\":128,\"mask\":{\"type\":\"window\",\"left\":-1,\"right\":100},\"dropout\":{\"p\":0.1}}",
      "{\"name\":\"softcap\",\"heads_q\":2,\"seqlen_q\":800,\"seqlen_k\":800,\"softcap\":20,\"dtype\":"
      "\"f32\"}"};
  for (size_t i = 0; i < sizeof text / sizeof *text; ++i)
    for (uint64_t seed = 1; seed < 5; ++seed) run_text(text[i], 10 * seed + i);
}

static void run_profile(const char *profile, uint64_t seed, int64_t first, int64_t n) {
  for (int64_t i = first; i < first + n; ++i) {
    fa_case c;
    fa_error err = {""};
    REQUIRE(fa_generate(profile, seed, i, &c, &err) == FA_OK);
    run_case(&c, seed + (uint64_t)i);
    fa_case_free(&c);
  }
}

int main(int argc, char **argv) {
  if (argc == 5) {
    run_profile(argv[1], strtoull(argv[2], NULL, 10), atoll(argv[3]), atoll(argv[4]));
  } else {
    run_large();
    for (int i = 0; fa_generate_profiles[i].name; ++i)
      if (fa_share_has(i)) run_profile(fa_generate_profiles[i].name, 5, 0, 12);
  }
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (n_compared[id]) printf("%s: %lld elements\n", fa_tensor_id_name(id), (long long)n_compared[id]);
  printf("%lld rows sampled, %lld left out, %lld cases refused\n", (long long)n_sampled,
         (long long)n_left_out, (long long)n_refused);
  CHECK(argc == 5 || (n_sampled > 1000 && n_left_out > n_sampled && n_compared[FA_T_DK] > 0));
  return check_done();
}
