#include "fuzz/timing/check.h"

#include "cases/tensors/table.h"
#include "fuzz/judging/judge.h"
#include "fuzz/timing/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_FLOPS 2e10 /* about a second of one processor: above it only parts are judged */
#define PARTS_FLOPS 8e9  /* that the parts of one output come to, more or less */

enum { ROWS_OF_PART = 256 };

/* ---- parts ---- */

/* One sequence and one KV head with its query heads; of a forward only some of the rows. */
typedef struct part {
  fa_problem p;
  fa_tensors in, got;
} part;

/* Sequences and heads are independent, and nothing in the call names them. */
static bool falls_apart(const fa_problem *p) {
  return !fa_problem_is_varlen(p) && !p->seqused_k.n && !p->leftpad_k.n && !p->kvcache.present &&
         !p->alibi.present && !p->bias.present && p->dropout.p == 0 && !p->block_sparse.present &&
         !p->score_mod && !p->mask_mod && !p->return_softmax && p->batch > 0 && p->heads_kv > 0;
}

static double flops_of(const fa_problem *p, unsigned passes) {
  const double pairs = (double)p->batch * (double)p->heads_q * (double)p->seqlen_q * (double)p->seqlen_k;
  return pairs * (double)(p->head_dim + p->head_dim_v) * (passes & FA_PASS_BACKWARD ? 7 : 2);
}

/* The tensor's part: n entries from `first` on of an axis, the others as they are. */
static void cut(fa_tensor *t, int axis, int64_t first, int64_t n) {
  if (!t->data) return;
  t->data += first * t->stride[axis] * (int64_t)fa_dtype_size(t->dtype);
  t->shape[axis] = n;
}

static void cut_call(fa_tensors *t, const fa_problem *p, int64_t b, int64_t h) {
  static const fa_tensor_id of_queries[] = {FA_T_Q, FA_T_DO, FA_T_O, FA_T_DQ},
                            of_keys[] = {FA_T_K, FA_T_V, FA_T_DK, FA_T_DV}, of_rows[] = {FA_T_LSE, FA_T_DLSE};
  const int64_t group = p->heads_q / p->heads_kv;
  for (int i = 0; i < 4; ++i) {
    cut(&t->t[of_queries[i]], 0, b, 1), cut(&t->t[of_queries[i]], 2, h * group, group);
    cut(&t->t[of_keys[i]], 0, b, 1), cut(&t->t[of_keys[i]], 2, h, 1);
  }
  for (int i = 0; i < 2; ++i) cut(&t->t[of_rows[i]], 0, b, 1), cut(&t->t[of_rows[i]], 1, h * group, group);
}

/* Rows can be judged alone if that they are the last of all changes nothing: keys that none of them sees are cut off. */
static bool rows_fall_apart(const fa_problem *p, unsigned passes) {
  const fa_window window = fa_mask_window(&p->mask);
  const bool ends_at_row = window.right == 0 && p->seqlen_k >= p->seqlen_q &&
                           (p->mask.align == FA_ALIGN_BOTTOM_RIGHT || p->seqlen_k == p->seqlen_q);
  const bool no_mask = window.right < 0 && window.left < 0;
  return !(passes & FA_PASS_BACKWARD) && p->seqlen_q > ROWS_OF_PART && (no_mask || ends_at_row);
}

static void cut_rows(part *x) {
  const int64_t n = ROWS_OF_PART, first = fa_secret_below(x->p.seqlen_q - n + 1);
  const bool masked = fa_mask_window(&x->p.mask).right == 0;
  const int64_t keys = masked ? x->p.seqlen_k - x->p.seqlen_q + first + n : x->p.seqlen_k;
  cut(&x->in.t[FA_T_Q], 1, first, n), cut(&x->in.t[FA_T_O], 1, first, n),
      cut(&x->in.t[FA_T_LSE], 2, first, n);
  cut(&x->got.t[FA_T_Q], 1, first, n), cut(&x->got.t[FA_T_O], 1, first, n),
      cut(&x->got.t[FA_T_LSE], 2, first, n);
  cut(&x->in.t[FA_T_K], 1, 0, keys), cut(&x->in.t[FA_T_V], 1, 0, keys);
  cut(&x->got.t[FA_T_K], 1, 0, keys), cut(&x->got.t[FA_T_V], 1, 0, keys);
  x->p.seqlen_q = n, x->p.seqlen_k = keys;
  x->p.mask.align = FA_ALIGN_BOTTOM_RIGHT;
}

