/* What a case is expected to cost. The numbers need to be right by a factor of a few only: they put cases in order, and
 * keep those out that would take the time of all others. */
#include "fuzz/campaign/tier.h"

#include <string.h>

/* Measured over the case files and 200 cases of profile everything, on one core of a server: seconds a case for whatever
 * its size, and floating-point operations a second. Elements a second: making the data, of which each is compared too. */
#define ELEMENTS_A_SECOND 1e8
#define TILE 32 /* rows, keys and columns that a subject computes at a time, or as if */
typedef struct rate {
  const char *backend; /* up to the colon; NULL: any other */
  double seconds, flops;
} rate;
static const rate judge = {NULL, 5e-4, 1e9};
static const rate subjects[] = {{"host", 2.5e-2, 5e7},
                                {"mutant", 2.5e-2, 5e7},
                                {"ref-f32", 2e-4, 1.5e9},
                                {"cuda", 1e-3, 1e12},
                                {NULL, 2e-3, 1e9}};

static double up_to(int64_t n, int64_t tile) {
  return (double)((n + tile - 1) / tile * tile);
}

/* Of the two products of the forward pass; the backward has five. Kernels work on whole tiles. Masks are not looked at. */
static double flops_of(const fa_problem *p, int64_t tile) {
  const double pairs =
      (double)(p->batch * p->heads_q) * up_to(p->seqlen_q + 1, tile) * up_to(p->seqlen_k + 1, tile);
  return 2 * pairs * (up_to(p->head_dim, tile) + up_to(p->head_dim_v, tile)) * (p->backward ? 3.5 : 1);
}

static double elements_of(const fa_problem *p) {
  const double rows =
      (double)(p->batch * p->seqlen_q * p->heads_q) + (double)(p->batch * p->seqlen_k * p->heads_kv);
  return rows * (double)(p->head_dim + p->head_dim_v) * (p->backward ? 2 : 1);
}

static double cost(const rate *r, double flops) {
  return r->seconds + flops / r->flops;
}

double fa_tier_cost(const char *backend, const fa_case *c) {
  const size_t n = strcspn(backend, ":");
  const rate *subject = subjects;
  while (subject->backend && (strlen(subject->backend) != n || strncmp(subject->backend, backend, n) != 0))
    ++subject;
  const double runs = c->repeat < 2 ? 1 : (double)c->repeat / 2;
  return elements_of(&c->problem) / ELEMENTS_A_SECOND + cost(&judge, flops_of(&c->problem, 1)) +
         runs * cost(subject, flops_of(&c->problem, TILE));
}
