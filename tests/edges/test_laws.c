/* Two results, and whether a law takes one for the other: bits, numbers that were doubled on the way, norms, and which calls are compared
 * by their bits at all (docs/reference/laws.md). */
#include "fuzz/laws/parts.h"
#include "tests/held/case_of.h"

#include <math.h>
#include <string.h>

enum { N = 8 };
static fa_result r;
static fa_law_work w;
static fa_case c;
static double bounds[N];
static fa_law_link told;

static int64_t left_out = -1; /* a column that is not compared */

static bool map_told(const fa_law_work *work, const void *ctx, fa_tensor_id id, const int64_t *index,
                     fa_law_link *link) {
  (void)work, (void)ctx, (void)id;
  link->factor = told.factor, link->shift = told.shift, link->powers = told.powers;
  return index[3] != left_out;
}

/* Two sides of one call, whose results have no bound but these. */
static void begin(fa_law law, const char *text, double bound) {
  fa_law_side *const sides[] = {&w.base, &w.other};
  fa_tensors unused;
  fa_error err = {""};
  fa_result_init(&r);
  w = (fa_law_work){.r = &r, .generic = true};
  c = case_of(text, &unused);
  fa_tensors_free(&unused);
  c.law = law;
  w.c = &c;
  told = (fa_law_link){.factor = 1};
  for (int i = 0; i < N; ++i) bounds[i] = bound;
  for (int k = 0; k < 2; ++k) {
    fa_law_side *s = sides[k];
    s->profile = fa_profile_get("simt-f32", c.problem.dtype);
    s->profile.u_p = s->profile.u_ds = 0;
    s->bounded = 2, s->bound_o = s->bound_lse = bounds;
    REQUIRE(fa_problem_copy(&s->p, &c.problem) == FA_OK && fa_case_build(&c, &s->in, &err) == FA_OK);
    REQUIRE(fa_tensors_clone(&s->out, &s->in, &err) == FA_OK);
  }
}

static void end(void) {
  w.base.bound_o = w.base.bound_lse = w.other.bound_o = w.other.bound_lse = NULL;
  fa_law_side_free(&w.base);
  fa_law_side_free(&w.other);
  fa_case_free(&c);
  fa_result_free(&r);
}

/* An element of an output of [1, 1, 1, 8] or [1, 2, 1, 4]. */
static void put(const fa_law_side *s, fa_tensor_id id, int64_t e, double x) {
  int64_t at[FA_MAX_RANK];
  fa_tensor_unravel(&s->out.t[id], e, at);
  fa_tensor_set(&s->out.t[id], at, x);
}

static void put_all(fa_tensor_id id, double want, double got) {
  for (int64_t e = 0; e < fa_tensor_count(&w.base.out.t[id]); ++e) {
    put(&w.base, id, e, want);
    put(&w.other, id, e, got);
  }
}

static void compare(fa_tensor_id id, fa_law_mode mode) {
  fa_error err = {""};
  CHECK_MSG(fa_law_compare(&w, &w.other, id, mode, map_told, NULL, &err) == FA_OK, "%s", err.text);
}

/* ---- bits ---- */

typedef enum verdict { GOOD, BAD, UNKNOWN } verdict;

