/* The bounds from magnitudes alone, of calls too long for the reference's own, against docs/reference/laws.md, "A priori", with the
 * magnitudes found by plain loops. */
#include "cases/base/dtype.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "fuzz/laws/parts.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static const double u = 0x1p-24;

/* What of a head's keys counts: tau |q| |k|, the largest value, and what is added to a score. */
typedef struct head {
  double product, v, added;
  int64_t n;
} head;

static double gamma_of(const fa_profile *f, bool generic, double n) {
  if (f->mma_block > 0)
    return (ceil(n / f->mma_block) + 1) * ((f->mma_block + 1) * ldexp(1, -f->mma_extra_bits) + 1) * 2 * u;
  return (generic ? fmin(n, 4 * sqrt(n)) : n) * u;
}

/* Up to the last bits; both infinite where nothing is known. */
static bool is_near(double got, double want) {
  return got == want || (isfinite(want) && fabs(got - want) <= 1e-12 * want);
}

static void check_head(const fa_law_work *w, const fa_law_side *s, const head *x, int64_t at) {
  const fa_problem *p = &s->p;
  const fa_profile *f = &s->profile;
  const double n = (double)x->n, m = x->product + x->added, tiles = ceil(n / f->block_n) + 1;
  const double splits = f->max_splits > 1 ? f->max_splits : 0;
  const double changes = w->generic && x->added == 0 ? fmin(tiles, 16) : tiles, logn = log(n + 1);
  const double e_x = x->product * (gamma_of(f, w->generic, (double)p->head_dim) + f->u_operand) + 10 * u * m +
                     (p->softcap > 0 ? p->softcap * (f->eps_tanh + 2 * u) : 0);
  const double eta = e_x + 14 * u * m + (1 + changes) * f->eps_exp +
                     splits * (2 * f->eps_exp + f->eps_log + 8 * u * m + 4 * u * logn);
  const double sigma = (w->generic ? fmin(n, 4 * sqrt(n)) : n) * u, r = eta + eta * eta + sigma;
  const bool known = eta <= 0.5 && r < 0.5;

  const double lse = r * (1 + r) + sigma + (1 + splits) * (f->eps_log + 2 * u * (m + logn) + f->eps_exp) +
                     3 * u * logn + u * m + fa_half_ulp(FA_F32, m + logn);
  const double share = 1 / (1 - p->dropout.p);
  const double o = (f->u_p + f->u_dropout + n * f->floor_p + 2 * r / (1 - r) + gamma_of(f, w->generic, n) +
                    (2 * changes + 2 * splits + 8) * u + f->u_operand) *
                   x->v;
  CHECK_MSG(is_near(s->bound_lse[at], known ? lse : INFINITY), "lse of head %lld: %.17g, not %.17g",
            (long long)at, s->bound_lse[at], lse);
  CHECK_MSG(is_near(s->bound_o[at], known ? o * share + fa_half_ulp(p->dtype, (x->v + o) * share) : INFINITY),
            "o of head %lld: %.17g, not %.17g", (long long)at, s->bound_o[at], o);
}

static double at4(const fa_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t dense[FA_MAX_RANK] = {a, b, c, d}, packed[FA_MAX_RANK] = {b, c, d};
  return fa_tensor_get(t, t->rank == 3 ? packed : dense);
}

/* The longest row of n, or the largest element. */
static double greatest(const fa_tensor *t, int64_t b, int64_t first, int64_t n, int64_t h, bool norm) {
  double most = 0;
  for (int64_t i = first; i < first + n; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < t->shape[t->rank - 1]; ++c) {
      const double x = at4(t, b, i, h, c);
      sum = norm ? sum + x * x : fmax(sum, fabs(x));
    }
    most = fmax(most, norm ? sqrt(sum) : sum);
  }
  return most;
}

