/* Forward calls over ordinary keys that are split: the kernels over a cache do them, for which k and v are one
 * with a row for every sequence or, packed, with one row for all. */
#include "gpu/plan/split.h"

#include "gpu/call/check.h"
#include "gpu/call/choose.h"
#include "gpu/plan/cache_forward.h"
#include "gpu/plan/splits.h"

#define LEAST_KEYS 4096    /* of which splitting is worth a second launch, and other kernels than the usual */
#define LEAST_KEY_BLOCKS 4 /* of a split */
#define IDLE_PROCESSORS 4  /* with one split, at least this many times as many processors as work tiles */
#define ROWS_OF_A_TILE 64

/* A feature that the split kernels have not, in words; NULL: none. */
static const char *beyond_splits(const fa_attention *a) {
  const struct {
    bool wanted;
    const char *what;
  } all[] = {{a->flex != NULL, "expressions or block lists"},
             {a->bias != NULL, "a bias"},
             {a->dropout_p > 0, "dropout, which is drawn for whole rows"},
             {a->p_debug != NULL, "p_debug"},
             {fa_choose_forward(a) != FA_KERNELS_FLASH,
              "dtype f32, or a head_dim that is no multiple of 8 or above 256"},
             {fa_attention_head_dim_v(a) != a->head_dim, "a head_dim_v that is not head_dim"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (all[i].wanted) return all[i].what;
  return NULL;
}

/* Where most processors would have nothing to do, enough for all. */
static int choose(const fa_call *call, const fa_kernel_device *device) {
  const fa_attention *a = call->a;
  const int64_t tiles = fa_cache_tiles(a, NULL, ROWS_OF_A_TILE);
  if (a->seqlen_k < LEAST_KEYS || tiles == 0 || tiles * IDLE_PROCESSORS > call->n_processors) return 1;
  const fa_cache_kernel *k = fa_cache_kernel_of(a, NULL, true, device, NULL);
  if (!k || beyond_splits(a)) return 1;
  int64_t n = (int64_t)call->n_processors * k->blocks_per_processor / tiles;
  const int64_t most = fa_blocks_of(a->seqlen_k, (int64_t)k->block_n * LEAST_KEY_BLOCKS);
  if (n > most) n = most;
  return n > FA_CACHE_MOST_SPLITS ? FA_CACHE_MOST_SPLITS : n < 1 ? 1 : (int)n;
}

int fa_split_count(const fa_call *call, const fa_kernel_device *device) {
  if (call->a->e4m3) return 1;
  return call->a->splits ? (int)call->a->splits : choose(call, device);
}

fa_status fa_split_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err) {
  const char *what = beyond_splits(a);
  if (what)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "splits = %lld: not together with %s", (long long)a->splits,
                   what);
  return fa_cache_kernel_of(a, NULL, true, device, err) ? FA_OK : FA_ERR_UNSUPPORTED;
}

fa_status fa_split_add_forward(const fa_call *call, const fa_kernel_device *device, int n_splits,
                               fa_plan *out, fa_error *err) {
  const fa_attention *a = call->a;
  const fa_status status = fa_split_supported(a, device, err);
  if (status != FA_OK) return status;
  const fa_cache_kernel *k = fa_cache_kernel_of(a, NULL, out->aligned, device, err);
  if (!k) return FA_ERR_UNSUPPORTED;
  out->family = FA_PLAN_CACHE;
  out->name = "split_forward";
  fa_plan_blocks(out, k->block_m, k->block_n);
  if (fa_attention_is_empty(a)) return FA_OK;
  fa_cache_params *p = fa_plan_params(out, sizeof *p);
  fa_cache_params_fill(a, p);
  p->aligned = out->aligned;
  p->n_splits = n_splits;
  return fa_cache_add_forward(call, k, p, p, device, out, err);
}