static const struct {
  const char *dtype;
  double factor, shift;
  bool powers;
  double want, got;
  verdict verdict;
} pairs[] = {
    /* as they are */
    {"f16", 1, 0, false, 1, 1, GOOD},
    {"f16", 1, 0, false, 1, 1 + 0x1p-10, BAD},
    {"f16", 1, 0, false, 0.0, -0.0, BAD},
    {"f16", 1, 0, true, 0.0, -0.0, GOOD},
    {"f16", 1, 0, true, 1, -1, BAD},
    {"f16", 1, 0, true, 0x1p-24, 0x1p-23, BAD},
    {"f32", 1, 0, false, 0x1p-90, 0x1p-91, BAD},
    {"f32", 1, 0, true, 0x1p-90, 0x1p-91, UNKNOWN},
    {"bf16", 1, 0, true, -0x1p-90, 0x1p-71, UNKNOWN},
    {"f32", 1, 0, true, 0x1p-90, 0x1p-70, BAD},
    {"f32", 1, 0, true, 0x1p-80, 0x1p-81, BAD},
    {"f32", 1, 0, true, -0x1p-80, 0x1p-81, BAD},
    {"f32", 1, 0, true, 0x1p-90, NAN, BAD},
    /* doubled, halved, and with something added */
    {"f32", 2, 0, false, 1, 2, GOOD},
    {"f32", 2, 0, false, 1, 2 - 0x1p-23, BAD},
    {"f32", 2, 0, false, 1, 2 + 0x1p-22, BAD},
    {"f32", 0.5, 0, false, 1, 0.5, GOOD},
    {"f32", 0.5, 0, false, 1, 1, BAD},
    {"f32", 1, 3, false, 1, 4, GOOD},
    {"f32", 1, 3, false, 1, 1, BAD},
    {"f32", 1, -3, false, 1, -2, GOOD},
    {"f32", 2, 3, false, 1, 5, GOOD},
    {"f32", 2, 0, false, 0.0, -0.0, UNKNOWN},
    {"f32", 2, 0, false, INFINITY, INFINITY, UNKNOWN},
    /* f16 below its normal numbers: two units of the smallest, times the factor */
    {"f16", 0.5, 0, false, 0x1p-14, 0x1p-15, GOOD},
    {"f16", 0.5, 0, false, 0x1p-14, 0x1p-15 + 0x1p-23, GOOD},
    {"f16", 0.5, 0, false, 0x1p-14, 0x1p-15 - 0x1p-23, GOOD},
    {"f16", 0.5, 0, false, 0x1p-14, 0x1p-15 + 3 * 0x1p-24, BAD},
    {"f16", 0.5, 0, false, 0x1p-12, 0x1p-13 + 0x1p-23, BAD},
    {"f16", 0.5, 0, false, 0x1.ffcp-13, 0x1.ffcp-14 + 0x1p-23, GOOD},
    {"f16", 0.5, 0, false, -0x1p-12, -0x1p-13 - 0x1p-23, BAD},
    {"f16", 0.5, 0, false, -0x1p-14, -0x1p-15 - 0x1p-23, GOOD},
    {"f16", 4, 0, false, 0x1p-14, 0x1p-12 + 0x1p-21, GOOD},
    {"f16", 4, 0, false, 0x1p-14, 0x1p-12 + 0x1p-21 + 0x1p-22, BAD},
    {"f16", 4, 0, false, 0x1p-13, 0x1p-11 + 0x1p-21, BAD},
    {"bf16", 0.5, 0, false, 0x1p-14, 0x1p-15 + 0x1p-22, BAD},
    /* beyond the largest and below what is certain */
    {"f16", 2, 0, false, 0.0, -0.0, GOOD},
    {"f16", 2, 0, false, 40000, INFINITY, UNKNOWN},
    {"f16", 2, 0, false, 40000, 1, UNKNOWN},
    {"f16", 2, 0, false, -40000, NAN, BAD},
    {"f16", 2, 0, false, 32752, 65504, GOOD},
    {"f16", 2, 0, false, 32752, 65472, BAD},
    {"f32", 2, 0, false, 0x1p-81, 0x1p-71, UNKNOWN},
    {"f32", 2, 0, false, 0x1p-81, -0x1p-71, UNKNOWN},
    {"f32", 2, 0, false, 0x1p-81, 0x1p-70, BAD},
    {"f32", 2, 0, false, 0x1p-80, 0x1p-71, BAD},
    {"f32", 2, 0, false, 0x1p-81, -1, BAD},
    {"f32", 2, 0, false, -1, 0x1p-71, BAD},
    {"f32", 2, 0, false, -0x1p-81, 0x1p-71, UNKNOWN},
    {"f32", 1, 0, true, 0x1p-81, -1, BAD},
    {"f32", 0.5, 0, false, 0x1p-80, 0x1p-71, UNKNOWN},
    {"f32", 0.5, 0, false, 0x1p-79, 0x1p-71, BAD},
    {"f32", 2, 0, false, 0x1p-81, NAN, BAD},
};