/* In a cache, and of what is appended. */
static double greatest_cached(const fa_law_side *s, fa_tensor_id id, fa_tensor_id new_id, int64_t b,
                              int64_t h, bool norm) {
  double most = greatest(&s->in.t[new_id], b, 0, s->p.kvcache.n_new, h, norm);
  for (int64_t slot = 0; slot < s->p.kvcache.len.v[b]; ++slot) {
    const int64_t at[FA_MAX_RANK] = {b, slot / s->p.kvcache.page_size};
    const int64_t page = (int64_t)fa_tensor_get(&s->in.t[FA_T_BLOCK_TABLE], at);
    most = fmax(most, greatest(&s->in.t[id], page, slot % s->p.kvcache.page_size, 1, h, norm));
  }
  return most;
}

static head head_in_cache(const fa_law_side *s, int64_t b, int64_t h) {
  const fa_problem *p = &s->p;
  const int64_t hk = h / (p->heads_q / p->heads_kv);
  return (head){.n = p->kvcache.len.v[b] + p->kvcache.n_new,
                .product = fabs(p->scale) * greatest(&s->in.t[FA_T_Q], b, 0, p->seqlen_q, h, true) *
                           greatest_cached(s, FA_T_K, FA_T_K_NEW, b, hk, true),
                .v = greatest_cached(s, FA_T_V, FA_T_V_NEW, b, hk, false)};
}

static head head_of(const fa_law_side *s, int64_t b, int64_t h) {
  const fa_problem *p = &s->p;
  if (p->family == FA_KVCACHE) return head_in_cache(s, b, h);
  const int64_t hk = h / (p->heads_q / p->heads_kv);
  const int64_t q0 = p->cu_seqlens_q.n ? p->cu_seqlens_q.v[b] : 0,
                k0 = p->cu_seqlens_k.n ? p->cu_seqlens_k.v[b] : 0;
  const int64_t nq = p->cu_seqlens_q.n ? p->cu_seqlens_q.v[b + 1] - q0 : p->seqlen_q;
  int64_t nk = p->cu_seqlens_k.n ? p->cu_seqlens_k.v[b + 1] - k0 : p->seqlen_k;
  if (p->seqused_k.n) nk = p->seqused_k.v[b];
  head x = {.n = nk};
  x.product = fabs(p->scale) * greatest(&s->in.t[FA_T_Q], b, q0, nq, h, true) *
              greatest(&s->in.t[FA_T_K], b, k0, nk, hk, true);
  x.v = greatest(&s->in.t[FA_T_V], b, k0, nk, hk, false);
  if (p->alibi.present)
    x.added += fabs(p->alibi.slopes[p->alibi.n == p->heads_q ? h : b * p->heads_q + h]) * (double)(nq + nk);
  for (int64_t i = 0; p->bias.present && i < p->seqlen_q; ++i)
    for (int64_t j = 0; j < p->seqlen_k; ++j)
      if (isfinite(at4(&s->in.t[FA_T_BIAS], 0, 0, i, j)))
        x.added = fmax(x.added, fabs(at4(&s->in.t[FA_T_BIAS], 0, 0, i, j)));
  if (p->sinks.present) x.added += fabs(fa_tensor_get(&s->in.t[FA_T_SINKS], &h));
  return x;
}

/* The bound that an element has: of its sequence and head. */
static void check_places(const fa_law_side *s) {
  const bool packed = s->p.cu_seqlens_q.n > 0;
  for (int64_t b = 0; b < s->p.batch; ++b)
    for (int64_t h = 0; h < s->p.heads_q; ++h) {
      const int64_t token = packed ? s->p.cu_seqlens_q.v[b] : 0, at = b * s->p.heads_q + h;
      const int64_t o[FA_MAX_RANK] = {packed ? token : b, packed ? h : 0, packed ? 0 : h},
                    lse[FA_MAX_RANK] = {packed ? h : b, packed ? token : h};
      bool has = false;
      CHECK(fa_law_bound_at(s, FA_T_O, o, 0, &has) == s->bound_o[at] && has);
      CHECK(fa_law_bound_at(s, FA_T_LSE, lse, 0, &has) == s->bound_lse[at] && has);
      CHECK(fa_law_bound_at(s, FA_T_DQ, o, 0, &has) == INFINITY && !has);
      CHECK(fa_law_bound_at(s, FA_T_O, o, -1, &has) == INFINITY && has);
    }
}

