/* What the judge expects of the small named cases, values and bounds, is what tests/ref/recorded holds: a line for each case,
 * way and output, with sums over its elements, and one for its inputs. Most slips in a bound leave it a bound, if another one,
 * and no kernel notices.
 *
 * usage: test_ref_recorded [--write] [CASE FILE'S NAME...]    (default: all that are recorded; from the top of the source tree)
 * After an intended change: test_ref_recorded --write, and the commit says what became larger or smaller, and why. */
#include "cases/arithmetic/fields.h"
#include "cases/codec/file.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static const char *const all_files[] = {"causal", "window",  "edge",         "gqa",     "varlen", "dropout",
                                        "alibi",  "softcap", "headdim",      "offset",  "memeff", "kvcache",
                                        "flex",   "mixed",   "masks",        "prefill", "merge",  "sinks",
                                        "mla",    "topk",    "kvcache_large"};
enum { N_FILES = sizeof all_files / sizeof *all_files, N_SUMS = 5, SHARES = 7 };

/* Sums of value, quant, accum, noise and scale; elements count differently by place, so that two cannot change places. */
typedef struct digest {
  double sum[N_SUMS];
  long long n, odd; /* elements, and those of them that are not finite in one of the five */
} digest;

static double share_of(int64_t element) {
  return 1 + (double)(element % SHARES) / SHARES;
}

static void add(digest *d, int which, double x, int64_t element) {
  if (isfinite(x))
    d->sum[which] += share_of(element) * fabs(x);
  else
    d->odd += which + 1;
}

static digest digest_of(const fa_want *w) {
  digest d = {.n = w->n};
  const int64_t columns = w->rank > 0 && w->shape[w->rank - 1] > 0 ? w->shape[w->rank - 1] : 1;
  for (int64_t e = 0; e < w->n; ++e) {
    add(&d, 0, w->value[e], e);
    if (!w->quant) continue;
    add(&d, 1, w->quant[e], e);
    add(&d, 2, w->accum[e], e);
    if (w->noise) add(&d, 3, w->noise[e], e);
    if (w->scale && e % columns == 0) add(&d, 4, w->scale[e / columns], e / columns);
  }
  return d;
}

static void format(const digest *d, const char *name, const char *way, fa_tensor_id id, char *line,
                   size_t size) {
  snprintf(line, size, "%s %s %s %lld %lld %.7g %.7g %.7g %.7g %.7g", name, way, fa_tensor_id_name(id), d->n,
           d->odd, d->sum[0], d->sum[1], d->sum[2], d->sum[3], d->sum[4]);
  const size_t n = strlen(name);
  for (size_t i = 0; i < n && i < size; ++i)
    if (line[i] == ' ') line[i] = '_';
}

/* Up to the last bits, which the processor's own order of a sum may change, and what is left where terms cancel is nothing else. */
static bool alike(const char *a, const char *b) {
  char name[2][300];
  double x[2][N_SUMS];
  long long n[2][2];
  const char *const from[2] = {a, b};
  for (int i = 0; i < 2; ++i)
    if (sscanf(from[i], "%299[^ ] %*s %*s %lld %lld %lf %lf %lf %lf %lf", name[i], &n[i][0], &n[i][1],
               &x[i][0], &x[i][1], &x[i][2], &x[i][3], &x[i][4]) != 3 + N_SUMS)
      return false;
  const double least = 1e-10 * (x[1][1] + x[1][2] + x[1][4]) + 1e-30;
  for (int k = 0; k < N_SUMS; ++k)
    if (!(fabs(x[0][k] - x[1][k]) <= 1e-5 * fabs(x[1][k]) + least)) return false;
  return strcmp(name[0], name[1]) == 0 && n[0][0] == n[1][0] && n[0][1] == n[1][1];
}

typedef struct book {
  FILE *f; /* of one case file */
  bool writes;
} book;

static void hold(book *b, const char *name, const char *way, fa_tensor_id id, const digest *d) {
  char line[600], recorded[600];
  format(d, name, way, id, line, sizeof line);
  if (b->writes) {
    fprintf(b->f, "%s\n", line);
    return;
  }
  REQUIRE(fgets(recorded, sizeof recorded, b->f) != NULL);
  recorded[strcspn(recorded, "\n")] = '\0';
  CHECK_MSG(alike(line, recorded), "\n  now      %s\n  recorded %s", line, recorded);
}

/* The case's own data: q, k, v, do, and all else together. */
static digest digest_of_inputs(const fa_tensors *in) {
  digest d = {.n = 0};
  int64_t index[FA_MAX_RANK];
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (fa_tensor_id_is_output((fa_tensor_id)id) || !in->t[id].data) continue;
    const int which = id == FA_T_Q ? 0 : id == FA_T_K ? 1 : id == FA_T_V ? 2 : id == FA_T_DO ? 3 : 4;
    const int64_t n = fa_tensor_count(&in->t[id]);
    d.n += n;
    for (int64_t e = 0; e < n; ++e) {
      fa_tensor_unravel(&in->t[id], e, index);
      add(&d, which, fa_tensor_get(&in->t[id], index), e + id);
    }
  }
  return d;
}

static void hold_all(book *b, const char *name, const char *way, const fa_wants *w) {
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (w->t[id].n > 0) {
      const digest d = digest_of(&w->t[id]);
      hold(b, name, way, (fa_tensor_id)id, &d);
    }
}

/* The forward's own outputs, as if a kernel had made them. */
static fa_tensor view_of(const fa_want *w) {
  fa_tensor t = {.dtype = FA_F64, .rank = w->rank, .data = (char *)w->value};
  int64_t stride = 1;
  for (int a = w->rank - 1; a >= 0; --a) {
    t.shape[a] = w->shape[a];
    t.stride[a] = stride;
    stride *= w->shape[a];
  }
  return t;
}