static void test_bits(void) {
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    char text[200];
    snprintf(text, sizeof text, "{\"dtype\":\"%s\",\"seqlen_q\":1,\"head_dim\":8}", pairs[i].dtype);
    begin(FA_LAW_SCALE_POWER, text, 0);
    told = (fa_law_link){.factor = pairs[i].factor, .shift = pairs[i].shift, .powers = pairs[i].powers};
    put_all(FA_T_O, 1, pairs[i].factor + pairs[i].shift);
    put(&w.base, FA_T_O, 5, pairs[i].want);
    put(&w.other, FA_T_O, 5, pairs[i].got);
    compare(FA_T_O, FA_LAW_BITS);
    const verdict said = r.state == FA_FAIL ? BAD : w.n_compared == N ? GOOD : UNKNOWN;
    CHECK_MSG(said == pairs[i].verdict && w.n_compared == N - (said == UNKNOWN),
              "pair %zu: %s, times %g plus %g: %a, %a: %d, %s", i, pairs[i].dtype, pairs[i].factor,
              pairs[i].shift, pairs[i].want, pairs[i].got, (int)said, r.reason);
    CHECK_MSG(said != BAD || strstr(r.reason, "o: 1 of 8 elements break it, the first [0,0,0,5]: got "), "%s",
              r.reason);
    CHECK_MSG(said != BAD || strstr(r.reason, ", the same bits"), "%s", r.reason);
    CHECK(said != BAD || (r.law_broken == FA_TENSOR_BIT(FA_T_O) &&
                          r.law_nan == (isnan(pairs[i].got) ? FA_TENSOR_BIT(FA_T_O) : 0)));
    end();
  }
}

/* What nobody wrote breaks a law wherever it is, and the first of several is named. */
static void test_unwritten(void) {
  begin(FA_LAW_SCALE_POWER, "{\"dtype\":\"f32\",\"seqlen_q\":1,\"head_dim\":8}", INFINITY);
  told = (fa_law_link){.factor = 1, .powers = true};
  put_all(FA_T_O, 1, 1);
  fa_tensors_poison(&w.other.out, FA_T_O, FA_POISON_A);
  put(&w.other, FA_T_O, 0, 1);
  put(&w.other, FA_T_O, 7, 1);
  compare(FA_T_O, FA_LAW_BOUND);
  CHECK_MSG(strstr(r.reason, "o: 6 of 6 elements break it, the first [0,0,0,1]"), "%s", r.reason);
  end();
}

/* ---- norms: 32 u of what is largest, and of all together ---- */

static const struct {
  const char *dtype;
  double u_p, u_ds, want, error; /* every want; the error of so many */
  int n;
  double one;       /* in place of the last want */
  const char *says; /* NULL: it holds */
} norms[] = {
    {"f32", 0, 0, 0x1p-3, 0x1p-14, 1, 0x1p-3, NULL},
    {"f32", 0, 0, 0x1p-3, 0x1p-14 + 0x1p-18, 1, 0x1p-3, "8 of 8 elements break it, the first [0,0,0,0]"},
    {"f32", 0, 0, 0x1p-3, -0x1p-14, 8, 0x1p-3, NULL},
    {"f32", 0, 0, 8, 0x1p-8, 8, 8, NULL},
    {"f32", 0, 0, -8, 0x1p-8, 8, -8, NULL},
    {"f32", 0, 0, 8, 0x1p-8 + 0x1p-12, 1, 8, "within 0.00391"},
    {"f32", 0, 0, 0, 0x1p-11, 1, 1, NULL},
    {"f32", 0, 0, 0, 0x1p-11, 2, 1, "8 of 8 elements break it"},
    {"f32", 0, 0, 0, 0x1p-11 * 0.75, 2, 1, "8 of 8 elements break it"},
    {"f32", 0, 0, 0, 0x1p-11 * 0.75, 2, -1, "8 of 8 elements break it"},
    {"f32", 0, 0, 0, 0x1p-12, 4, 1, NULL},
    {"f32", 0, 0, 0, 0x1p-12, 5, 1, "got 0.000244140625, by the law 0"},
    {"f32", 0x1p-9, 0, 1, 0x1p-4, 8, 1, NULL},
    {"f32", 0x1p-9, 0, 1, 0x1p-4 + 0x1p-10, 1, 1, "within 0.0625"},
    {"f32", 0, 0x1p-8, 1, 0x1p-3, 8, 1, NULL},
    {"f32", 0, 0x1p-8, 1, 0x1p-3 + 0x1p-10, 1, 1, "within 0.125"},
    {"f16", 0, 0, 1, 0x1p-6, 8, 1, NULL},
    {"f16", 0, 0, 1, 0x1p-6 + 0x1p-10, 1, 1, "within 0.0156"},
    {"f32", 0, 0, 1, NAN, 1, 1, "got nan, by the law 1"},
};

