/* fa_case_validate on structs that come from no file: random numbers in every field, arrays of wrong length.
 * It must return, not crash, and what it accepts must survive printing and reading. */
#include "cases/codec/json.h"
#include "cases/recipe/case.h"
#include "tests/support/check.h"
#include "tests/support/random_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t odd_int(fa_rng *r) {
  static const int64_t v[] = {0,
                              1,
                              -1,
                              2,
                              3,
                              64,
                              128,
                              1 << 20,
                              (1 << 20) + 1,
                              INT32_MAX,
                              (int64_t)INT32_MAX + 1,
                              (int64_t)1 << 30,
                              (int64_t)1 << 40,
                              INT64_MAX,
                              INT64_MIN,
                              (int64_t)1 << 62};
  return fa_rng_chance(r, 0.8) ? v[fa_rng_below(r, 16)] : (int64_t)fa_rng_next(r);
}

static double odd_number(fa_rng *r) {
  static const double v[] = {0,        -0.0,      1,     -1,     0.5,   NAN,
                             INFINITY, -INFINITY, 1e300, 5e-324, 1e-60, 0.99999999999};
  return v[fa_rng_below(r, 12)];
}

static void break_array(fa_rng *r, fa_int32_array *a) {
  switch (fa_rng_below(r, 4)) {
  case 0: /* no data */
    free(a->v);
    *a = (fa_int32_array){odd_int(r), NULL};
    break;
  case 1: /* another length */
    FA_ASSERT(fa_int32_array_set(a, NULL, fa_rng_below(r, 5)) == FA_OK);
    break;
  default:
    for (int64_t i = 0; i < a->n && a->v; ++i)
      if (fa_rng_chance(r, 0.3)) a->v[i] = (int32_t)fa_rng_next(r);
  }
}

static void break_capture(fa_rng *r, fa_problem *p) {
  if (p->n_captures <= 0 || !p->captures) {
    p->n_captures = (int)odd_int(r); /* without data */
    return;
  }
  fa_capture *c = &p->captures[0];
  switch (fa_rng_below(r, 5)) {
  case 0:
    memset(c->name, 'x', sizeof c->name);
    break; /* no NUL */
  case 1:
    memset(c->fill, 'x', sizeof c->fill);
    break;
  case 2:
    c->rank = (int)odd_int(r);
    break;
  case 3:
    c->shape[fa_rng_below(r, 4)] = odd_int(r);
    break;
  default:
    strcpy(c->name, "kv_idx");
  }
}

static void break_problem(fa_rng *r, fa_problem *p) {
  fa_int32_array *arrays[] = {&p->cu_seqlens_q,
                              &p->cu_seqlens_k,
                              &p->seqused_k,
                              &p->leftpad_k,
                              &p->kvcache.len,
                              &p->kvcache.batch_idx,
                              &p->block_sparse.kv_num_blocks,
                              &p->block_sparse.kv_indices,
                              &p->block_sparse.full_kv_num_blocks,
                              &p->block_sparse.full_kv_indices,
                              &p->topk.len};
  int64_t *ints[] = {&p->batch,
                     &p->heads_q,
                     &p->heads_kv,
                     &p->seqlen_q,
                     &p->seqlen_k,
                     &p->head_dim,
                     &p->head_dim_v,
                     &p->mask.left,
                     &p->mask.right,
                     &p->kvcache.n_new,
                     &p->kvcache.page_size,
                     &p->kvcache.shared_pages,
                     &p->kvcache.rotary_dim,
                     &p->block_sparse.q_block,
                     &p->block_sparse.kv_block,
                     &p->block_sparse.list_batch,
                     &p->block_sparse.list_heads,
                     &p->topk.k,
                     &p->splits};
  double *numbers[] = {&p->scale,     &p->softcap,      &p->dropout.p, &p->block_sparse.density,
                       &p->topk.none, &p->topk.repeated};
  bool *flags[] = {&p->deterministic,  &p->backward,        &p->return_softmax,
                   &p->grad_lse,       &p->bias.present,    &p->bias.grad,
                   &p->bias.per_batch, &p->kvcache.present, &p->block_sparse.present,
                   &p->alibi.present,  &p->alibi.standard,  &p->kvcache.rotary_interleaved,
                   &p->kvcache.v_in_k, &p->topk.present,    &p->topk.beyond};
  int odd = (int)odd_int(r);
  switch (fa_rng_below(r, 14)) {
  case 0:
    p->family = (fa_family)odd;
    break;
  case 1:
    p->dtype = (fa_dtype)odd;
    break;
  case 2:
    p->mask.type = (fa_mask_type)odd;
    break;
  case 3:
    p->mask.align = (fa_mask_align)odd;
    break;
  case 4:
    p->empty_lse = (fa_empty_lse)odd;
    break;
  case 5:
    p->block_sparse.source = (fa_block_source)odd;
    break;
  case 6:
    break_capture(r, p);
    break;
  case 7:
    *numbers[fa_rng_below(r, 6)] = odd_number(r);
    break;
  case 8:
    p->alibi.n = odd_int(r);
    break;
  case 9:
    p->family = (fa_family)fa_rng_below(r, FA_N_FAMILIES);
    break;
  case 10:
    *flags[fa_rng_below(r, 15)] ^= true;
    break;
  case 11:
    break_array(r, arrays[fa_rng_below(r, 11)]);
    break;
  default:
    *ints[fa_rng_below(r, 19)] = odd_int(r);
  }
}