static void hold_inputs(book *b, const fa_case *c) {
  fa_tensors in = {0};
  fa_error err = {""};
  REQUIRE(fa_case_build(c, &in, &err) == FA_OK);
  const digest d = digest_of_inputs(&in);
  hold(b, c->name, "inputs", FA_T_Q, &d);
  fa_tensors_free(&in);
}

static void hold_case(book *b, const fa_case *c, const char *set, bool given) {
  const fa_problem *p = &c->problem;
  const fa_profile profile = fa_profile_get(set, p->dtype);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile, .generic = given};
  fa_tensors in = {0};
  fa_wants forward = {0}, backward = {0};
  fa_error err = {""};
  REQUIRE(fa_case_build(c, &in, &err) == FA_OK);
  fa_status status = fa_ref_forward(p, &in, &opt, &forward, &err);
  if (status == FA_OK) hold_all(b, c->name, set, &forward);
  if (status == FA_OK && p->backward) {
    const fa_tensor o = view_of(&forward.t[FA_T_O]), lse = view_of(&forward.t[FA_T_LSE]);
    const bool has_lse = given && lse.data;
    status =
        fa_ref_backward(p, &in, given ? &o : NULL, has_lse ? &lse : NULL, &forward, &opt, &backward, &err);
    if (status == FA_OK) hold_all(b, c->name, set, &backward);
  }
  CHECK_MSG(status == FA_OK || status == FA_ERR_INPUT, "%s: %s", c->name, err.text);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
}

static unsigned number_of(unsigned h, const char *x) {
  while (*x) h = (h ^ (unsigned char)*x++) * 16777619u;
  return h;
}

/* Of its name, so that a new case changes no other one's lines. */
static unsigned number_of_case(const fa_case *c) {
  return number_of(2166136261u, c->name) >> 4;
}

/* Of their names likewise: a new set is that of the cases in which its number is the largest, and changes no others. */
static const char *some_set(const fa_case *c) {
  const char *set = fa_arithmetic_name(0);
  unsigned most = 0;
  for (int i = 0; fa_arithmetic_name(i); ++i) {
    const unsigned at = number_of(number_of(number_of_case(c), fa_arithmetic_name(i)), "/");
    if (at < most) continue;
    most = at;
    set = fa_arithmetic_name(i);
  }
  return set;
}

/* Each case with another of the named sets, so that all of them are held. */
static void hold_with_some_set(book *b, const fa_case *c) {
  const char *set = some_set(c);
  fa_arithmetic unused;
  if (fa_arithmetic_named(set, c->problem.dtype, &unused)) hold_case(b, c, set, number_of_case(c) % 3 == 0);
}

/* What takes the reference some milliseconds. */
static bool is_small(const fa_problem *p) {
  return p->heads_q * p->batch * (p->seqlen_q + 4) * p->seqlen_k * (p->head_dim + p->head_dim_v) < 6000000;
}

static void hold_file(const char *name, bool writes) {
  char path[200];
  fa_case_list list = {0};
  fa_error err = {""};
  snprintf(path, sizeof path, "tests/ref/recorded/%s.txt", name);
  book b = {.f = fopen(path, writes ? "w" : "r"), .writes = writes};
  REQUIRE(b.f);
  snprintf(path, sizeof path, "cases/%s.json", name);
  REQUIRE(fa_case_file_load(path, NULL, &list, &err) == FA_OK);
  for (int64_t i = 0; i < list.n; ++i) {
    const fa_case *c = &list.v[i];
    if (c->expect == FA_EXPECT_REJECT || c->law != FA_LAW_NONE || !is_small(&c->problem)) continue;
    hold_inputs(&b, c);
    const unsigned at = number_of_case(c);
    hold_case(&b, c, at % 2 ? "simt-f32" : c->problem.dtype == FA_F32 ? "3xtf32" : "mma-hopper", at % 4 < 2);
    hold_with_some_set(&b, c);
  }
  char more[8];
  CHECK_MSG(writes || !fgets(more, sizeof more, b.f), "%s: more is recorded than there is", name);
  CHECK(fclose(b.f) == 0);
  fa_case_list_free(&list);
}

/* A bound that is one part in 2,000 larger, two elements exchanged, and one that is no number any more. */
static void check_sees_changes(void) {
  double value[3] = {1, 2, 3};
  float quant[3] = {1e-3f, 1e-3f, 1e-3f}, accum[3] = {0};
  const fa_want w = {.n = 3, .value = value, .quant = quant, .accum = accum};
  char line[600], other[600];
  const digest d = digest_of(&w);
  format(&d, "case", "set", FA_T_O, line, sizeof line);
  CHECK(alike(line, line));
  for (int change = 0; change < 3; ++change) {
    value[0] = change == 1 ? 2 : change == 2 ? NAN : 1, value[1] = change == 1 ? 1 : 2;
    quant[1] = change == 0 ? 1.0005e-3f : 1e-3f;
    const digest now = digest_of(&w);
    format(&now, "case", "set", FA_T_O, other, sizeof other);
    CHECK_MSG(!alike(line, other), "change %d: %s", change, other);
  }
}

int main(int argc, char **argv) {
  const bool writes = argc > 1 && strcmp(argv[1], "--write") == 0;
  check_sees_changes();
  for (int i = 1 + writes; i < argc; ++i) hold_file(argv[i], writes);
  for (int i = 0; argc == 1 + writes && i < N_FILES; ++i) hold_file(all_files[i], writes);
  return check_done();
}
