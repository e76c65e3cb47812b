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
  NANS,     /* some elements are NaN, the first ones not */
  INFINITE, /* some elements are infinite */
  WITHHELD, /* it says that it did not write LSE in the second call */
  STOPPED,  /* the second call crashes */
  REFUSED,  /* it cannot do the second call */
  DIES,     /* the device is lost in the second call */
  N_WAYS
} way;

static const char *const names[N_WAYS] = {"right",    "places",  "library", "tiles", "atomic",
                                          "lse",      "runs",    "tiny",    "nans",  "infinite",
                                          "withheld", "stopped", "refused", "dies"};

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

static void hold_call(const fa_problem *p, const fa_tensors *t) {
  fa_case c;
  char text[1900], number[30];
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem own = c.problem;
  c.problem = *p;
  char *line = fa_case_to_line(&c);
  c.problem = own;
  snprintf(number, sizeof number, "call-%d", n_calls);
  snprintf(text, sizeof text, "%s %s %s", label, number, line);
  hold_text(text);
  free(line);
  fa_case_free(&c);
  const digest d = digest_of_inputs(t);
  digest_hold(&book, label, number, FA_T_Q, &d);
}

/* Multiples of 1/64, which every type has. */
static double value_of(fa_tensor_id id, int64_t e) {
  const double place = (double)((e * 7 + id) % 61 + 1) / 64;
  switch (now) {
  case LSE_ONLY:
    return id == FA_T_LSE ? place : 0;
  case RUNS:
    return n_calls;
  case TINY:
    return ldexp(n_calls == 1 ? 1 : 1.5, -130 + (int)(e % 7) * 20);
  case NANS:
    return e % 5 == 3 ? NAN : place;
  case INFINITE:
    return e % 5 == 3 ? (e % 2 ? INFINITY : -INFINITY) : place;
  default:
    return place;
  }
}

static void write_outputs(const fa_tensors *t, unsigned passes) {
  const fa_tensor_bits written = fa_tensors_written_by(passes);
  int64_t index[FA_MAX_RANK];
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_tensor *x = &t->t[id];
    const int64_t n = x->data && written >> id & 1 ? fa_tensor_count(x) : 0;
    for (int64_t e = 0; e < n; ++e) {
      fa_tensor_unravel(x, e, index);
      fa_tensor_set(x, index, value_of((fa_tensor_id)id, e));
    }
  }
}

static fa_status fail_second(fa_outcome *out, fa_error *err) {
  if (n_calls != 2) return FA_OK;
  if (now == WITHHELD) out->left_out = FA_TENSOR_BIT(FA_T_LSE);
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
  if (now == STOPPED && n_calls == 2) return fail_second(out, err); /* nothing is written */
  write_outputs(t, opt->passes);
  return fail_second(out, err);
}

static void profile(void *self, const fa_problem *p, fa_profile *out) {
  fa_backend_ref_f32.profile(self, p, out);
  out->library_products = now == LIBRARY;
  if (now == TILES && n_calls == 1) out->block_n *= 2;
  if (now == ATOMIC && n_calls == 1) out->dkv_atomic = true;
}