static const struct {
  const char *json;
  bool scalar, generic;
  int max_splits;
} cases[] = {
    {"{\"seqlen_q\":8,\"seqlen_k\":220000,\"head_dim\":32,\"heads_q\":2}", false, true, 1},
    {"{\"seqlen_q\":8,\"seqlen_k\":220000,\"head_dim\":32,\"heads_q\":2,\"scale\":0.01}", true, true, 1},
    {"{\"seqlen_q\":8,\"seqlen_k\":220000,\"head_dim\":32,\"heads_q\":2,\"scale\":0.01}", true, false, 1},
    {"{\"seqlen_q\":8,\"seqlen_k\":220000,\"head_dim\":32,\"heads_q\":2,\"scale\":-0.01,\"softcap\":20}",
     true, true, 4},
    {"{\"seqlen_q\":8,\"seqlen_k\":220000,\"head_dim\":32,\"heads_q\":2,\"scale\":8}", true, true, 1},
    {"{\"batch\":2,\"seqlen_q\":300,\"seqlen_k\":500,\"head_dim\":128,\"heads_q\":4,\"heads_kv\":2,\"alibi\":"
     "{}}",
     true, true, 1},
    {"{\"batch\":2,\"seqlen_q\":300,\"seqlen_k\":500,\"head_dim\":128,\"heads_q\":4,\"heads_kv\":2,"
     "\"dropout\":{\"p\":0.3,"
     "\"seed\":\"3\"},\"seqused_k\":[400,77]}",
     false, true, 1},
    {"{\"cu_seqlens_q\":[0,400,1000,1003],\"cu_seqlens_k\":[0,500,900,900],\"head_dim\":128,\"heads_q\":4}",
     false, true, 1}, /* the last sequence has no keys */
    {"{\"family\":\"memeff\",\"dtype\":\"f32\",\"seqlen_q\":600,\"seqlen_k\":700,\"head_dim\":128,\"heads_"
     "q\":1,\"bias\":{"
     "\"shape\":[1,1,\"q\",\"k\"]}}",
     true, true, 1},
    {"{\"seqlen_q\":600,\"seqlen_k\":700,\"head_dim\":128,\"heads_q\":2,\"sinks\":true}", false, true, 1},
    {"{\"seqlen_q\":600,\"seqlen_k\":700,\"head_dim\":128,\"heads_q\":2,\"scale\":262}", true, false, 1},
    {"{\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":400,\"seqlen_k\":2608,\"head_dim\":32,\"heads_q\":8,"
     "\"heads_kv\":2,"
     "\"kvcache\":{\"len\":[2590,600],\"new\":3,\"page_size\":16}}",
     false, true, 1},
    {"{\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":400,\"seqlen_k\":2608,\"head_dim\":32,\"heads_q\":8,"
     "\"heads_kv\":2,"
     "\"kvcache\":{\"len\":[2590,600],\"new\":3,\"page_size\":16,\"rotary\":{\"dim\":16}}}",
     false, true, 1},
};

static int mma_block; /* 0: the profile's */

/* What is largest lies where a loop begins; a bias hides a pair. */
static void make_extreme(const fa_case *c, fa_tensors *in) {
  const fa_problem *p = &c->problem;
  int64_t at[FA_MAX_RANK] = {0};
  if (p->bias.present) fa_tensor_set(&in->t[FA_T_BIAS], at, -INFINITY);
  if (p->family != FA_KVCACHE) return;
  const int64_t first[FA_MAX_RANK] = {0};
  at[0] = (int64_t)fa_tensor_get(&in->t[FA_T_BLOCK_TABLE], first);
  fa_tensor_set(&in->t[FA_T_V], at, 9);
  fa_tensor_set(&in->t[FA_T_K], at, 7);
}

