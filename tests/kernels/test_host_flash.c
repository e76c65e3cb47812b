/* The forward kernel on the host executor against a plain double-precision sum written here, and on data with
 * exactly known results. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "gpu/backend.h"
#include "tests/support/check.h"
#include "tests/support/flash_entry.h"

#include <math.h>
#include <string.h>

typedef struct one_row {
  double out[128], lse;
  bool empty;
} one_row;

static double get(const fa_tensor *t, int64_t b, int64_t s, int64_t h, int64_t d) {
  const int64_t with_batch[4] = {b, s, h, d}, packed[3] = {s, h, d};
  return fa_tensor_get(t, t->rank == 4 ? with_batch : packed);
}

static void plain(const fa_problem *p, const fa_tensors *t, int64_t b, int64_t h, int64_t i, one_row *r) {
  const entry e = entry_of(p, b);
  const int64_t g = h / (p->heads_q / p->heads_kv), dim = p->head_dim;
  double *x = malloc(sizeof *x * (size_t)(e.sk > 0 ? e.sk : 1)), m = -INFINITY, sum = 0;
  memset(r, 0, sizeof *r);
  for (int64_t j = 0; j < e.sk; ++j) {
    double dot = 0;
    for (int64_t d = 0; d < dim; ++d)
      dot += get(&t->t[FA_T_Q], b, e.q0 + i, h, d) * get(&t->t[FA_T_K], b, e.k0 + j, g, d);
    x[j] = dot * p->scale;
    if (p->softcap > 0) x[j] = p->softcap * tanh(x[j] / p->softcap);
    if (p->alibi.present)
      x[j] -= p->alibi.slopes[p->alibi.n == p->heads_q ? h : b * p->heads_q + h] *
              fabs((double)(i + e.sk - e.sq - j));
    if (!sees(p, &e, i, j)) x[j] = -INFINITY;
    m = fmax(m, x[j]);
  }
  r->empty = m == -INFINITY;
  for (int64_t j = 0; j < e.sk && !r->empty; ++j) {
    const double w = exp(x[j] - m);
    sum += w;
    for (int64_t d = 0; d < dim; ++d) r->out[d] += w * get(&t->t[FA_T_V], b, e.k0 + j, g, d);
  }
  for (int64_t d = 0; d < dim && !r->empty; ++d) r->out[d] /= sum;
  r->lse = r->empty ? INFINITY : m + log(sum);
  free(x);
}

/* Runs the kernel; every element must be within tolerance * (1 + |want|) of the plain sum, LSE within 1e-4.
 */
static void check_case(const char *json, double tolerance, uint64_t seed, int n_threads) {
  fa_case c;
  fa_tensors t;
  fa_error err;
  if (fa_case_from_text(json, &c, &err) != FA_OK || fa_case_build(&c, &t, &err) != FA_OK) {
    CHECK_MSG(false, "%s: %s", json, err.text);
    return;
  }
  const fa_problem *p = &c.problem;
  const fa_run_options opt = {.passes = FA_PASS_FORWARD, .schedule_seed = seed, .n_threads = n_threads};
  fa_outcome out;
  char where[256] = "";
  const fa_status status = fa_backend_host.run(NULL, p, &t, &opt, &out, &err);
  CHECK_MSG(status == FA_OK && out.state == FA_SUBJECT_OK, "%s: %s", json,
            status == FA_OK ? out.text : err.text);
  CHECK_MSG(fa_tensors_guards_intact(&t, where, sizeof where), "%s: %s", json, where);
  CHECK_MSG(fa_tensors_gaps_intact(&t, FA_T_O, FA_POISON_A, where, sizeof where), "%s: %s", json, where);
  double worst = 0, worst_lse = 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    const entry e = entry_of(p, b);
    for (int64_t h = 0; h < p->heads_q; ++h)
      for (int64_t i = 0; i < e.sq; ++i) {
        one_row want;
        plain(p, &t, b, h, i, &want);
        const int64_t dense[3] = {b, h, i}, packed[2] = {h, e.q0 + i};
        const double lse = fa_tensor_get(&t.t[FA_T_LSE], p->cu_seqlens_q.n ? packed : dense);
        if (want.empty)
          CHECK_MSG(lse == INFINITY, "%s: b %d h %d i %d: lse %g", json, (int)b, (int)h, (int)i, lse);
        else
          worst_lse = fmax(worst_lse, isnan(lse) ? INFINITY : fabs(lse - want.lse) / (1 + fabs(want.lse)));
        for (int64_t d = 0; d < p->head_dim; ++d) {
          const double got = get(&t.t[FA_T_O], b, e.q0 + i, h, d);
          char rounded[8]; /* exact data: the result is the true value, rounded once */
          fa_store(p->dtype, rounded, want.out[d]);
          const double right = tolerance > 0 ? want.out[d] : fa_load(p->dtype, rounded);
          const double error = isnan(got) ? INFINITY : fabs(got - right) / (1 + fabs(right));
          worst = fmax(worst, error);
          if (want.empty) CHECK(got == 0);
        }
      }
  }
  CHECK_MSG(worst <= tolerance, "%s: o is off by %g", json, worst);
  CHECK_MSG(worst_lse <= 1e-5, "%s: lse is off by %g", json, worst_lse);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

