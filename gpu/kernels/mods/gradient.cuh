/* Gradients of captured buffers: accumulates a thread's contributions in registers and adds them to memory.
 *
 * With an expression like slopes[h] every pair of a tile adds to one element; with table[q_idx - kv_idx]
 * nearly every pair adds to another. So for each read of the expression a thread keeps one element and its
 * sum in registers as long as the element stays the same, and at the end the lanes of a warp that hold the
 * same element are summed.
 *
 *   flex_gradients<MODS> gradients;                       // of a thread, in registers
 *   for (pairs)
 *     derivative = MODS::derivative(x, score, at, gradients.adder(x, g));     // lanes may diverge here
 *   gradients.flush(x, lane);                             // all lanes of the warp together
 *
 * A contribution of 0 adds nothing. Where g is 0, derivative must not be called: the derivative may not exist
 * there. The sums of one thread, and of a warp, are in the order of its work. Threads add to memory in any
 * order: to floats (fa_flex_args.dbuffer) or, where fa_flex_args.exact is set, to exact sums; then the
 * results are the same in every run if each thread's work between construction and flush is. */
#ifndef FA_GPU_KERNELS_MODS_GRADIENT_CUH
#define FA_GPU_KERNELS_MODS_GRADIENT_CUH

#include "gpu/kernels/mods/exact.cuh"
#include "gpu/kernels/mods/call.cuh"

namespace fa {

/* Reads whose sums are kept in registers; those of further reads are added to memory one by one. */
#ifdef FA_FLEX_READS
static constexpr int FLEX_SLOTS = FA_FLEX_READS < 1 ? 1 : FA_FLEX_READS < 8 ? FA_FLEX_READS : 8;
#else
static constexpr int FLEX_SLOTS = 8;
#endif

/* Of more reads than a few, each is a function call in kernels that may have calls, with the slots in memory: inlined for every pair
 * they are most of the kernel, and a compiler needs more than half a minute for ten of them. */
#ifdef FA_FLEX_READS
static constexpr bool FLEX_MANY_READS = FA_FLEX_READS > 4;
#else
static constexpr bool FLEX_MANY_READS = false;
#endif

/* The number of those reads in this call: the same for all threads. */
FA_DEVICE int flex_slots(const fa_flex_args &x) {
#ifdef FA_FLEX_READS
  return FLEX_SLOTS;
#else
  if (!x.functions->derivative) return 0;
  return x.functions->n_reads < FLEX_SLOTS ? x.functions->n_reads : FLEX_SLOTS;
#endif
}

FA_DEVICE void add_to_captured(const fa_flex_args &x, int buffer, int64_t element, float share) {
  if (x.exact[buffer])
    exact_add(x.exact[buffer] + element * FA_FLEX_EXACT_WORDS, share);
  else
    atomic_add(x.dbuffer[buffer] + element, share);
}
template <bool CALLED>
FA_CALLED void call_add_to_captured(const fa_flex_args &x, int buffer, int64_t element, float share) {
  add_to_captured(x, buffer, element, share);
}

template <class G>
FA_CALLED void call_add_read(G &to, const fa_flex_args &x, int read, int of, int64_t at, float share) {
  to.add_to_slot(x, read, of, at, share);
}

/* CALLED: additions to memory are function calls, which halves the compile time of kernels with many pairs
 * per thread. Kernels with wgmma must not have calls. */
template <class MODS, bool CALLED = false> struct flex_gradients {
  int64_t element[FLEX_SLOTS]; /* -1: none */
  float sum[FLEX_SLOTS];
  int buffer[FLEX_SLOTS];

  FA_DEVICE flex_gradients() {
    FA_UNROLL
    for (int k = 0; k < FLEX_SLOTS; ++k) {
      element[k] = -1;
      sum[k] = 0.0f;
      buffer[k] = 0;
    }
  }

  /* The functor that MODS::derivative calls at a pair. It counts the reads, whose order is always the
   * same. */
  struct pair_adder {
    const fa_flex_args &x;
    flex_gradients &to;
    float g;
    mutable int read;
    FA_DEVICE void operator()(int of, int64_t at, float derivative) const { to.add(x, read++, of, at, g * derivative); }
  };
  FA_DEVICE pair_adder adder(const fa_flex_args &x, float g) { return pair_adder{x, *this, g, 0}; }

  FA_DEVICE static void add_to_memory(const fa_flex_args &x, int of, int64_t at, float share) {
    if constexpr (CALLED)
      call_add_to_captured<CALLED>(x, of, at, share);
    else
      add_to_captured(x, of, at, share);
  }

  FA_DEVICE void add(const fa_flex_args &x, int read, int of, int64_t at, float share) {
    if (!MODS::READS || share == 0.0f) return;
    if (read >= FLEX_SLOTS) {
      add_to_memory(x, of, at, share);
      return;
    }
    if constexpr (CALLED && FLEX_MANY_READS) {
      call_add_read(*this, x, read, of, at, share);
    } else {
      FA_UNROLL
      for (int k = 0; k < FLEX_SLOTS; ++k) /* read and k are both compile-time constants here */
        if (k == read) add_to_slot(x, k, of, at, share);
    }
  }

  FA_DEVICE void add_to_slot(const fa_flex_args &x, int k, int of, int64_t at, float share) {
    if (element[k] == at) {
      sum[k] += share;
    } else {
      if (element[k] >= 0) add_to_memory(x, buffer[k], element[k], sum[k]);
      element[k] = at;
      sum[k] = share;
      buffer[k] = of;
    }
  }

  /* Leaves every slot empty. */
  FA_DEVICE void flush(const fa_flex_args &x, int lane) {
    if (!MODS::READS) return;
    FA_UNROLL
    for (int k = 0; k < flex_slots(x); ++k) {
      FA_UNROLL
      for (int m = 16; m > 0; m /= 2) { /* the lower lane of two takes both sums */
        const uint32_t low = float_bits(shfl_xor(as_float(static_cast<uint32_t>(element[k])), m));
        const uint32_t high = float_bits(shfl_xor(as_float(static_cast<uint32_t>(element[k] >> 32)), m));
        const float other = shfl_xor(sum[k], m);
        if (element[k] < 0 || element[k] != static_cast<int64_t>(static_cast<uint64_t>(high) << 32 | low))
          continue;
        if (lane & m)
          element[k] = -1;
        else
          sum[k] += other;
      }
      if (element[k] >= 0) add_to_memory(x, buffer[k], element[k], sum[k]);
      element[k] = -1;
    }
  }
};

/* For kernels of the other families: nothing to accumulate. */
template <bool CALLED> struct flex_gradients<no_mods, CALLED> {
  FA_DEVICE void flush(const fa_flex_args &, int) {}
};

} // namespace fa

#endif