static void check_case(int n) {
  fa_case c;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(cases[n].json, &c, &err) == FA_OK, "case %d: %s", n, err.text);
  fa_law_side s = {.profile = fa_profile_get(cases[n].scalar ? "simt-f32" : "mma-ampere", c.problem.dtype)};
  REQUIRE(fa_problem_copy(&s.p, &c.problem) == FA_OK);
  CHECK_MSG(fa_case_build(&c, &s.in, &err) == FA_OK, "%s", err.text);
  make_extreme(&c, &s.in);
  s.profile.max_splits = cases[n].max_splits;
  if (mma_block) s.profile.mma_block = mma_block;
  fa_law_work w = {.c = &c, .generic = cases[n].generic};
  REQUIRE(fa_law_bounds(&w, &s, &err) == FA_OK);
  CHECK_MSG(s.bounded == 2, "case %d is not too long for the reference", n);
  for (int64_t b = 0; b < s.p.batch; ++b)
    for (int64_t h = 0; h < s.p.heads_q; ++h) {
      const head x = head_of(&s, b, h);
      if (s.p.kvcache.rotary_dim == 0)
        check_head(&w, &s, &x, b * s.p.heads_q + h);
      else /* rounded once more on the way */
        CHECK(s.bound_o[b * s.p.heads_q + h] == INFINITY && s.bound_lse[b * s.p.heads_q + h] == INFINITY);
    }
  check_places(&s);
  fa_law_side_free(&s);
  fa_case_free(&c);
}

/* The reference's bounds are had where it is fast: of packed sequences it is by their own lengths, not the longest. */
static void test_cheap(void) {
  static const char text[] =
      "{\"cu_seqlens_q\":[0,1000,1001,1002,1003],\"cu_seqlens_k\":[0,1,1001,2001,3001],\"head_dim\":64}";
  const fa_run_config config = {.backend = &fa_backend_ref_f32, .n_threads = 1};
  fa_case c;
  fa_error err = {""};
  REQUIRE(fa_case_from_text(text, &c, &err) == FA_OK);
  fa_law_side s = {.profile = fa_profile_get("simt-f32", c.problem.dtype)};
  fa_law_work w = {.c = &c, .config = &config, .generic = true, .passes = FA_PASS_FORWARD};
  REQUIRE(fa_problem_copy(&s.p, &c.problem) == FA_OK && fa_case_build(&c, &s.in, &err) == FA_OK);
  CHECK_MSG(fa_law_bounds(&w, &s, &err) == FA_OK && s.bounded == 1, "%d: %s", s.bounded, err.text);
  fa_law_side_free(&s);
  fa_case_free(&c);
}

/* ---- what is compared with a bound ---- */

/* A side whose one LSE is this, with this bound. */
static fa_law_side side_of(const fa_case *c, float lse, double *bounds) {
  fa_law_side s = {.profile = fa_profile_get("simt-f32", c->problem.dtype), .bounded = 2};
  fa_error err = {""};
  const int64_t first[FA_MAX_RANK] = {0};
  REQUIRE(fa_problem_copy(&s.p, &c->problem) == FA_OK && fa_case_build(c, &s.in, &err) == FA_OK);
  REQUIRE(fa_tensors_clone(&s.out, &s.in, &err) == FA_OK);
  fa_tensor_set(&s.out.t[FA_T_LSE], first, lse);
  s.bound_o = s.bound_lse = bounds;
  return s;
}

