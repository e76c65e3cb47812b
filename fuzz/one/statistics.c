/* Odd statistics: chance, or a fault? */
#include "fuzz/judging/judge.h"
#include "fuzz/one/parts.h"
#include "fuzz/untrusted/rules.h"
#include "report/untrusted/traps.h"

#include <math.h>
#include <string.h>

/* Of a candidate that nobody trusts: how many seeds more, whatever the first of them shows. */
#define SEEDS 4

bool fa_only_statistics_fail(const fa_result *r) {
  bool any = false;
  if (r->state != FA_FAIL || r->reason[0]) return false;
  for (int i = 0; i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    if (v->bad || v->class_bad || v->vacuous[0]) return false;
    any |= v->stat_bad;
  }
  return any;
}

static fa_status run_with_seed(fa_one_run *x, uint64_t seed, fa_one_run *inner, fa_error *err) {
  fa_case again;
  memset(inner, 0, sizeof *inner);
  if (fa_case_copy(&again, x->c) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  again.data_seed = seed;
  const fa_status status = fa_one_run_inside(x, &again, NULL, inner, err);
  inner->c = NULL;
  fa_case_free(&again);
  return status;
}

/* ---- of a candidate that is trusted ---- */

static fa_status look_again(fa_one_run *x, fa_error *err) {
  const uint64_t seed = x->c->data_seed ^ 0x9e3779b97f4a7c15u;
  fa_one_run inner;
  const fa_status status = run_with_seed(x, seed, &inner, err);
  if (status == FA_OK && inner.r->state == FA_PASS) {
    x->r->state = FA_PASS;
    fa_result_note(x->r, "error statistics are odd with this seed, but not with data_seed %llu",
                   (unsigned long long)seed);
  }
  fa_one_run_inside_free(&inner);
  return status;
}

/* ---- of one that nobody trusts ---- */

/* Sums over the runs, by verdict of the first: of squares for an rms. */
typedef struct pool {
  double sum[FA_T_COUNT];
  int n;
  bool odd; /* another run is odd too, or worse */
} pool;

static bool is_rms(const fa_verdict *v) {
  return v->stat_which != FA_STATISTIC_BIAS;
}

static void add(pool *p, const fa_result *first, const fa_result *r) {
  ++p->n;
  for (int i = 0; i < first->n_verdicts && i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    p->sum[i] += is_rms(&first->verdict[i]) ? v->rms * v->rms : v->bias;
  }
}

/* All seeds together are outside the band that the first left. */
static bool is_outside(const pool *p, const fa_result *first) {
  for (int i = 0; i < first->n_verdicts; ++i) {
    const fa_verdict *v = &first->verdict[i];
    const double mean = is_rms(v) ? sqrt(p->sum[i] / p->n) : p->sum[i] / p->n;
    if (v->stat_bad && (mean > v->stat_high || mean < v->stat_low)) return true;
  }
  return false;
}

/* Each seed in a process of its own, where it is the first call: there is no "once more" to be noticed. All of them run,
 * and what they show together is final. */
static fa_status settle(fa_one_run *x, fa_error *err) {
  const fa_backend *b = x->config->backend;
  const fa_rules *rules = x->config->rules;
  fa_result *r = x->r;
  pool all = {.n = 0};
  fa_status status = FA_OK;
  add(&all, r, r);
  r->traps |= 1u << FA_TRAP_SEEDS;
  for (uint64_t k = 0; status == FA_OK && k < SEEDS; ++k) {
    fa_one_run inner;
    if (b->renew) status = b->renew(x->config->backend_self, err);
    if (status != FA_OK) break;
    status = run_with_seed(x, fa_secret_number(&rules->secret, "statistics", (uint64_t)x->config->number, k),
                           &inner, err);
    if (inner.r) {
      add(&all, r, inner.r);
      all.odd |= inner.r->state != FA_PASS;
    }
    fa_one_run_inside_free(&inner);
  }
  if (status != FA_OK) return status;
  if (all.odd || is_outside(&all, r)) {
    r->state = FA_FAIL;
    fa_result_note(r, "%d other seeds, each in a process of its own, were judged together with this one",
                   SEEDS);
  } else {
    r->state = FA_PASS;
    fa_result_note(r, "error statistics are odd with one of %d seeds, but not together", SEEDS + 1);
  }
  return FA_OK;
}

fa_status fa_one_confirm(fa_one_run *x, fa_error *err) {
  if (!x->config->rules || !fa_rules_have(x->config->rules, FA_LAYER_FINAL)) return look_again(x, err);
  return settle(x, err);
}