/* Views: nothing of the part's tensors is owned. */
static fa_status part_make(part *x, const fa_problem *p, unsigned passes, const fa_tensors *in,
                           const fa_tensors *got, fa_error *err) {
  if (fa_problem_copy(&x->p, p) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  const int64_t b = fa_secret_below(p->batch), h = fa_secret_below(p->heads_kv);
  x->in = *in, x->got = *got;
  cut_call(&x->in, p, b, h);
  cut_call(&x->got, p, b, h);
  x->p.batch = x->p.heads_kv = 1;
  x->p.heads_q = p->heads_q / p->heads_kv;
  if (rows_fall_apart(p, passes)) cut_rows(x);
  return FA_OK;
}

/* ---- the verdict ---- */

/* The first output that is wrong. Statistics over all errors are not asked: of many outputs some are odd by chance. */
static void describe(const fa_result *r, char *why, size_t size) {
  for (int i = 0; i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    if (v->unwritten)
      snprintf(why, size, "%s: %lld of %lld elements were not written", fa_tensor_id_name(v->id),
               (long long)v->unwritten, (long long)v->count);
    else if (v->bad || v->class_bad)
      snprintf(why, size, "%s: %lld of %lld elements are wrong, the worst by %.3g times its bound",
               fa_tensor_id_name(v->id), (long long)(v->bad + v->class_bad), (long long)v->count,
               v->worst_ratio);
    else
      continue;
    return;
  }
  if (r->n_verdicts == 0) snprintf(why, size, "it delivered nothing that could be judged");
}

static fa_status judge(const fa_check *x, const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                       char *why, size_t size, fa_error *err) {
  const fa_judge_config config = {.profile = x->profile,
                                  .n_threads = x->n_threads,
                                  .generic = fa_case_is_generic(x->c),
                                  .backward = x->passes & FA_PASS_BACKWARD,
                                  .foreign = true,
                                  .poison = FA_POISON_A,
                                  .contract = &x->said->contract};
  fa_result *r = malloc(sizeof *r);
  if (!r) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_result_init(r);
  const fa_status status = fa_judge(p, in, got, &config, r, err);
  if (status == FA_OK) describe(r, why, size);
  fa_result_free(r);
  free(r);
  return status;
}

/* At least one part, and others as long as there is time. */
static fa_status judge_parts(const fa_check *x, const fa_problem *p, const fa_tensors *in,
                             const fa_tensors *got, char *why, size_t size, fa_error *err) {
  fa_status status = FA_OK;
  for (double done = 0; status == FA_OK && !why[0] && done < PARTS_FLOPS;) {
    part one;
    status = part_make(&one, p, x->passes, in, got, err);
    if (status != FA_OK) break;
    status = judge(x, &one.p, &one.in, &one.got, why, size, err);
    done += flops_of(&one.p, x->passes) + 1;
    fa_problem_free(&one.p);
  }
  return status;
}

fa_status fa_check_output(const fa_check *x, const fa_tensors *in, const fa_tensors *got, char *why,
                          size_t size, fa_error *err) {
  fa_problem p;
  fa_status status = fa_problem_copy(&p, &x->c->problem);
  const double flops = flops_of(&p, x->passes);
  why[0] = 0;
  p.scale = x->scale;
  if (status == FA_OK && (flops <= WHOLE_FLOPS || !falls_apart(&p))) {
    status = judge(x, &p, in, got, why, size, err);
  } else if (status == FA_OK) {
    status = judge_parts(x, &p, in, got, why, size, err);
  }
  fa_problem_free(&p);
  return status;
}