/* Whether two results break a law whose bounds are these. */
static bool breaks(float want, float got, double bound_a, double bound_b) {
  static fa_result r;
  const fa_run_config config = {.backend = &fa_backend_ref_f32};
  const fa_law_modes modes = {.of = {[FA_T_LSE] = FA_LAW_BOUND}};
  fa_case c;
  fa_error err = {""};
  REQUIRE(fa_case_from_text("{\"seqlen_q\":1,\"head_dim\":8,\"backward\":false}", &c, &err) == FA_OK);
  fa_law_work w = {.c = &c, .config = &config, .r = &r, .passes = FA_PASS_FORWARD};
  fa_result_init(&r);
  w.base = side_of(&c, want, &bound_a);
  w.other = side_of(&c, got, &bound_b);
  REQUIRE(fa_law_compare_all(&w, &w.other, modes, NULL, NULL, &err) == FA_OK);
  CHECK(w.n_compared == 1);
  const bool broken = r.state == FA_FAIL;
  w.base.bound_o = w.base.bound_lse = w.other.bound_o = w.other.bound_lse = NULL;
  fa_law_side_free(&w.base);
  fa_law_side_free(&w.other);
  fa_result_free(&r);
  fa_case_free(&c);
  return broken;
}

/* The bounds of both and 2^-6 of half a unit are allowed, to the last bit. */
static void test_met(void) {
  const double unit = fa_half_ulp(FA_F32, 1) * 0x1p-6;
  CHECK(!breaks(1, 1 + 0x1p-10f, 0x1p-10 - unit, 0) && !breaks(1, 1 + 0x1p-10f, 0, 0x1p-10 - unit));
  CHECK(!breaks(1, 1 - 0x1p-10f, 0x1p-11, 0x1p-11 - unit));
  CHECK(breaks(1, 1 + 0x1p-10f, 0x1p-11, 0x1p-11 - 2 * unit));
  CHECK(breaks(1, 1 - 0x1p-10f, 0x1p-11, 0x1p-11 - 2 * unit));
}

static void set_zero(const fa_tensor *t) {
  int64_t index[FA_MAX_RANK];
  for (int64_t e = 0; t->data && e < fa_tensor_count(t); ++e) {
    fa_tensor_unravel(t, e, index);
    fa_tensor_set(t, index, 0);
  }
}

/* Whether a NaN in dQ breaks a law where dS may be as large as 2 |dO| |V|, and V is 1, and its type has this largest number. */
static bool nan_breaks(double grad, double largest) {
  static fa_result r;
  const fa_run_config config = {.backend = &fa_backend_ref_f32};
  const int64_t first[FA_MAX_RANK] = {0}, fourth[FA_MAX_RANK] = {0, 0, 0, 3};
  double unused = 0;
  fa_case c;
  fa_error err = {""};
  REQUIRE(fa_case_from_text("{\"seqlen_q\":1,\"head_dim\":8,\"fill\":\"zero\"}", &c, &err) == FA_OK);
  fa_law_side s = side_of(&c, 0, &unused);
  fa_law_work w = {.c = &c, .config = &config, .r = &r, .passes = FA_PASS_FORWARD | FA_PASS_BACKWARD};
  fa_result_init(&r);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_tensor_id_is_output((fa_tensor_id)id)) set_zero(&s.out.t[id]);
  fa_tensor_set(&s.in.t[FA_T_DO], first, grad);
  fa_tensor_set(&s.in.t[FA_T_V], first, 1);
  fa_tensor_set(&s.out.t[FA_T_DQ], fourth, NAN);
  s.profile.max_p = largest;
  REQUIRE(fa_law_check_nan(&w, &s, &err) == FA_OK);
  CHECK(w.over == (r.state == FA_FAIL));
  CHECK_MSG(!w.over || strstr(r.reason, "[0,0,0,3]"), "%s", r.reason);
  s.bound_o = s.bound_lse = NULL;
  fa_law_side_free(&s);
  fa_result_free(&r);
  fa_case_free(&c);
  return w.over;
}

static void test_overflow(void) {
  CHECK(nan_breaks(1, 3) && nan_breaks(1, 2) && nan_breaks(0.5, 1));
  CHECK(!nan_breaks(1, 1.999) && !nan_breaks(0.5, 0.999));
}

/* ---- what is within a bound ---- */

static fa_law_link told;