static void test_norms(void) {
  for (size_t i = 0; i < sizeof norms / sizeof *norms; ++i) {
    char text[200];
    snprintf(text, sizeof text, "{\"dtype\":\"%s\",\"seqlen_q\":1,\"head_dim\":8}", norms[i].dtype);
    begin(FA_LAW_SCALE_POWER, text, 0);
    w.other.profile.u_p = norms[i].u_p, w.other.profile.u_ds = norms[i].u_ds;
    put_all(FA_T_DV, norms[i].want, norms[i].want);
    put(&w.base, FA_T_DV, 7, norms[i].one);
    put(&w.other, FA_T_DV, 7, norms[i].one);
    for (int e = 0; e < norms[i].n; ++e)
      put(&w.other, FA_T_DV, e, (e == 7 ? norms[i].one : norms[i].want) + norms[i].error);
    compare(FA_T_DV, FA_LAW_BOUND);
    CHECK(w.n_compared == N);
    CHECK_MSG(norms[i].says ? r.state == FA_FAIL && strstr(r.reason, norms[i].says) : r.state == FA_UNTESTED,
              "norm %zu: %s: %s", i, fa_state_name(r.state), r.reason);
    end();
  }
}

/* By the law's factor and shift; the worst is named; and of other data norms say nothing. */
static void test_norms_mapped(void) {
  static const char text[] = "{\"dtype\":\"f32\",\"seqlen_q\":1,\"head_dim\":8}";
  for (int generic = 0; generic < 2; ++generic) {
    begin(FA_LAW_SCALE_POWER, text, 0);
    w.generic = generic;
    told.factor = 2, told.shift = 1;
    put_all(FA_T_DV, 1, 3);
    put(&w.other, FA_T_DV, 2, 3.25);
    put(&w.other, FA_T_DV, 4, 3.5);
    compare(FA_T_DV, FA_LAW_BOUND);
    CHECK(w.n_compared == (generic ? N : 0) && (r.state == FA_FAIL) == generic);
    CHECK_MSG(!generic || strstr(r.reason, "the first [0,0,0,4]"), "%s", r.reason);
    CHECK_MSG(!generic || strstr(r.reason, "got 3.5, by the law 3, within 0.00146"), "%s", r.reason);
    end();
  }
}

/* Of two that are equally wrong the first one is named; what is not compared is not counted; without a map each is compared with itself. */
static void test_norms_few(void) {
  static const char text[] = "{\"dtype\":\"f32\",\"seqlen_q\":1,\"head_dim\":8}";
  fa_error err = {""};
  for (int way = 0; way < 3; ++way) {
    begin(FA_LAW_SCALE_POWER, text, 0);
    put_all(FA_T_DV, 1, 1);
    put(&w.other, FA_T_DV, 2, way == 2 ? 1 : 1.5);
    put(&w.other, FA_T_DV, 4, 1.5);
    left_out = way == 1 ? 2 : -1;
    CHECK(fa_law_compare(&w, &w.other, FA_T_DV, FA_LAW_BOUND, way == 2 ? NULL : map_told, NULL, &err) ==
          FA_OK);
    CHECK(w.n_compared == (way == 1 ? N - 1 : N) && r.state == FA_FAIL);
    CHECK_MSG(strstr(r.reason, way ? "the first [0,0,0,4]" : "the first [0,0,0,2]"), "%s", r.reason);
    left_out = -1;
    end();
  }
}

