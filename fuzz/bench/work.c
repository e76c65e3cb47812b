#include "fuzz/bench/work.h"

#include "cases/recipe/case.h"
#include "cases/tensors/table.h"
#include "fuzz/bench/pairs.h"

static double bytes_in(const fa_tensor *x) {
  return x->data ? (double)fa_tensor_count(x) * (double)fa_dtype_size(x->dtype) : 0;
}

/* Of a key and its value in one head. What is quantised is as wide as the cache's rows, and has its blocks' scales. */
static double bytes_of_key(const fa_problem *p, const fa_tensors *t) {
  static const fa_tensor_id ids[] = {FA_T_K, FA_T_V, FA_T_K_SCALES, FA_T_V_SCALES};
  double bytes = 0;
  if (!p->quantized.present)
    return (double)((p->head_dim + p->head_dim_v) * (int64_t)fa_dtype_size(p->dtype));
  for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i) {
    const fa_tensor *x = &t->t[ids[i]];
    if (x->data && !(ids[i] == FA_T_V && p->kvcache.v_in_k))
      bytes += (double)x->shape[x->rank - 1] * (double)fa_dtype_size(x->dtype);
  }
  return bytes;
}

/* Of a cache only the keys that the sequences have. New keys are also read from their own tensors and
 * written. */
static double bytes_of_cache(const fa_problem *p, const fa_tensors *t) {
  static const fa_tensor_id ids[] = {FA_T_Q,     FA_T_O,     FA_T_LSE,  FA_T_K_NEW,
                                     FA_T_V_NEW, FA_T_K_NEW, FA_T_V_NEW};
  double bytes = 0, keys = 0;
  for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i) bytes += bytes_in(&t->t[ids[i]]);
  for (int64_t b = 0; b < p->batch; ++b)
    keys += (double)(p->kvcache.len.v[b] + p->kvcache.n_new - (p->leftpad_k.n ? p->leftpad_k.v[b] : 0));
  return bytes + keys * (double)p->heads_kv * bytes_of_key(p, t);
}

double fa_bench_bytes(const fa_problem *p, const fa_tensors *t, bool backward) {
  double bytes = 0;
  if (p->family == FA_KVCACHE) return bytes_of_cache(p, t);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_case_has_strides((fa_tensor_id)id) &&
        (backward || fa_tensor_describe((fa_tensor_id)id)->pass == FA_PASS_FORWARD))
      bytes += bytes_in(&t->t[id]);
  return bytes;
}

double fa_bench_flops(const fa_problem *p, const fa_tensors *t, bool backward) {
  /* two per pair and column of each product: S, O; S, dP, dV, dK, dQ */
  const int64_t columns = backward ? 3 * p->head_dim + 2 * p->head_dim_v : p->head_dim + p->head_dim_v;
  return 2.0 * fa_bench_pairs(p, t) * (double)columns;
}
