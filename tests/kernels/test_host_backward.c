/* The backward kernels on the host executor against plain double-precision sums written here, on data with
 * exactly known gradients, and under many schedules. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "gpu/backend.h"
#include "tests/support/check.h"
#include "tests/support/flash_entry.h"

#include <math.h>
#include <string.h>

static const fa_tensor_id gradients[3] = {FA_T_DQ, FA_T_DK, FA_T_DV};

static int64_t offset(const fa_tensor *t, int64_t b, int64_t s, int64_t h, int64_t d) {
  const int64_t with_batch[4] = {b, s, h, d}, packed[3] = {s, h, d};
  return fa_tensor_offset(t, t->rank == 4 ? with_batch : packed);
}
static double get(const fa_tensors *t, fa_tensor_id id, int64_t b, int64_t s, int64_t h, int64_t d) {
  return fa_load(t->t[id].dtype, t->t[id].data + offset(&t->t[id], b, s, h, d));
}

/* ---- expected values ---- */

/* Sums in double, in arrays shaped like the tensors: [token of all sequences][head][d]. */
typedef struct sums {
  int64_t rows, keys; /* tokens per batch index of the tensor: the stride of b */
  double *g[3];
  bool *hidden; /* of dk and dv: keys that no query sees, [token][head] */
} sums;

static int64_t place(const fa_problem *p, int64_t tokens, int64_t heads, int64_t b, int64_t s, int64_t h) {
  return (((p->cu_seqlens_q.n ? 0 : b * tokens) + s) * heads + h) * p->head_dim;
}

/* Logit of a pair, and d logit / d (scaled dot product) in *slope. */
static double logit(const fa_problem *p, const fa_tensors *t, const entry *e, int64_t b, int64_t h, int64_t i,
                    int64_t j, double *slope) {
  double x = 0;
  const int64_t kv = h / (p->heads_q / p->heads_kv);
  for (int64_t d = 0; d < p->head_dim; ++d)
    x += get(t, FA_T_Q, b, e->q0 + i, h, d) * get(t, FA_T_K, b, e->k0 + j, kv, d);
  x *= p->scale;
  *slope = 1;
  if (p->softcap > 0) {
    const double th = tanh(x / p->softcap);
    x = p->softcap * th;
    *slope = 1 - th * th;
  }
  if (p->alibi.present)
    x -= p->alibi.slopes[p->alibi.n == p->heads_q ? h : b * p->heads_q + h] *
         fabs((double)(i + e->sk - e->sq - j));
  return x;
}

/* Adds one row's contribution to the gradients. */
static void add_row(const fa_problem *p, const fa_tensors *t, const entry *e, int64_t b, int64_t h, int64_t i,
                    sums *s) {
  const int64_t n = p->head_dim, kv = h / (p->heads_q / p->heads_kv);
  double *x = malloc(sizeof *x * 3 * (size_t)(e->sk + 1)), *slope = x + e->sk + 1, *dp = slope + e->sk + 1;
  double m = -INFINITY, sum = 0, delta = 0;
  for (int64_t j = 0; j < e->sk; ++j) {
    x[j] = logit(p, t, e, b, h, i, j, &slope[j]);
    if (!sees(p, e, i, j)) x[j] = -INFINITY;
    m = fmax(m, x[j]);
  }
  for (int64_t j = 0; j < e->sk && m > -INFINITY; ++j) sum += x[j] = exp(x[j] - m);
  for (int64_t j = 0; j < e->sk && sum > 0; ++j) {
    x[j] /= sum;
    dp[j] = 0;
    for (int64_t d = 0; d < n; ++d)
      dp[j] += get(t, FA_T_DO, b, e->q0 + i, h, d) * get(t, FA_T_V, b, e->k0 + j, kv, d);
    delta += x[j] * dp[j];
  }
  if (t->t[FA_T_DLSE].data) {
    const int64_t dense[3] = {b, h, i}, packed[2] = {h, e->q0 + i};
    delta -= fa_tensor_get(&t->t[FA_T_DLSE], p->cu_seqlens_q.n ? packed : dense);
  }
  double *dq = s->g[0] + place(p, s->rows, p->heads_q, b, e->q0 + i, h);
  for (int64_t j = 0; j < e->sk && sum > 0; ++j) {
    if (!sees(p, e, i, j)) continue;
    const int64_t at = place(p, s->keys, p->heads_kv, b, e->k0 + j, kv);
    const double ds = x[j] * (dp[j] - delta) * slope[j] * p->scale;
    s->hidden[at / n] = false;
    for (int64_t d = 0; d < n; ++d) {
      dq[d] += ds * get(t, FA_T_K, b, e->k0 + j, kv, d);
      s->g[1][at + d] += ds * get(t, FA_T_Q, b, e->q0 + i, h, d);
      s->g[2][at + d] += x[j] * get(t, FA_T_DO, b, e->q0 + i, h, d);
    }
  }
  free(x);
}

