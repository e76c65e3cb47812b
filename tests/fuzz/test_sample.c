/* What a sample promises: faults of the share that it names are found as often as it says, wherever they lie; a fault is
 * found exactly if one of its places is judged; what nobody wrote is seen everywhere. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "fuzz/judging/judge.h"
#include "fuzz/judging/sample.h"
#include "gpu/backend.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

typedef struct subject {
  fa_case c;
  fa_tensors in, got;
  fa_profile profile;
} subject;

static void make(subject *x, const char *text) {
  fa_error err = {""};
  *x = (subject){.profile = {0}};
  CHECK_MSG(fa_case_from_text(text, &x->c, &err) == FA_OK, "%s", err.text);
  REQUIRE(fa_case_build(&x->c, &x->in, &err) == FA_OK);
}

static void run(subject *x) {
  fa_error err = {""};
  fa_outcome outcome;
  const fa_run_options opt = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 2};
  REQUIRE(fa_tensors_clone(&x->got, &x->in, &err) == FA_OK);
  REQUIRE(fa_backend_ref_f32.run(NULL, &x->c.problem, &x->got, &opt, &outcome, &err) == FA_OK);
  fa_backend_ref_f32.profile(NULL, &x->c.problem, &x->profile);
}

static void discard(subject *x) {
  fa_tensors_free(&x->in);
  fa_tensors_free(&x->got);
  fa_case_free(&x->c);
}

/* ---- how often faults are found ---- */

/* A fault of about a share of all rows or strips: number n of them, of so many, has it. */
typedef bool fault(int64_t n, int64_t of, double share);

static bool scattered(int64_t n, int64_t of, double share) {
  (void)of;
  return fmod((double)n * 0.6180339887498949, 1) < share;
}
static bool first_ones(int64_t n, int64_t of, double share) {
  return (double)n < share * (double)of;
}
static bool last_ones(int64_t n, int64_t of, double share) {
  return (double)(of - 1 - n) < share * (double)of;
}
static bool of_tiles(int64_t n, int64_t of, double share) {
  (void)of;
  return fmod((double)(n / 64) * 0.6180339887498949, 1) < share;
}

static int64_t number_of(const fa_problem *p, const fa_ref_place *at, bool strip) {
  const int64_t each = strip ? (p->seqlen_k + FA_STRIP_KEYS - 1) / FA_STRIP_KEYS : p->seqlen_q;
  return (at->b * (strip ? p->heads_kv : p->heads_q) + at->h) * each +
         (strip ? at->i / FA_STRIP_KEYS : at->i);
}

static bool is_found(const fa_problem *p, const fa_sample_places *x, fault *f, bool strips) {
  const int64_t n = strips ? x->n_strips : x->n_rows, of = strips ? x->of_strips : x->of_rows;
  for (int64_t i = 0; i < n; ++i)
    if (f(number_of(p, strips ? &x->strip[i] : &x->row[i], strips), of, fa_sample_found(n))) return true;
  return false;
}

static void check_places(const fa_ref_place *at, int64_t n, int64_t wanted) {
  int64_t bad = n != wanted;
  for (int64_t i = 1; i < n; ++i) bad += fa_ref_place_order(&at[i - 1], &at[i]) >= 0;
  CHECK(bad == 0);
}

/* Of 600 samples 570 are to find it, and less than 549 would not be chance. */
static void check_rate(const char *text, int64_t rows, int64_t strips) {
  static fault *const faults[] = {scattered, first_ones, last_ones, of_tiles};
  enum { SEEDS = 600, LEAST = 549 };
  subject x;
  int found[2][4] = {{0}};
  make(&x, text);
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    const fa_sample sample = {rows, strips, seed};
    fa_sample_places places;
    fa_error err;
    REQUIRE(fa_sample_draw(&x.c.problem, &x.in, &sample, 7, true, &places, &err) == FA_OK);
    check_places(places.row, places.n_rows, rows);
    check_places(places.strip, places.n_strips, strips);
    for (int f = 0; f < 4; ++f) {
      found[0][f] += is_found(&x.c.problem, &places, faults[f], false);
      found[1][f] += is_found(&x.c.problem, &places, faults[f], true);
    }
    fa_sample_places_free(&places);
  }
  for (int f = 0; f < 3; ++f)
    CHECK_MSG(found[1][f] >= LEAST, "%s: strips, fault %d: %d", text, f, found[1][f]);
  for (int f = 0; f < 4; ++f) CHECK_MSG(found[0][f] >= LEAST, "%s: rows, fault %d: %d", text, f, found[0][f]);
  discard(&x);
}

