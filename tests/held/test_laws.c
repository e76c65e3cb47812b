/* What each law asks of a subject, call by call, and what it says of subjects that are wrong in known ways: what
 * tests/held/recorded/laws.txt holds. A law that prepares its second call wrongly mostly still passes what is right.
 *
 * usage: test_laws_held [--write]    (from the top of the source tree) */
#include "cases/codec/json.h"
#include "fuzz/one/run_case.h"
#include "ref/math/blas.h"
#include "tests/held/digest.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the subject does. */
typedef enum way {
  RIGHT,
  PLACES,   /* every output element is made of its place */
  LIBRARY,  /* the same; its products are a library's */
  TILES,    /* the same; the second call is another kernel's */
  ATOMIC,   /* the same; it adds dK and dV by atomics in the second call */
  LSE_ONLY, /* LSE is made of its place, all else is 0 */
  RUNS,     /* every element is the call's number */
  TINY,     /* numbers near the smallest */
  CACHES,   /* the keys and values of all heads but the first become the call's number */
  NANS,     /* some elements are NaN, the first ones not */
  INFINITE, /* some elements are infinite */
  WITHHELD, /* it says that it did not write LSE in the second call, of a long one O neither */
  STOPPED,  /* the second call crashes */
  REFUSED,  /* it cannot do the second call */
  DIES,     /* the device is lost in the second call */
  N_WAYS
} way;

static const char *const names[N_WAYS] = {"right",    "places",   "library", "tiles",   "atomic",
                                          "lse",      "runs",     "tiny",    "caches",  "nans",
                                          "infinite", "withheld", "stopped", "refused", "dies"};

static digest_book book;
static way now;
static int n_calls;
static char label[100];

static void hold_text(const char *text) {
  char recorded[2000];
  if (book.writes) {
    fprintf(book.f, "%s\n", text);
    return;
  }
  REQUIRE(fgets(recorded, sizeof recorded, book.f) != NULL);
  recorded[strcspn(recorded, "\n")] = 0;
  const char *a = strstr(text, "within "), *b = strstr(recorded, "within ");
  const bool near = a && b && a - text == b - recorded && strncmp(text, recorded, (size_t)(a - text)) == 0 &&
                    fabs(atof(a + 7) - atof(b + 7)) <= 0.01 * fabs(atof(b + 7)); /* three digits of a bound */
  CHECK_MSG(near || strcmp(text, recorded) == 0, "\n  now      %s\n  recorded %s", text, recorded);
}

/* What a digest does not tell: one infinity from the other, and small integers beside garbage. */
static void exact_of(const fa_tensors *in, long long *infinities, unsigned *integers) {
  int64_t index[FA_MAX_RANK];
  *infinities = 0, *integers = 2166136261u;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const int64_t n =
        fa_tensor_id_is_output((fa_tensor_id)id) || !in->t[id].data ? 0 : fa_tensor_count(&in->t[id]);
    for (int64_t e = 0; e < n; ++e) {
      fa_tensor_unravel(&in->t[id], e, index);
      const double x = fa_tensor_get(&in->t[id], index);
      *infinities += x == INFINITY;
      if (!fa_dtype_is_float(in->t[id].dtype)) *integers = (*integers ^ (unsigned)(int64_t)x) * 16777619u;
    }
  }
}

static void hold_call(const fa_problem *p, const fa_tensors *t) {
  fa_case c;
  char text[1900], number[30];
  long long infinities;
  unsigned integers;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem own = c.problem;
  c.problem = *p;
  char *line = fa_case_to_line(&c);
  c.problem = own;
  snprintf(number, sizeof number, "call-%d", n_calls);
  exact_of(t, &infinities, &integers);
  snprintf(text, sizeof text, "%s %s inf %lld integers %x %s", label, number, infinities, integers, line);
  hold_text(text);
  free(line);
  fa_case_free(&c);
  const digest d = digest_of_inputs(t);
  digest_hold(&book, label, number, FA_T_Q, &d);
}

/* Long ones are not computed. */
static bool takes_long(const fa_problem *p) {
  return p->seqlen_q * p->seqlen_k > 1000000;
}

/* In f16 up to six of its smallest numbers more in later calls. */
static double tiny_value(fa_dtype t, int64_t e) {
  const double first = t == FA_F16 ? (double)(e % 5 + 8) * 0x1p-24 : ldexp(1, -130 + (int)(e % 7) * 20);
  return n_calls == 1 ? first : t == FA_F16 ? 2 * first + (double)(e % 7) * 0x1p-24 : 1.5 * first;
}