static void sums_make(const fa_problem *p, const fa_tensors *t, sums *s) {
  const bool packed = p->cu_seqlens_q.n > 0;
  s->rows = t->t[FA_T_Q].shape[packed ? 0 : 1];
  s->keys = t->t[FA_T_K].shape[packed ? 0 : 1];
  const int64_t n_q = (packed ? 1 : p->batch) * s->rows * p->heads_q;
  const int64_t n_k = (packed ? 1 : p->batch) * s->keys * p->heads_kv;
  for (int i = 0; i < 3; ++i) s->g[i] = calloc((size_t)((i ? n_k : n_q) * p->head_dim + 1), sizeof(double));
  s->hidden = malloc((size_t)n_k + 1);
  memset(s->hidden, true, (size_t)n_k + 1);
  for (int64_t b = 0; b < p->batch; ++b) {
    const entry e = entry_of(p, b);
    for (int64_t h = 0; h < p->heads_q; ++h)
      for (int64_t i = 0; i < e.sq; ++i) add_row(p, t, &e, b, h, i, s);
  }
}

static void sums_free(sums *s) {
  for (int i = 0; i < 3; ++i) free(s->g[i]);
  free(s->hidden);
}

/* ---- comparison ---- */

/* Compares every element of one gradient, within tolerance * its largest, and 0 where nothing contributes.
 * tolerance 0: the true value rounded once. */
static void compare(const char *json, const fa_problem *p, const fa_tensors *t, const sums *s, int which,
                    double tolerance) {
  const fa_tensor *x = &t->t[gradients[which]];
  const int64_t heads = which ? p->heads_kv : p->heads_q, tokens = which ? s->keys : s->rows;
  const int64_t batch = p->cu_seqlens_q.n ? 1 : p->batch;
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < batch * tokens * heads * p->head_dim; ++i)
    largest = fmax(largest, fabs(s->g[which][i]));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t d = 0; d < p->head_dim; ++d) {
          const double got = fa_load(x->dtype, x->data + offset(x, b, token, h, d));
          const int64_t at = place(p, tokens, heads, b, token, h);
          double want = s->g[which][at + d];
          char rounded[8];
          fa_store(x->dtype, rounded, want);
          if (tolerance == 0) want = fa_load(x->dtype, rounded);
          worst = fmax(worst, isnan(got) ? INFINITY : fabs(got - want));
          if (which && s->hidden[at / p->head_dim])
            CHECK_MSG(got == 0, "%s: hidden key %d", json, (int)token);
        }
  CHECK_MSG(worst <= tolerance * largest, "%s: %s is off by %g of %g", json,
            fa_tensor_id_name(gradients[which]), worst, largest);
}

static void load(const char *json, fa_case *c, fa_tensors *t) {
  fa_error err;
  if (fa_case_from_text(json, c, &err) == FA_OK && fa_case_build(c, t, &err) == FA_OK) return;
  fprintf(stderr, "%s: %s\n", json, err.text);
  exit(1);
}

static void run(const char *json, const fa_problem *p, fa_tensors *t, uint64_t seed, int n_threads) {
  const fa_run_options opt = {
      .passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .schedule_seed = seed, .n_threads = n_threads};
  fa_outcome out;
  fa_error err = {""};
  const fa_status status = fa_backend_host.run(NULL, p, t, &opt, &out, &err);
  CHECK_MSG(status == FA_OK && out.state == FA_SUBJECT_OK, "%s: %s", json,
            status == FA_OK ? out.text : err.text);
}