/* More than there are: all of them, once. */
static void check_all(void) {
  subject x;
  const fa_sample sample = {.rows = 100000, .strips = 100000};
  fa_sample_places places;
  fa_error err;
  make(&x, "{\"heads_q\":2,\"batch\":2,\"seqlen_q\":300,\"seqlen_k\":700}");
  REQUIRE(fa_sample_draw(&x.c.problem, &x.in, &sample, 1, true, &places, &err) == FA_OK);
  check_places(places.row, places.n_rows, 1200);
  check_places(places.strip, places.n_strips, 12);
  CHECK(fa_sample_is_whole(&places));
  fa_sample_places_free(&places);
  discard(&x);
}

/* ---- what is judged ---- */

static fa_result *judge(const subject *x, fa_sample sample, bool backward) {
  const fa_judge_config config = {.profile = &x->profile,
                                  .n_threads = 2,
                                  .generic = fa_case_is_generic(&x->c),
                                  .backward = backward,
                                  .poison = FA_POISON_A,
                                  .sample = sample,
                                  .sample_stream = x->c.data_seed};
  fa_error err = {""};
  fa_result *r = malloc(sizeof *r);
  REQUIRE(r);
  fa_result_init(r);
  CHECK_MSG(fa_judge(&x->c.problem, &x->in, &x->got, &config, r, &err) == FA_OK, "%s", err.text);
  return r;
}

static void drop(fa_result *r) {
  fa_result_free(r);
  free(r);
}

static const fa_verdict *verdict(const fa_result *r, fa_tensor_id id) {
  for (int i = 0; i < r->n_verdicts; ++i)
    if (r->verdict[i].id == id) return &r->verdict[i];
  return NULL;
}

static bool has(const fa_ref_place *list, int64_t n, int64_t h, int64_t i) {
  for (int64_t k = 0; k < n; ++k)
    if (list[k].h == h && list[k].i == i) return true;
  return false;
}

static void multiply(fa_tensor *t, const int64_t *index, double by) {
  fa_tensor_set(t, index, by * fa_tensor_get(t, index) + 1);
}

#define LARGE                                                                                                \
  "{\"heads_q\":2,\"heads_kv\":1,\"seqlen_q\":700,\"seqlen_k\":1100,\"head_dim\":16,\"head_dim_v\":16}"

/* A wrong row of O and of dQ, and a wrong key of dV: found if, and only if, they are judged. */
static void check_found_if_judged(void) {
  const int64_t row[FA_MAX_RANK] = {0, 333, 1, 5}, key[FA_MAX_RANK] = {0, 600, 0, 2};
  subject x;
  int n_rows = 0, n_strips = 0;
  make(&x, LARGE);
  run(&x);
  multiply(&x.got.t[FA_T_DQ], row, 3);
  multiply(&x.got.t[FA_T_DV], key, 3);
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const fa_sample sample = {.rows = 400, .strips = 2, .seed = seed};
    fa_sample_places places;
    fa_error err;
    REQUIRE(fa_sample_draw(&x.c.problem, &x.in, &sample, x.c.data_seed, true, &places, &err) == FA_OK);
    const bool row_is = has(places.row, places.n_rows, 1, 333), key_is = has(places.strip, 2, 0, 512);
    fa_result *r = judge(&x, sample, true);
    CHECK(verdict(r, FA_T_DQ)->bad == row_is && verdict(r, FA_T_DV)->bad == key_is);
    CHECK(verdict(r, FA_T_DK)->bad == 0 && verdict(r, FA_T_O)->bad == 0 && verdict(r, FA_T_LSE)->bad == 0);
    CHECK((r->state == FA_FAIL) == (row_is || key_is));
    CHECK(verdict(r, FA_T_O)->count == 400 * 16 && verdict(r, FA_T_LSE)->count == 400);
    CHECK(r->sampled.asked.rows == 400 && r->sampled.rows == 400 && r->sampled.of_rows == 1400);
    CHECK(r->sampled.strips == 2 && r->sampled.of_strips == 5 && !r->sampled.odd_rows);
    if (row_is) CHECK(memcmp(verdict(r, FA_T_DQ)->worst[0].index, row, sizeof row) == 0);
    n_rows += row_is;
    n_strips += key_is;
    drop(r);
    fa_sample_places_free(&places);
  }
  CHECK(n_rows > 0 && n_rows < 24 && n_strips > 0 && n_strips < 24); /* both happened */
  discard(&x);
}