static void break_case(fa_rng *r, fa_case *c) {
  int odd = (int)odd_int(r);
  fa_stride_recipe *s = &c->strides[fa_rng_below(r, FA_T_COUNT)];
  switch (fa_rng_below(r, 9)) {
  case 0:
    c->layout = (fa_layout)odd;
    break;
  case 1:
    c->packing = (fa_packing)fa_rng_below(r, 3);
    break;
  case 2:
    c->expect = (fa_expect)odd;
    break;
  case 3:
    c->fill[fa_rng_below(r, FA_T_COUNT)] = (fa_fill)odd;
    break;
  case 4:
    s->gap[fa_rng_below(r, 3)] = odd_int(r);
    break;
  case 5:
    s->expand[fa_rng_below(r, 3)] ^= true;
    break;
  case 6:
    s->offset = odd_int(r);
    break;
  case 7:
    FA_ASSERT(fa_case_set_name(c, fa_rng_chance(r, 0.5) ? "\x01" : "\xff") == FA_OK);
    break;
  default:
    c->fill[fa_rng_below(r, FA_T_COUNT)] = (fa_fill)fa_rng_below(r, FA_N_FILLS);
  }
}

/* An accepted case must be representable in a file. */
static void check_accepted(const fa_case *c) {
  fa_error err = {""};
  char *line = fa_case_to_line(c);
  fa_case back;
  fa_status status = fa_case_from_text(line, &back, &err);
  CHECK_MSG(status == FA_OK, "%s\n%s", err.text, line);
  if (status == FA_OK) {
    char *again = fa_case_to_line(&back);
    CHECK_MSG(strcmp(line, again) == 0, "\n%s\n%s", line, again);
    free(again);
    fa_case_free(&back);
  }
  free(line);
}

static bool any_array_is_hollow(const fa_problem *p) {
  return p->alibi.n > 0 && !p->alibi.slopes;
}

int main(void) {
  fa_rng r = fa_rng_make(4, 4);
  int n_accepted = 0;
  for (int i = 0; i < 60000; ++i) {
    fa_case c;
    fa_error err = {""};
    random_case(&r, &c);
    int64_t slopes = c.problem.alibi.n;
    for (int64_t k = fa_rng_range(&r, 1, 3); k > 0; --k)
      if (fa_rng_chance(&r, 0.75))
        break_problem(&r, &c.problem);
      else
        break_case(&r, &c);
    /* Slopes are a pointer and a count: nobody can detect a count above what was allocated. */
    if (c.problem.alibi.n > slopes && !any_array_is_hollow(&c.problem)) c.problem.alibi.n = slopes;
    fa_status status = fa_case_validate(&c, &err);
    CHECK_MSG(status == FA_OK || (status == FA_ERR_INPUT && err.text[0] == '$' && strstr(err.text, ": ")),
              "%s", err.text);
    n_accepted += status == FA_OK;
    if (status == FA_OK) check_accepted(&c);
    fa_case_free(&c);
  }
  CHECK_MSG(n_accepted > 5000 && n_accepted < 50000, "%d accepted", n_accepted);
  return check_done();
}
