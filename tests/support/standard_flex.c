#include "tests/support/standard_flex.h"

#include "gpu/args/problem.h"
#include "gpu/expr/functions.h"

#include <stdlib.h>

struct standard_flex {
  const fa_problem *p;
  const fa_tensors *in;
  fa_args_flex args;
  fa_flex_interpreter *interpreter;
  const fa_flex_functions *f;
};

standard_flex *standard_flex_make(const fa_problem *p, const fa_tensors *in) {
  if (!p->score_mod && !p->mask_mod && !p->block_sparse.present) return NULL;
  standard_flex *x = calloc(1, sizeof *x);
  const void *buffer[FA_MAX_CAPTURES];
  bool wanted[FA_MAX_CAPTURES];
  fa_error err;
  FA_ASSERT(x);
  x->p = p;
  x->in = in;
  FA_ASSERT(fa_args_flex_make(p, &x->args, &err) == FA_OK);
  for (int k = 0; k < FA_MAX_CAPTURES; ++k) {
    buffer[k] = in->t[FA_T_BUFFER_0 + k].data;
    wanted[k] = in->t[FA_T_DBUFFER_0 + k].data != NULL;
  }
  const fa_flex_program *program = x->args.program;
  FA_ASSERT(fa_flex_interpreter_make(program ? &program->score : NULL, program ? &program->mask : NULL,
                                     p->captures, p->n_captures, buffer, wanted, &x->interpreter,
                                     &err) == FA_OK);
  x->f = fa_flex_interpreter_functions(x->interpreter);
  return x;
}

void standard_flex_free(standard_flex *x) {
  if (!x) return;
  fa_flex_interpreter_free(x->interpreter);
  fa_args_flex_free(&x->args);
  free(x);
}

/* True if the list of the row of blocks contains the block. */
static bool in_list(const standard_flex *x, fa_tensor_id counts, const fa_flex_pair *at) {
  const fa_tensor *n = &x->in->t[counts], *list = &x->in->t[counts + 1];
  if (!n->data) return false;
  int64_t index[FA_MAX_RANK] = {at->b % n->shape[0], at->h % n->shape[1], at->i / x->p->block_sparse.q_block};
  const int64_t block = at->j / x->p->block_sparse.kv_block, end = (int64_t)fa_tensor_get(n, index);
  for (index[3] = 0; index[3] < end; ++index[3])
    if ((int64_t)fa_tensor_get(list, index) == block) return true;
  return false;
}

bool standard_flex_hides(const standard_flex *x, const fa_flex_pair *at) {
  if (!x) return false;
  const fa_block_sparse *s = &x->p->block_sparse;
  if (s->present && s->source != FA_BLOCKS_MASK_MOD) {
    if (in_list(x, FA_T_FULL_KV_NUM_BLOCKS, at)) return false;
    if (!in_list(x, FA_T_KV_NUM_BLOCKS, at)) return true;
  }
  return x->f->mask && !x->f->mask(x->f->self, at);
}

double standard_flex_score(const standard_flex *x, double score, const fa_flex_pair *at) {
  return x && x->f->score ? (double)x->f->score(x->f->self, (float)score, at) : score;
}

double standard_flex_derivative(const standard_flex *x, double score, const fa_flex_pair *at, double g,
                                double *const *dbuffer) {
  fa_flex_read read[FA_FLEX_MAX_READS];
  if (!x || !x->f->derivative) return 1;
  const double derivative = (double)x->f->derivative(x->f->self, (float)score, at, read);
  for (int k = 0; k < x->f->n_reads; ++k)
    dbuffer[read[k].buffer][read[k].element] += g * (double)read[k].derivative;
  return derivative;
}