/* Nothing is compared that nobody asks about, or that one run does not have. */
static void test_not_compared(void) {
  for (int way = 0; way < 3; ++way) {
    begin(FA_LAW_SCALE_POWER, "{\"dtype\":\"f32\",\"seqlen_q\":1,\"head_dim\":8}", 0);
    put_all(FA_T_O, 1, 2);
    char *kept[] = {w.base.out.t[FA_T_O].data, w.other.out.t[FA_T_O].data};
    if (way == 1) w.base.out.t[FA_T_O].data = NULL;
    if (way == 2) w.other.out.t[FA_T_O].data = NULL;
    compare(FA_T_O, way ? FA_LAW_BITS : FA_LAW_NOT);
    CHECK_MSG(w.n_compared == 0 && r.state == FA_UNTESTED, "%d: %s", way, r.reason);
    w.base.out.t[FA_T_O].data = kept[0], w.other.out.t[FA_T_O].data = kept[1];
    end();
  }
}

/* ---- within bounds ---- */

/* What is infinite on either side is no bound; a NaN that is there is one that may be. */
static void test_bounds(void) {
  static const struct {
    double base, other, want, got;
    const char *says; /* NULL: not compared; "": it holds */
  } rows[] = {{0.5, 0.25, 1, 1.75, ""},
              {0.5, 0.25, 1, 0.25, ""},
              {0.5, 0.25, 1, 1.875, "got 1.875, by the law 1, within 0.75"},
              {0.5, 0.25, 1, 0.125, "got 0.125, by the law 1, within 0.75"},
              {INFINITY, 0.25, 1, 9, NULL},
              {0.5, INFINITY, 1, 9, NULL},
              {0.5, 0.25, NAN, 9, NULL},
              {0.5, 0.25, 1, NAN, NULL}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    double its = rows[i].other;
    begin(FA_LAW_SCALE_POWER, "{\"dtype\":\"f32\",\"seqlen_q\":1,\"head_dim\":8}", rows[i].base);
    w.other.bound_o = w.other.bound_lse = &its;
    put_all(FA_T_LSE, rows[i].want, rows[i].got);
    compare(FA_T_LSE, FA_LAW_BOUND);
    CHECK(w.n_compared == (rows[i].says != NULL));
    CHECK_MSG(rows[i].says && *rows[i].says ? r.state == FA_FAIL && strstr(r.reason, rows[i].says)
                                            : r.state == FA_UNTESTED,
              "bound %zu: %s: %s", i, fa_state_name(r.state), r.reason);
    end();
  }
}

/* ---- which calls have the same bits ---- */

typedef void tweak(void);
static void nothing(void) {}
static void q_rows(void) {
  w.other.in.t[FA_T_Q].stride[1] = 9;
}
static void k_rows(void) {
  w.base.in.t[FA_T_K].stride[1] = 4;
}
static void v_entries(void) {
  w.other.in.t[FA_T_V].stride[0] = 9;
} /* there is one */
static void v_heads(void) {
  w.other.in.t[FA_T_V].stride[2] = 12;
}
static void columns(void) {
  w.other.in.t[FA_T_V].stride[3] = 3;
} /* no row of it begins elsewhere */
static void q_begin(void) {
  w.other.in.t[FA_T_Q].data += 2;
}
static void o_rows(void) {
  w.other.in.t[FA_T_Q].stride[1] = 9, w.base.out.t[FA_T_O].data += 8;
} /* of both */
static void tiles(void) {
  ++w.other.profile.block_n;
}
static void atomics(void) {
  w.other.profile.dkv_atomic = !w.base.profile.dkv_atomic;
}
static void library(void) {
  w.base.profile.library_products = true;
}
static void its_library(void) {
  w.other.profile.library_products = true;
}