static void check_case(const char *json, double tolerance, uint64_t seed) {
  fa_case c;
  fa_tensors t;
  sums s;
  char where[256] = "";
  load(json, &c, &t);
  run(json, &c.problem, &t, seed, 2);
  CHECK_MSG(fa_tensors_guards_intact(&t, where, sizeof where), "%s: %s", json, where);
  sums_make(&c.problem, &t, &s);
  for (int i = 0; i < 3; ++i) {
    CHECK_MSG(fa_tensors_gaps_intact(&t, gradients[i], FA_POISON_A, where, sizeof where), "%s: %s", json,
              where);
    compare(json, &c.problem, &t, &s, i, tolerance);
  }
  sums_free(&s);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* ---- the same bits under every schedule ---- */

static uint64_t digest(const fa_tensors *t, fa_tensor_id id) {
  uint64_t h = 1469598103934665603ull;
  for (size_t i = 0; i < t->buffer[id].bytes; ++i)
    h = (h ^ (unsigned char)t->buffer[id].base[FA_GUARD_BYTES + i]) * 1099511628211ull;
  return h;
}

static void check_repeats(const char *json, bool dq_too) {
  fa_case c;
  fa_tensors t;
  uint64_t first[3] = {0};
  load(json, &c, &t);
  for (int n = 0; n < 5; ++n) {
    for (int i = 0; i < 3; ++i) fa_tensors_poison(&t, gradients[i], FA_POISON_A);
    run(json, &c.problem, &t, (uint64_t)n, 1 + n % 3);
    for (int i = dq_too ? 0 : 1; i < 3; ++i) {
      const uint64_t h = digest(&t, gradients[i]);
      if (n == 0) first[i] = h;
      CHECK_MSG(h == first[i], "%s: run %d gives another %s", json, n, fa_tensor_id_name(gradients[i]));
    }
  }
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* ---- refusals ---- */

static void check_refusals(void) {
  const char *json = "{\"seqlen_q\": 40, \"head_dim\": 64}";
  fa_case c;
  fa_tensors t;
  fa_outcome out;
  fa_error err;
  const fa_run_options opt = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 1};
  load(json, &c, &t);
  fa_tensors broken = t;
  broken.t[FA_T_DK].data = NULL;
  CHECK(fa_backend_host.run(NULL, &c.problem, &broken, &opt, &out, &err) == FA_OK);
  CHECK_MSG(out.state == FA_SUBJECT_REJECTED && out.text[0], "%s", out.text);
  broken = t;
  broken.t[FA_T_DQ].stride[1] = 0; /* all rows at one address */
  CHECK(fa_backend_host.run(NULL, &c.problem, &broken, &opt, &out, &err) == FA_OK);
  CHECK_MSG(out.state == FA_SUBJECT_REJECTED && strstr(out.text, "dq"), "%s", out.text);
  broken = t;
  broken.buffer[FA_T_DV].bytes -= 16; /* the tensors and the memory ranges disagree */
  CHECK(fa_backend_host.run(NULL, &c.problem, &broken, &opt, &out, &err) == FA_OK);
  CHECK_MSG(out.state == FA_SUBJECT_OOB && strstr(out.text, "buffer dv"), "%s", out.text);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

#define F16 4e-3
#define BF16 3e-2
#define EXACT 0.0

int main(void) {
  check_case("{\"seqlen_q\": 16, \"head_dim\": 64}", F16, 0);
  check_case("{\"seqlen_q\": 130, \"seqlen_k\": 200, \"head_dim\": 64, \"dtype\": \"bf16\"}", BF16, 0);
  check_case("{\"seqlen_q\": 130, \"seqlen_k\": 150, \"head_dim\": 128, \"mask\": {\"type\": \"causal\"}}",
             F16, 4);
  check_case(
      "{\"batch\": 2, \"heads_q\": 6, \"heads_kv\": 2, \"seqlen_q\": 40, \"seqlen_k\": 77, \"head_dim\": "
      "64, \"mask\": {\"type\": \"causal\"}}",
      F16, 5);
  check_case("{\"seqlen_q\": 200, \"seqlen_k\": 70, \"head_dim\": 64, \"mask\": {\"type\": \"causal\"}}", F16,
             0);
  check_case(
      "{\"seqlen_q\": 150, \"seqlen_k\": 300, \"head_dim\": 128, \"dtype\": \"bf16\", \"mask\": {\"type\": "
      "\"window\", \"left\": 20, \"right\": 5}}",
      BF16, 3);
  check_case(
      "{\"seqlen_q\": 150, \"seqlen_k\": 40, \"head_dim\": 64, \"mask\": {\"type\": \"window\", \"left\": 9, "
      "\"right\": 0}}",
      F16, 0);
  check_case(
      "{\"cu_seqlens_q\": [0, 5, 5, 140, 170], \"cu_seqlens_k\": [0, 0, 70, 200, 230], \"head_dim\": 64, "
      "\"heads_q\": 2, \"mask\": {\"type\": \"causal\"}}",
      F16, 0);
  check_case("{\"cu_seqlens_q\": [0, 0, 0], \"cu_seqlens_k\": [0, 9, 200], \"head_dim\": 64}", F16, 0);
  check_case(
      "{\"cu_seqlens_q\": [0, 33, 64], \"cu_seqlens_k\": [0, 90, 200], \"seqused_k\": [64, 0], \"head_dim\": "
      "128, \"heads_q\": 2, \"heads_kv\": 1}",
      F16, 7);
  check_case("{\"batch\": 3, \"seqlen_q\": 20, \"seqlen_k\": 300, \"seqused_k\": [300, 250, 290], "
             "\"leftpad_k\": [0, "
             "37, 290], \"head_dim\": 64}",
             F16, 0);
  check_case("{\"batch\": 2, \"seqlen_q\": 40, \"seqlen_k\": 50, \"head_dim\": 64, \"scale\": -0.3}", F16, 0);
  check_case("{\"seqlen_q\": 40, \"seqlen_k\": 150, \"head_dim\": 64, \"softcap\": 2, \"mask\": {\"type\": "
             "\"causal\"}}",
             F16, 0);
  check_case(
      "{\"seqlen_q\": 90, \"seqlen_k\": 140, \"head_dim\": 128, \"heads_q\": 2, \"alibi\": {\"slopes\": "
      "\"standard\"}}",
      F16, 0);
  check_case(
      "{\"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 60, \"head_dim\": 64, \"grad_lse\": true, \"strides\": "
      "{\"q\": {\"offset\": 1}, \"k\": {\"gap\": [3, 5, 1]}, \"dk\": {\"gap\": [0, 7, 0]}}}",
      F16, 0);
  check_case("{\"seqlen_q\": 70, \"seqlen_k\": 130, \"head_dim\": 64, \"fill\": \"negative_logits\"}",
             3 * F16, 0);
  check_case("{\"seqlen_q\": 150, \"seqlen_k\": 400, \"head_dim\": 64, \"deterministic\": true}", F16, 2);

  /* P is 1 or 0 and dP is delta, or all keys have the same P: sums of small integers */
  check_case(
      "{\"seqlen_q\": 70, \"seqlen_k\": 300, \"head_dim\": 64, \"fill\": {\"default\": \"one_hot\", \"v\": "
      "\"integer\", \"do\": \"integer\"}}",
      EXACT, 0);
  check_case("{\"seqlen_q\": 40, \"seqlen_k\": 128, \"head_dim\": 128, \"scale\": 0.125, \"fill\": "
             "{\"default\": \"integer\", "
             "\"q\": \"zero\", \"do\": \"do_one_hot\"}}",
             EXACT, 9);

  check_repeats(
      "{\"seqlen_q\": 100, \"seqlen_k\": 500, \"heads_q\": 2, \"heads_kv\": 1, \"deterministic\": true}",
      true);
  check_repeats("{\"seqlen_q\": 100, \"seqlen_k\": 300, \"heads_q\": 2, \"heads_kv\": 1}", false);
  check_refusals();
  return check_done();
}
