#include "tests/fake_cuda/padding.h"

#include "gpu/kernels/params/cache.h"
#include "gpu/kernels/params/flash_backward.h"
#include "gpu/kernels/params/flex_lists.h"
#include "gpu/kernels/params/hopper.h"
#include "gpu/kernels/params/hopper_cache.h"
#include "gpu/kernels/params/latent.h"
#include "gpu/kernels/params/memeff_backward.h"
#include "gpu/kernels/params/merge.h"

#ifdef FA_CLEARS_PADDING
#define OF(KIND, type)                                                                                       \
  case FA_PARAMS_##KIND:                                                                                     \
    __builtin_clear_padding((type *)params);                                                                 \
    break;
#else
#define OF(KIND, type)                                                                                       \
  case FA_PARAMS_##KIND:                                                                                     \
    (void)params;                                                                                            \
    break;
#endif

void params_clear_padding(fa_params_kind kind, void *params) {
  switch (kind) {
    OF(ATTENTION, fa_attention_params)
    OF(BACKWARD, fa_backward_params)
    OF(MEMEFF_BACKWARD, fa_memeff_backward_params)
    OF(HOPPER, fa_hopper_params)
    OF(HOPPER_BIASED, fa_hopper_biased_params)
    OF(HOPPER_CACHE, fa_hopper_cache_params)
    OF(HOPPER_BACKWARD, fa_hopper_backward_params)
    OF(HOPPER_BIASED_BACKWARD, fa_hopper_biased_backward_params)
    OF(HOPPER_LATENT, fa_hopper_latent_params)
    OF(CACHE, fa_cache_params)
    OF(CACHE_APPEND, fa_cache_append_params)
    OF(CACHE_GATHER, fa_cache_gather_params)
    OF(FLEX_LISTS, fa_flex_lists_params)
    OF(FLEX_EXACT, fa_flex_exact_params)
    OF(MERGE, fa_merge_params)
    OF(AMAX, fa_kernel_amax)
  case FA_N_PARAMS:
    break;
  }
}