static const struct {
  tweak *tweak;
  fa_law law;
  bool bits;
} calls[] = {
    {nothing, FA_LAW_BATCH_ALONE, true},  {q_rows, FA_LAW_BATCH_ALONE, false},
    {k_rows, FA_LAW_BATCH_ALONE, false},  {v_entries, FA_LAW_BATCH_ALONE, true},
    {v_heads, FA_LAW_BATCH_ALONE, false}, {columns, FA_LAW_BATCH_ALONE, true},
    {q_begin, FA_LAW_BATCH_ALONE, false}, {o_rows, FA_LAW_BATCH_ALONE, true},
    {tiles, FA_LAW_BATCH_ALONE, false},   {atomics, FA_LAW_BATCH_ALONE, false},
    {library, FA_LAW_BATCH_ALONE, false}, {its_library, FA_LAW_BATCH_ALONE, true},
    {library, FA_LAW_REPEAT, true},       {library, FA_LAW_SCALE_POWER, true},
    {library, FA_LAW_VALUE_POWER, true},  {library, FA_LAW_GRAD_POWER, true},
    {library, FA_LAW_WINDOW_OPEN, false}, {library, FA_LAW_SPLIT_COUNT, false},
};

/* Two LSEs that differ within their bounds, in calls that do. Keys are written as they are. */
static void test_calls(void) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i)
    for (int keys = 0; keys < 2; ++keys) {
      begin(calls[i].law, "{\"seqlen_q\":2,\"heads_q\":2,\"heads_kv\":2,\"head_dim\":8}", 1);
      const fa_tensor_id id = keys ? FA_T_K : FA_T_LSE;
      put_all(id, 1, 1.25);
      calls[i].tweak();
      compare(id, FA_LAW_BITS);
      CHECK_MSG((r.state == FA_FAIL) == (keys || calls[i].bits), "call %zu: %s: %s", i,
                fa_state_name(r.state), r.reason);
      end();
    }
}

/* A dQ that atomics add has any order. */
static void test_any_order(void) {
  for (int ordered = 0; ordered < 2; ++ordered) {
    begin(FA_LAW_REPEAT, "{\"dtype\":\"f32\",\"seqlen_q\":1,\"head_dim\":8}", 1);
    w.other.profile.dq_atomic = w.base.profile.dq_atomic = true;
    w.other.p.deterministic = ordered;
    put_all(FA_T_DQ, 1, 1 + 0x1p-20);
    compare(FA_T_DQ, FA_LAW_BITS);
    CHECK_MSG((r.state == FA_FAIL) == ordered, "%d: %s", ordered, r.reason);
    end();
  }
}

/* What is asked of which outputs: of all but those that have no strides, and of those alone that the passes write. */
static void test_modes(void) {
  const fa_law_modes all = fa_law_modes_all(FA_LAW_BITS);
  fa_law_modes own = all;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const bool asked = fa_tensor_id_is_output((fa_tensor_id)id) && fa_case_has_strides((fa_tensor_id)id);
    CHECK(all.of[id] == (asked ? FA_LAW_BITS : FA_LAW_NOT));
  }
  CHECK(all.of[FA_T_O] == FA_LAW_BITS && all.of[FA_T_Q] == FA_LAW_NOT && all.of[FA_T_P_DEBUG] == FA_LAW_NOT);
  fa_law_modes_dbias(&own, FA_LAW_NOT);
  CHECK(own.of[FA_T_DBIAS] == FA_LAW_NOT && all.of[FA_T_DBIAS] == FA_LAW_BITS);
  for (int backward = 0; backward < 2; ++backward) {
    fa_error err = {""};
    begin(FA_LAW_REPEAT, "{\"dtype\":\"f32\",\"seqlen_q\":1,\"head_dim\":8}", 0);
    w.passes = FA_PASS_FORWARD | (backward ? FA_PASS_BACKWARD : 0);
    for (int id = 0; id < FA_T_COUNT; ++id)
      if (w.base.out.t[id].data && fa_tensor_id_is_output((fa_tensor_id)id)) put_all((fa_tensor_id)id, 1, 1);
    put(&w.other, FA_T_DV, 3, 2);
    CHECK(fa_law_compare_all(&w, &w.other, all, NULL, NULL, &err) == FA_OK);
    CHECK_MSG((r.state == FA_FAIL) == backward, "%s", r.reason);
    CHECK_MSG(w.n_compared == (backward ? 4 * N + 1 : N + 1), "%lld", (long long)w.n_compared);
    end();
  }
}

int main(void) {
  test_bits();
  test_unwritten();
  test_norms();
  test_norms_mapped();
  test_norms_few();
  test_not_compared();
  test_bounds();
  test_calls();
  test_any_order();
  test_modes();
  return check_done();
}