/* Elements that nobody wrote, and a NaN, are found with any sample. */
static void check_unwritten(void) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
  const int64_t index[FA_MAX_RANK] = {0, 123, 0, 7}, of_lse[FA_MAX_RANK] = {0, 1, 123};
  for (int i = 0; i < 5; ++i) {
    subject x;
    make(&x, LARGE);
    run(&x);
    fa_tensor *t = &x.got.t[ids[i]];
    const fa_tensor *poison = &x.in.t[ids[i]];
    const int64_t at = fa_tensor_offset(t, ids[i] == FA_T_LSE ? of_lse : index);
    memcpy(t->data + at, poison->data + at, fa_dtype_size(t->dtype));
    fa_result *r = judge(&x, (fa_sample){.rows = 1, .strips = 1, .seed = 5}, true);
    CHECK_MSG(verdict(r, ids[i])->unwritten == 1 && r->state == FA_FAIL, "%s", fa_tensor_id_name(ids[i]));
    CHECK(r->sampled.odd_rows + r->sampled.odd_strips <= 1);
    drop(r);
    discard(&x);
  }
}

/* Of a sample of one row that row is judged. */
static void check_one_row(void) {
  subject x;
  make(&x, LARGE);
  run(&x);
  fa_result *r = judge(&x, (fa_sample){.rows = 1, .strips = 1, .seed = 5}, true);
  CHECK(r->sampled.rows == 1 && !r->sampled.odd_rows);
  REQUIRE(verdict(r, FA_T_O) && verdict(r, FA_T_LSE) && verdict(r, FA_T_DQ));
  CHECK(verdict(r, FA_T_O)->count == 16 && verdict(r, FA_T_LSE)->count == 1 &&
        verdict(r, FA_T_DQ)->count == 16);
  drop(r);
  discard(&x);
}

/* Judged as a whole, and it says why; id: an output that no place has a part of. */
static void check_refused(const char *text, const char *why, fa_tensor_id id) {
  subject x;
  make(&x, text);
  run(&x);
  fa_result *r = judge(&x, (fa_sample){.rows = 3, .strips = 1, .seed = 1}, true);
  CHECK_MSG(!r->sampled.asked.rows && strstr(r->notes, why), "%s: %s", why, r->notes);
  CHECK(verdict(r, FA_T_O)->count == fa_tensor_count(&x.got.t[FA_T_O]) && verdict(r, id));
  drop(r);
  discard(&x);
}

/* As above, or because the sample is everything. */
static void check_whole(void) {
  check_refused("{\"family\":\"memeff\",\"heads_q\":2,\"seqlen_q\":40,\"seqlen_k\":65,"
                "\"bias\":{\"shape\":[1,\"h\",\"q\",\"k\"],\"grad\":true}}",
                "not sampled: the bias's gradient", FA_T_DBIAS);
  check_refused("{\"heads_q\":2,\"seqlen_q\":40,\"seqlen_k\":65,\"sinks\":true}",
                "not sampled: a sink's gradient", FA_T_DSINKS);
  check_refused("{\"family\":\"merge\",\"heads_q\":2,\"seqlen_q\":40}", "not sampled: a merge",
                FA_T_DO_PARTS);
  subject x;
  make(&x, LARGE);
  run(&x);
  fa_result *r = judge(&x, (fa_sample){.rows = 1400, .strips = 5, .seed = 1}, true);
  CHECK(!r->sampled.asked.rows && verdict(r, FA_T_O)->count == fa_tensor_count(&x.got.t[FA_T_O]));
  drop(r);
  discard(&x);
}

int main(void) {
  check_rate("{\"heads_q\":4,\"seqlen_q\":2100,\"seqlen_k\":4200,\"head_dim\":8,\"head_dim_v\":8}", 100, 20);
  check_rate(
      "{\"heads_q\":2,\"batch\":5,\"seqlen_q\":1000,\"seqlen_k\":3000,\"head_dim\":8,\"head_dim_v\":8}", 600,
      9);
  check_rate("{\"heads_q\":3,\"seqlen_q\":250,\"seqlen_k\":6000,\"head_dim\":8,\"head_dim_v\":8}", 40, 30);
  check_all();
  check_found_if_judged();
  check_unwritten();
  check_one_row();
  check_whole();
  return check_done();
}