static bool map_told(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                     fa_law_link *link) {
  (void)w, (void)ctx, (void)id, (void)index;
  link->factor = told.factor;
  link->shift = told.shift;
  return true;
}

/* Whether an O of `got` is what an O of `want` has to become: times the factor, plus the shift, within both sides' bounds. */
static bool is_within(double want, double got, const double bounds[2], double factor, double shift) {
  static fa_result r;
  fa_law_work w = {.r = &r, .generic = true};
  fa_error err = {""};
  fa_case c;
  double o[2] = {bounds[0], bounds[1]}, lse[2] = {0, 0};
  const int64_t at[FA_MAX_RANK] = {0};
  REQUIRE(fa_case_from_text("{\"dtype\":\"f32\",\"family\":\"memeff\",\"seqlen_q\":1,\"head_dim\":8}", &c,
                            &err) == FA_OK);
  fa_result_init(&r);
  w.c = &c;
  fa_law_side *const sides[] = {&w.base, &w.other};
  for (int k = 0; k < 2; ++k) {
    fa_law_side *s = sides[k];
    s->p = c.problem, s->bounded = 2, s->bound_o = &o[k], s->bound_lse = &lse[k];
    REQUIRE(fa_case_build(&c, &s->out, &err) == FA_OK && fa_case_build(&c, &s->in, &err) == FA_OK);
    for (int64_t e = 0; e < 8; ++e) /* other elements agree */
      fa_tensor_set(&s->out.t[FA_T_O], (int64_t[FA_MAX_RANK]){0, 0, 0, e}, k ? want * factor + shift : want);
  }
  fa_tensor_set(&w.other.out.t[FA_T_O], at, got);
  told.factor = factor, told.shift = shift;
  CHECK(fa_law_compare(&w, &w.other, FA_T_O, FA_LAW_BOUND, map_told, NULL, &err) == FA_OK &&
        w.n_compared == 8);
  const bool within = r.state == FA_UNTESTED;
  for (int k = 0; k < 2; ++k) fa_tensors_free(&sides[k]->out), fa_tensors_free(&sides[k]->in);
  fa_result_free(&r);
  fa_case_free(&c);
  return within;
}

/* To the last bit: the base's bound times the factor, the other's, and, where something is added, twice half a unit of the sum. */
static void test_pairs(void) {
  static const double bounds[] = {0x1p-10, 0x1p-12}, ulp = 0x1p-23;
  CHECK(is_within(1, 1 + 0x1p-10 + 0x1p-12, bounds, 1, 0) &&
        !is_within(1, 1 + 0x1p-10 + 0x1p-12 + ulp, bounds, 1, 0));
  CHECK(is_within(1, 1 - 0x1p-10 - 0x1p-12, bounds, 1, 0) &&
        !is_within(1, 1 - 0x1p-10 - 0x1p-12 - ulp / 2, bounds, 1, 0));
  CHECK(is_within(0.5, 1 + 0x1p-9 + 0x1p-12, bounds, 2, 0) &&
        !is_within(0.5, 1 + 0x1p-9 + 0x1p-12 + ulp, bounds, 2, 0));
  CHECK(is_within(0.5, 1 + 0x1p-10 + 0x1p-12 + ulp, bounds, 1, 0.5) &&
        !is_within(0.5, 1 + 0x1p-10 + 0x1p-12 + 3 * ulp, bounds, 1, 0.5));
  CHECK(is_within(INFINITY, fa_dtype_max(FA_F32), bounds, 1, 0) &&
        is_within(-INFINITY, -fa_dtype_max(FA_F32), bounds, 1, 0));
  CHECK(!is_within(INFINITY, -fa_dtype_max(FA_F32), bounds, 1, 0));
}

int main(void) {
  test_cheap();
  test_pairs();
  test_met();
  test_overflow();
  for (int n = 0; n < (int)(sizeof cases / sizeof *cases); ++n) check_case(n);
  mma_block = 1; /* one product at a time, in as many sums */
  check_case(9);
  return check_done();
}