/* Multiples of 1/64, which every type has. */
static double value_of(const fa_tensor *t, fa_tensor_id id, int64_t e) {
  const double place = (double)((e * 7 + id) % 61 + 1) / 64;
  switch (now) {
  case LSE_ONLY:
    return id == FA_T_LSE ? place : 0;
  case RUNS:
    return n_calls;
  case TINY:
    return tiny_value(t->dtype, e);
  case CACHES:
  case WITHHELD:
    return 0;
  case NANS:
    return e % 5 == 3 ? NAN : place;
  case INFINITE:
    return e % 5 == 3 ? (e % 2 ? INFINITY : -INFINITY) : place;
  default:
    return place;
  }
}

static void write_outputs(const fa_tensors *t, unsigned passes) {
  const fa_tensor_bits caches = now == CACHES ? FA_TENSOR_BIT(FA_T_K) | FA_TENSOR_BIT(FA_T_V) : 0,
                       written = fa_tensors_written_by(passes) | caches;
  int64_t index[FA_MAX_RANK];
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_tensor *x = &t->t[id];
    const int64_t n = x->data && written >> id & 1 ? fa_tensor_count(x) : 0;
    for (int64_t e = 0; e < n; ++e) {
      fa_tensor_unravel(x, e, index);
      if (!(caches >> id & 1))
        fa_tensor_set(x, index, value_of(x, (fa_tensor_id)id, e));
      else if (index[x->rank - 2] > 0)
        fa_tensor_set(x, index, n_calls);
    }
  }
}

static fa_status fail_second(const fa_problem *p, fa_outcome *out, fa_error *err) {
  if (n_calls != 2) return FA_OK;
  if (now == WITHHELD) out->left_out = FA_TENSOR_BIT(FA_T_LSE) | (takes_long(p) ? FA_TENSOR_BIT(FA_T_O) : 0);
  if (now == STOPPED) out->state = FA_SUBJECT_CRASH, snprintf(out->text, sizeof out->text, "stopped");
  if (now == REFUSED) return fa_fail(err, FA_ERR_UNSUPPORTED, "not this");
  if (now == DIES) return fa_fail(err, FA_ERR_DEVICE, "gone");
  return FA_OK;
}

static fa_status run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                     fa_outcome *out, fa_error *err) {
  ++n_calls;
  snprintf(out->kernel, sizeof out->kernel, "kernel-%d", n_calls);
  if (now == RIGHT) {
    hold_call(p, t);
    return fa_backend_ref_f32.run(self, p, t, opt, out, err);
  }
  if (now == STOPPED && n_calls == 2) return fail_second(p, out, err); /* nothing is written */
  write_outputs(t, opt->passes);
  return fail_second(p, out, err);
}

static void profile(void *self, const fa_problem *p, fa_profile *out) {
  fa_backend_ref_f32.profile(self, p, out);
  out->library_products = now == LIBRARY;
  if (now == TILES && n_calls == 1) out->block_n *= 2;
  if (now == ATOMIC && n_calls == 1) out->dkv_atomic = true;
}

static const char *const cases[] = {
#include "tests/held/law_cases.inc"
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void judge(const fa_case *c) {
  static fa_result r;
  fa_backend b = fa_backend_ref_f32;
  const fa_run_config config = {.backend = &b, .n_threads = 1};
  fa_error err = {""};
  char text[900];
  b.run = run;
  b.profile = profile;
  n_calls = 0;
  fa_result_init(&r);
  const fa_status status = fa_run_case(c, &config, &r, &err);
  snprintf(text, sizeof text,
           "%s %s calls %d status %d %s broken %llx nan %llx not delivered %llx passes %u %s %s", label,
           names[now], n_calls, (int)status, fa_state_name(r.state), (unsigned long long)r.law_broken,
           (unsigned long long)r.law_nan, (unsigned long long)r.not_delivered, r.passes, r.kernel, r.reason);
  hold_text(text);
  fa_result_free(&r);
}

static void hold_case(int n) {
  fa_case c;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(cases[n], &c, &err) == FA_OK, "case %d: %s", n, err.text);
  snprintf(label, sizeof label, "%s/%d", fa_law_describe(c.law)->name, n);
  for (now = takes_long(&c.problem) ? PLACES : RIGHT; now < N_WAYS; ++now) judge(&c);
  fa_case_free(&c);
}

int main(int argc, char **argv) {
  char more[8];
  fa_blas_startup(argv);
  digest_check();
  book.writes = argc > 1 && strcmp(argv[1], "--write") == 0;
  book.f = fopen("tests/held/recorded/laws.txt", book.writes ? "w" : "r");
  REQUIRE(book.f);
  for (int n = 0; n < N_CASES; ++n) hold_case(n);
  CHECK_MSG(book.writes || !fgets(more, sizeof more, book.f), "more is recorded than there is");
  CHECK(fclose(book.f) == 0);
  return check_done();
}