#define F16 3e-3
#define BF16 2e-2
#define EXACT 0.0

int main(void) {
  check_case("{\"seqlen_q\": 16, \"head_dim\": 64}", F16, 0, 1);
  check_case("{\"seqlen_q\": 130, \"seqlen_k\": 200, \"head_dim\": 64, \"dtype\": \"bf16\"}", BF16, 0, 2);
  check_case("{\"seqlen_q\": 130, \"seqlen_k\": 200, \"head_dim\": 128, \"mask\": {\"type\": \"causal\"}}",
             F16, 0, 2);
  check_case("{\"batch\": 2, \"heads_q\": 4, \"heads_kv\": 2, \"seqlen_q\": 77, \"head_dim\": 64, \"mask\": "
             "{\"type\": \"causal\"}}",
             F16, 5, 2);
  check_case("{\"seqlen_q\": 200, \"seqlen_k\": 70, \"head_dim\": 64, \"mask\": {\"type\": \"causal\"}}", F16,
             0, 2);
  check_case("{\"seqlen_q\": 150, \"seqlen_k\": 300, \"head_dim\": 128, \"dtype\": \"bf16\", \"mask\": "
             "{\"type\": \"window\", \"left\": "
             "20, \"right\": 5}}",
             BF16, 3, 2);
  check_case("{\"seqlen_q\": 150, \"seqlen_k\": 40, \"head_dim\": 64, \"mask\": {\"type\": \"window\", "
             "\"left\": 0, \"right\": 0}}",
             F16, 0, 2);
  check_case("{\"cu_seqlens_q\": [0, 5, 5, 140, 170], \"cu_seqlens_k\": [0, 0, 70, 200, 230], \"head_dim\": "
             "64, \"heads_q\": 2, "
             "\"mask\": {\"type\": \"causal\"}}",
             F16, 0, 2);
  check_case("{\"cu_seqlens_q\": [0, 33, 64], \"cu_seqlens_k\": [0, 90, 200], \"seqused_k\": [64, 0], "
             "\"head_dim\": 128, \"heads_q\": 2, "
             "\"heads_kv\": 1}",
             F16, 7, 2);
  check_case(
      "{\"batch\": 3, \"seqlen_q\": 20, \"seqlen_k\": 100, \"leftpad_k\": [0, 37, 99], \"head_dim\": 64}",
      F16, 0, 2);
  check_case("{\"batch\": 2, \"seqlen_q\": 40, \"seqlen_k\": 50, \"head_dim\": 64, \"scale\": -0.3}", F16, 0,
             2);
  check_case("{\"seqlen_q\": 40, \"seqlen_k\": 50, \"head_dim\": 64, \"scale\": 0, \"mask\": {\"type\": "
             "\"causal\"}}",
             F16, 0, 1);
  check_case("{\"seqlen_q\": 40, \"seqlen_k\": 150, \"head_dim\": 64, \"softcap\": 2, \"mask\": {\"type\": "
             "\"causal\"}}",
             F16, 0, 1);
  check_case("{\"seqlen_q\": 140, \"seqlen_k\": 90, \"head_dim\": 128, \"heads_q\": 2, \"alibi\": "
             "{\"slopes\": \"standard\"}}",
             F16, 0, 2);
  check_case("{\"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 60, \"head_dim\": 64, \"strides\": {\"q\": "
             "{\"offset\": 1}, \"k\": {\"gap\": [3, "
             "5, 1]}, \"o\": {\"gap\": [0, 7, 0]}}}",
             F16, 0, 2);
  check_case("{\"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 60, \"head_dim\": 64, \"layout\": \"bhsd\", "
             "\"strides\": {\"k\": {\"expand\": "
             "[\"b\"]}, \"v\": {\"expand\": [\"h\"]}}}",
             F16, 0, 2);
  check_case("{\"seqlen_q\": 70, \"seqlen_k\": 130, \"head_dim\": 64, \"fill\": \"negative_logits\"}", F16, 0,
             2);
  check_case("{\"seqlen_q\": 70, \"seqlen_k\": 300, \"head_dim\": 64, \"fill\": \"one_hot\"}", EXACT, 0, 2);
  check_case("{\"seqlen_q\": 70, \"seqlen_k\": 256, \"head_dim\": 128, \"dtype\": \"bf16\", \"fill\": "
             "\"uniform_exact\"}",
             EXACT, 9, 2);
  return check_done();
}
