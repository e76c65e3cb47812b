/* One query head of one sequence: its operands as floats, and what the passes leave for each other. */
#ifndef FA_TESTS_EXEC_SIMULATED_HEAD_H
#define FA_TESTS_EXEC_SIMULATED_HEAD_H

#include "gpu/plugin.h"
#include "tests/exec/simulated/config.h"

/* The largest magnitudes so far. */
typedef struct sim_amax {
  float p, o;
} sim_amax;

typedef struct sim_call {
  const sim_config *c;
  const fa_plugin_problem *p;
  const fa_plugin_tensors *t;
  sim_format io;    /* of q, k, v, o; of 8 bits: of q, and of P beside it */
  float *d_k, *d_v; /* [heads_kv][longest][D or Dv] of one sequence; NULL: no backward */
  int runs;         /* calls before this one */
  sim_amax *amax;
} sim_call;

typedef struct sim_head {
  int64_t b, h, hk;
  int64_t n_q, n_k, d, dv, leftpad;
  int64_t q_start, k_start; /* tokens, of packed tensors */
  int64_t longest;          /* keys of the sequence in memory, hidden ones too */
  /* [n_q][..], [n_k][..]; owned by one allocation */
  float *memory, *q, *k, *v, *d_o;
  float *dq, *dk, *dv_of; /* [n_q], [n_k], [n_k]: descales; 1 without */
  float *x, *chain;       /* [n_q][n_k]: final scores, -inf where hidden; the softcap's derivative */
  float *prob, *keep;     /* [n_q][n_k]: P over its sum, as the forward used it; dropout's factor */
  float *ds, *dp;         /* [n_q][n_k] */
  float *o, *lse, *d_lse; /* before O is rounded; natural */
  float *scratch;         /* room for a transposed operand: [longest side][..] */
} sim_head;

/* False: no memory. */
bool sim_head_make(const sim_call *call, int64_t b, int64_t h, sim_head *out);
void sim_head_free(sim_head *e);

/* The element [b, s, h, 0] of a tensor like q (on_keys false) or like k. */
int64_t sim_row_q(const sim_call *call, const sim_head *e, const fa_plugin_tensor *t, int64_t i);
int64_t sim_row_k(const sim_call *call, const sim_head *e, const fa_plugin_tensor *t, int64_t hk, int64_t j);
int64_t sim_row_lse(const sim_call *call, const sim_head *e, const fa_plugin_tensor *t, int64_t i);

/* The operand of a product: x[rows][width] rounded as the configuration says, transposed to [width][rows] if
 * wanted. to may be x unless it is transposed. */
void sim_operand(const sim_call *call, sim_product which, const float *x, int64_t rows, int64_t width,
                 bool transpose, float *to);

void sim_scores(const sim_call *call, sim_head *e);
/* factor[n_q][n_k]: 0 or 1 / (1 - p). */
void sim_dropout(const sim_call *call, const sim_head *e, float *factor);
void sim_forward(const sim_call *call, sim_head *e); /* writes o and lse, and raises the amax */
/* What an O of 8 bits is multiplied by; 1 without. store: such an O, of element at. */
float sim_o_scale(const sim_call *call);
void sim_store_o(const sim_call *call, int64_t at, float x);
void sim_amax_begin(const sim_call *call);
/* Row i of the head, with final scores x, their maximum m and the sum of exponentials relative to it; descale: what O was
 * multiplied by last; p: P as the second product had it. */
void sim_amax_row(const sim_call *call, const sim_head *e, int64_t i, const float *x, float m, float sum,
                  float descale, const float *p);
void sim_amax_store(const sim_call *call);
bool sim_backward(const sim_call *call, sim_head *e); /* writes dq and dbias; adds to d_k and d_v */
float sim_exp(const sim_config *c, float x, float m);

#endif
