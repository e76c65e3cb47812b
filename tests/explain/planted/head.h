/* One query head of one sequence: its operands as doubles, and what the passes leave for each other. Everything is
 * computed by plain loops in float64, with the words of docs/reference/semantics.md. */
#ifndef FA_TESTS_EXPLAIN_PLANTED_HEAD_H
#define FA_TESTS_EXPLAIN_PLANTED_HEAD_H

#include "tests/explain/planted/mistakes.h"
#include "tests/explain/planted/number.h"

typedef struct pl_call {
  const fa_plugin_problem *p;
  const fa_plugin_tensors *t;
  int64_t planted[PL_N]; /* pl_plan_for */
  double scale;          /* of the scores */
  bool backward;
  double *dk, *dv, *dbias; /* [heads_kv][longest][D or Dv] of one sequence; as the tensor, dense */
} pl_call;

typedef struct pl_head {
  int64_t b, h, hk; /* hk: the KV head that it reads */
  int64_t n_q, n_k, d, dv;
  int64_t q_start, k_start; /* tokens before the sequence in packed tensors */
  int64_t leftpad;
  int64_t longest;                      /* keys in memory, hidden ones too */
  int64_t len;                          /* keys in the cache before the call */
  double *memory, *q, *k, *v, *d_o, *o; /* [n_q or n_k][D or Dv] */
  double *lse, *d_lse;                  /* [n_q] */
  double *x, *chain, *p, *keep,
      *dp; /* [n_k]: of one row: final scores, -inf where hidden; d final / d first score;
                                           P; dropout's factor; dP */
} pl_head;

/* False: no memory. */
bool pl_head_make(const pl_call *call, int64_t b, int64_t h, pl_head *out);
void pl_head_free(pl_head *e);

/* The lengths of sequence b alone. */
void pl_lengths(const pl_call *call, pl_head *e);

/* Where [b, s, h, 0] is of a tensor like q, of a tensor like k (j counts slots, left padding included), and
 * [b, h, i] of one like lse. */
int64_t pl_row_q(const pl_call *call, const pl_head *e, const fa_plugin_tensor *t, int64_t i);
int64_t pl_row_k(const pl_call *call, const pl_head *e, const fa_plugin_tensor *t, int64_t hk, int64_t j);
int64_t pl_row_lse(const pl_call *call, const pl_head *e, const fa_plugin_tensor *t, int64_t i);

/* sum a[i] b[i step] over n. */
double pl_dot(const pl_call *call, int64_t n, const double *a, const double *b, int64_t step);

/* The keys that row i sees: lo .. hi - 1. */
void pl_range(const pl_call *call, const pl_head *e, int64_t i, int64_t *lo, int64_t *hi);
void pl_scores(const pl_call *call, pl_head *e, int64_t i);                 /* x and chain of row i */
void pl_dropout(const pl_call *call, pl_head *e, int64_t i, bool backward); /* keep of row i */

/* cache.c: puts the new keys of all sequences where they belong; a row, rotated to its position. */
void pl_append(const pl_call *call);
void pl_rotate(const pl_call *call, double *row, int64_t position);

void pl_forward(const pl_call *call, pl_head *e);  /* writes o and lse */
void pl_backward(const pl_call *call, pl_head *e); /* writes dq; adds to dk, dv, dbias */

#endif
