/* score_mod and mask_mod as kernels see them: one type, with the same members on a device and on the host.
 *
 *   has_score(x), has_mask(x)      whether there is such an expression; a constant on a device
 *   score(x, s, at)                score_mod of s, which is after scale and softcap
 *   mask(x, at)                    whether mask_mod leaves the pair visible
 *   derivative(x, s, at, add)      d score_mod / d score. Calls add(buffer, element, derivative) for every
 *                                  read of a buffer whose gradient is wanted, always in the same order
 *   DROPS                          whether the call may have dropout; on a device, whether it has
 *   MASKS_AT_ONCE                  for how many times two columns the code of mask_mod may exist side by side: a power of 2
 *   READS                          whether there can be such reads: gradients of captured buffers are wanted
 *
 * x: the call's fa_flex_args. On a device the functions are compiled for the call; before it includes this
 * file, the translation unit defines
 *
 *   FA_FLEX_SCORE, FA_FLEX_MASK    1 if there is one: then fa_flex_score, fa_flex_mask are defined, as
 *                                  gpu/expr/emit.h declares them
 *   FA_FLEX_MASKS                  MASKS_AT_ONCE, fewer the longer mask_mod is
 *   FA_FLEX_DERIVATIVE             1 if fa_flex_derivative is: in backward units with a score_mod
 *   FA_FLEX_DROPOUT                1 if the call has dropout
 *   FA_FLEX_READS                  its number of reads
 *   FA_FLEX_READ_BUFFERS           the buffers that they read, such as 0, 0, 2 */
#ifndef FA_GPU_KERNELS_MODS_CALL_CUH
#define FA_GPU_KERNELS_MODS_CALL_CUH

#include "gpu/kernels/params/flex_functions.h"
#include "gpu/kernels/machine/prim.cuh"

namespace fa {

typedef fa_flex_pair flex_pair;

/* For kernels of the other families. */
struct no_mods {
  static constexpr bool ANY = false, READS = false, DROPS = false;
};

#ifdef __CUDACC__
#ifdef FA_FLEX_SCORE
struct flex_mods {
  static constexpr bool ANY = true, READS = FA_FLEX_READS > 0, DROPS = FA_FLEX_DROPOUT;
  static constexpr int MASKS_AT_ONCE = FA_FLEX_MASKS;
  FA_DEVICE static constexpr bool has_score(const fa_flex_args &) { return FA_FLEX_SCORE; }
  FA_DEVICE static constexpr bool has_mask(const fa_flex_args &) { return FA_FLEX_MASK; }
  FA_DEVICE static float score(const fa_flex_args &x, float s, const flex_pair &at) {
#if FA_FLEX_SCORE
    return fa_flex_score(s, at.b, at.h, at.i, at.j, at.len_q, at.len_k, x.buffer);
#else
    return s;
#endif
  }
  FA_DEVICE static bool mask(const fa_flex_args &x, const flex_pair &at) {
#if FA_FLEX_MASK
    return fa_flex_mask(at.b, at.h, at.i, at.j, at.len_q, at.len_k, x.buffer);
#else
    return true;
#endif
  }
#if FA_FLEX_DERIVATIVE
  template <class F>
  FA_DEVICE static float derivative(const fa_flex_args &x, float s, const flex_pair &at, const F &add) {
    constexpr int N = FA_FLEX_READS > 0 ? FA_FLEX_READS : 1;
    float by_read[N];
    long long element[N];
    const float by_score =
        fa_flex_derivative(s, at.b, at.h, at.i, at.j, at.len_q, at.len_k, x.buffer, by_read, element);
#if FA_FLEX_READS > 0
    constexpr int buffers[N] = {FA_FLEX_READ_BUFFERS};
    FA_UNROLL
    for (int k = 0; k < N; ++k) add(buffers[k], element[k], by_read[k]);
#endif
    return by_score;
  }
#else
  template <class F> FA_DEVICE static float derivative(const fa_flex_args &, float, const flex_pair &, const F &) {
    return 1.0f;
  }
#endif
};
#endif
#else
struct flex_mods {
  static constexpr bool ANY = true, READS = true, DROPS = true;
  static constexpr int MASKS_AT_ONCE = 4; /* of a half's 8 in the tiles of 128 keys: so both of the loop's ways are run */
  static bool has_score(const fa_flex_args &x) { return x.functions->score; }
  static bool has_mask(const fa_flex_args &x) { return x.functions->mask; }
  static float score(const fa_flex_args &x, float s, const flex_pair &at) {
    return x.functions->score ? x.functions->score(x.functions->self, s, &at) : s;
  }
  static bool mask(const fa_flex_args &x, const flex_pair &at) {
    return !x.functions->mask || x.functions->mask(x.functions->self, &at);
  }
  template <class F> static float derivative(const fa_flex_args &x, float s, const flex_pair &at, const F &add) {
    if (!x.functions->derivative) return 1.0f;
    fa_flex_read read[FA_FLEX_MAX_READS];
    const float by_score = x.functions->derivative(x.functions->self, s, &at, read);
    for (int k = 0; k < x.functions->n_reads; ++k) add(read[k].buffer, read[k].element, read[k].derivative);
    return by_score;
  }
};
#endif

} // namespace fa

#endif