static const char *const cases[] = {
    "{\"law\":\"repeat\",\"seqlen_q\":20}",
    "{\"law\":\"repeat\",\"dtype\":\"f16\",\"seqlen_q\":20,\"dropout\":{\"p\":0.2,\"seed\":\"4\"},\"return_"
    "softmax\":true}",
    "{\"law\":\"repeat\",\"family\":\"flex\",\"seqlen_q\":20,\"score_mod\":\"score * 2\"}",
    "{\"law\":\"key-permutation\",\"seqlen_q\":20,\"heads_q\":2}",
    "{\"law\":\"key-permutation\",\"cu_seqlens_q\":[0,5,12,20],\"cu_seqlens_k\":[0,9,14,30]}",
    "{\"law\":\"key-permutation\",\"family\":\"memeff\",\"seqlen_q\":20,\"bias\":{\"shape\":[1,1,\"q\",\"k\"]"
    ",\"grad\":true}}",
    "{\"law\":\"key-permutation\",\"seqlen_q\":20,\"mask\":{\"type\":\"causal\"}}",
    "{\"law\":\"key-permutation\",\"seqlen_q\":20,\"alibi\":{}}",
    "{\"law\":\"head-permutation\",\"seqlen_q\":20,\"heads_q\":6,\"heads_kv\":3}",
    "{\"law\":\"head-permutation\",\"seqlen_q\":20,\"heads_q\":4,\"heads_kv\":2,\"alibi\":{}}",
    "{\"law\":\"head-permutation\",\"seqlen_q\":20,\"heads_q\":4,\"heads_kv\":4,\"sinks\":true}",
    "{\"law\":\"head-permutation\",\"cu_seqlens_q\":[0,5,20],\"cu_seqlens_k\":[0,9,30],\"heads_q\":4,\"heads_"
    "kv\":2}",
    "{\"law\":\"head-permutation\",\"family\":\"memeff\",\"heads_q\":3,\"seqlen_q\":20,\"bias\":{\"shape\":["
    "1,\"h\",\"q\",\"k\"],\"grad\":true}}",
    "{\"law\":\"head-permutation\",\"family\":\"flex\",\"heads_q\":2,\"seqlen_q\":40,\"block_sparse\":{\"q_"
    "block\":16,\"kv_block\":16,\"kv_num_blocks\":[[[1,2,3]]],\"kv_indices\":[[[[0,1,2],[2,0,1],[0,1,2]]]]}}",
    "{\"law\":\"head-permutation\",\"family\":\"flex\",\"heads_q\":2,\"seqlen_q\":40,\"block_sparse\":{\"q_"
    "block\":16,\"kv_block\":16,\"density\":0.6,\"seed\":\"3\"}}",
    "{\"law\":\"batch-alone\",\"seqlen_q\":20,\"batch\":2}",
    "{\"law\":\"batch-alone\",\"seqlen_q\":20,\"batch\":5}",
    "{\"law\":\"batch-alone\",\"seqlen_q\":20,\"batch\":3,\"dropout\":{\"p\":0.3,\"seed\":\"3\"},\"heads_q\":"
    "2}",
    "{\"law\":\"batch-alone\",\"seqlen_q\":20,\"batch\":3,\"seqused_k\":[20,7,13]}",
    "{\"law\":\"batch-alone\",\"family\":\"memeff\",\"batch\":3,\"seqlen_q\":20,\"bias\":{\"shape\":[\"b\",1,"
    "\"q\",\"k\"],\"grad\":true}}",
    "{\"law\":\"batch-alone\",\"family\":\"flex\",\"batch\":2,\"seqlen_q\":40,\"block_sparse\":{\"q_block\":"
    "16,\"kv_block\":16,\"kv_num_blocks\":[[[1,2,3]]],\"kv_indices\":[[[[0,1,2],[2,0,1],[0,1,2]]]]}}",
    "{\"law\":\"batch-alone\",\"family\":\"flex\",\"batch\":2,\"seqlen_q\":40,\"block_sparse\":{\"q_block\":"
    "16,\"kv_block\":16,\"density\":0.6,\"seed\":\"3\"}}",
    "{\"law\":\"batch-alone\",\"family\":\"kvcache\",\"batch\":3,\"seqlen_q\":2,\"seqlen_k\":64,\"heads_q\":"
    "4,\"heads_kv\":2,\"kvcache\":{\"len\":[40,7,61],\"new\":3,\"batch_idx\":[2,0,4]}}",
    "{\"law\":\"batch-alone\",\"family\":\"kvcache\",\"batch\":2,\"seqlen_k\":64,\"heads_q\":2,\"kvcache\":{"
    "\"len\":[40,61],\"page_size\":16}}",
    "{\"law\":\"varlen-separate\",\"cu_seqlens_q\":[0,5,5,20],\"cu_seqlens_k\":[0,9,12,30],\"heads_q\":2}",
    "{\"law\":\"varlen-separate\",\"cu_seqlens_q\":[0,5,12,20],\"cu_seqlens_k\":[0,9,12,30],\"heads_q\":2,"
    "\"alibi\":{},\"dropout\":{\"p\":0.3,\"seed\":\"3\"}}",
    "{\"law\":\"varlen-separate\",\"cu_seqlens_q\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,18],\"cu_"
    "seqlens_k\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,18]}",
    "{\"law\":\"causal-prefix\",\"seqlen_q\":40,\"mask\":{\"type\":\"causal\"}}",
    "{\"law\":\"causal-prefix\",\"seqlen_q\":300,\"head_dim\":8,\"mask\":{\"type\":\"causal\"},\"data_seed\":"
    "\"1\"}",
    "{\"law\":\"causal-prefix\",\"seqlen_q\":300,\"head_dim\":8,\"mask\":{\"type\":\"causal\"},\"data_seed\":"
    "\"2\",\"splits\":2,\"backward\":false}",
    "{\"law\":\"causal-prefix\",\"seqlen_q\":300,\"head_dim\":8,\"mask\":{\"type\":\"causal\"},\"data_seed\":"
    "\"5\",\"splits\":0,\"backward\":false}",
    "{\"law\":\"causal-prefix\",\"family\":\"memeff\",\"seqlen_q\":30,\"seqlen_k\":50,\"mask\":{\"type\":"
    "\"causal\",\"align\":\"top_left\"}}",
    "{\"law\":\"merge-ranges\",\"seqlen_q\":20,\"seqlen_k\":50,\"heads_q\":2}",
    "{\"law\":\"merge-ranges\",\"seqlen_q\":20,\"seqlen_k\":50,\"mask\":{\"type\":\"causal\"}}",
    "{\"law\":\"window-open\",\"seqlen_q\":20,\"mask\":{\"type\":\"causal\"}}",
    "{\"law\":\"window-open\",\"seqlen_q\":20,\"seqlen_k\":50}",
    "{\"law\":\"bias-shift\",\"family\":\"memeff\",\"batch\":2,\"heads_q\":2,\"seqlen_q\":20,\"bias\":{"
    "\"shape\":[\"b\",\"h\",\"q\",\"k\"],\"grad\":true}}",
    "{\"law\":\"bias-shift\",\"family\":\"memeff\",\"batch\":2,\"heads_q\":2,\"seqlen_q\":20,\"bias\":{"
    "\"shape\":[1,1,1,\"k\"]}}",
    "{\"law\":\"bias-mask\",\"family\":\"memeff\",\"seqlen_q\":20,\"seqlen_k\":33,\"bias\":{\"shape\":[1,1,1,"
    "\"k\"]},\"mask\":{\"type\":\"causal\"}}",
    "{\"law\":\"bias-mask\",\"family\":\"memeff\",\"seqlen_q\":20,\"seqlen_k\":33,\"bias\":{\"shape\":[1,1,"
    "\"q\",\"k\"],\"grad\":true},\"mask\":{\"type\":\"causal\",\"align\":\"top_left\"}}",
    "{\"law\":\"bias-mask\",\"family\":\"memeff\",\"seqlen_q\":20,\"seqlen_k\":33,\"bias\":{\"shape\":[1,1,"
    "\"q\",\"k\"]},\"mask\":{\"type\":\"window\",\"left\":4,\"right\":0}}",
    "{\"law\":\"scale-power\",\"seqlen_q\":20}",
    "{\"law\":\"scale-power\",\"dtype\":\"f16\",\"seqlen_q\":20}",
    "{\"law\":\"value-power\",\"seqlen_q\":20}",
    "{\"law\":\"value-power\",\"dtype\":\"f16\",\"seqlen_q\":20}",
    "{\"law\":\"grad-power\",\"dtype\":\"f16\",\"seqlen_q\":20,\"heads_q\":2,\"heads_kv\":1}",
    "{\"law\":\"grad-power\",\"seqlen_q\":20,\"grad_lse\":true}",
    "{\"law\":\"grad-power\",\"dtype\":\"f32\",\"family\":\"memeff\",\"seqlen_q\":20}",
    "{\"law\":\"dropout-none\",\"seqlen_q\":20,\"dropout\":{\"p\":0.4,\"seed\":\"3\"}}",
    "{\"law\":\"split-count\",\"seqlen_q\":20,\"seqlen_k\":200}",
    "{\"law\":\"page-permutation\",\"family\":\"kvcache\",\"batch\":2,\"seqlen_k\":64,\"kvcache\":{\"len\":["
    "40,63],\"page_size\":16}}",
    "{\"law\":\"cache-contiguous\",\"family\":\"kvcache\",\"batch\":2,\"seqlen_k\":64,\"heads_q\":4,\"heads_"
    "kv\":2,\"kvcache\":{\"len\":[40,62],\"new\":2,\"page_size\":16}}",
    "{\"law\":\"cache-appended\",\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":64,\"heads_"
    "q\":4,\"heads_kv\":2,\"kvcache\":{\"len\":[40,61],\"new\":3,\"batch_idx\":[2,0]}}",
    "{\"law\":\"cache-appended\",\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":64,"
    "\"kvcache\":{\"len\":[40,61],\"new\":3,\"page_size\":16}}",
    "{\"law\":\"part-permutation\",\"family\":\"merge\",\"seqlen_q\":12,\"heads_q\":2,\"merge\":{\"parts\":3}"
    "}",
    "{\"law\":\"part-empty\",\"family\":\"merge\",\"seqlen_q\":12,\"heads_q\":2,\"merge\":{\"parts\":2,"
    "\"base\":\"2\"}}",
    "{\"law\":\"part-nested\",\"family\":\"merge\",\"seqlen_q\":12,\"heads_q\":2,\"merge\":{\"parts\":6}}",
    "{\"law\":\"sink-none\",\"seqlen_q\":20,\"heads_q\":2,\"sinks\":{\"grad\":true}}",
    "{\"law\":\"list-order\",\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":64,\"kvcache\":{"
    "\"len\":[40,63],\"page_size\":16},\"topk\":{\"k\":16}}",
    /* as long as the reference's bounds are too dear for */
    "{\"law\":\"key-permutation\",\"seqlen_q\":3800,\"seqlen_k\":3800,\"head_dim\":8,\"backward\":false}",
    "{\"law\":\"batch-alone\",\"batch\":2,\"seqlen_q\":1500,\"seqlen_k\":1500,\"head_dim\":8}",
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* Long ones are not computed. */
static bool takes_long(const fa_problem *p) {
  return p->seqlen_q * p->seqlen_k > 1000000;
}

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
