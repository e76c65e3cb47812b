/* Configuration of attention over a KV cache: tile sizes and shared memory. */
#ifndef FA_GPU_KERNELS_CACHE_FORWARD_CONFIG_CUH
#define FA_GPU_KERNELS_CACHE_FORWARD_CONFIG_CUH

#include "gpu/kernels/params/cache.h"
#include "gpu/kernels/machine/prim.cuh"

namespace fa {

enum cache_shape { fewest_rows, fewest_filling, few_rows, many_rows };

/* Whether an element of a cache is a byte, or half of one: E, or void where the cache has the elements' type. */
template <class E> struct cache_element { static constexpr bool EIGHT = true, FOUR = false; typedef uint8_t stored; };
template <> struct cache_element<void> { static constexpr bool EIGHT = false, FOUR = false; typedef uint16_t stored; };
template <> struct cache_element<e2m1> { static constexpr bool EIGHT = false, FOUR = true; typedef uint8_t stored; };

/* T: f16 or bf16. D: of the tiles, head_dim rounded up to a power of 2. GENERAL: chosen at run time by the
 * parameters: unaligned rows, softcap and ALiBi. BLOCKS: so many times the warps and the shared memory, for few
 * rows. PAGED: there may be a page table. E: of a cache of 8 bits: e4m3, e5m2 or i8. Such tiles are bytes in shared memory
 * too, and become elements where fragments are made of them. Of 4 bits, e2m1: stages are what the cache holds, of which a
 * team makes tiles of elements (four.cuh). */
template <class T_, int D_, cache_shape SHAPE, bool GENERAL_, int BLOCKS = 1, bool PAGED_ = true, class E_ = void>
struct cache_config {
  typedef T_ T;
  typedef E_ E;
  typedef typename cache_element<E_>::stored stored;
  static constexpr bool EIGHT = cache_element<E_>::EIGHT, FOUR = cache_element<E_>::FOUR, DESCALED = EIGHT || FOUR;
  static constexpr int D = D_;
  static constexpr bool GENERAL = GENERAL_, PAGED = PAGED_, FEW = SHAPE != many_rows, FEWEST = SHAPE <= fewest_filling;
  /* Blocks of the fewest rows that a processor takes at once, and of all others at least: it wants many warps to make elements
   * of bytes, each of which waits for what it made. Or one block of as many warps. */
  static constexpr bool FILLING = SHAPE == fewest_filling;
  static constexpr int A_PROCESSOR = FILLING ? 1 : !FEWEST ? 2 : D > 128 ? 3 : 4;
  static constexpr int WARPS = BLOCKS * (FILLING ? 16 : SHAPE == few_rows && D > 128 ? 2 : 4);
  static constexpr int THREADS = 32 * WARPS;
  static constexpr int ROWS8 = FEWEST ? 1 : 2; /* groups of 8 rows that a warp has */
  static constexpr int BM = FEW ? 8 * ROWS8 : 16 * WARPS;
  static constexpr int O_TILES = FEWEST ? D / 16 : D / 8; /* of the MMA; of the fewest rows O is transposed */
  static constexpr int TEAM = FEW ? 32 : THREADS, TEAMS = THREADS / TEAM; /* threads that share a pipeline */
  static constexpr int KEYS = FEW ? (D <= 64 ? 32 : 16) : (D > 128 ? 32 : 64), BN = KEYS * TEAMS;
  static constexpr int ROW_BYTES = D * (EIGHT ? 1 : 2), TILE_BYTES = KEYS * ROW_BYTES, CACHE_ROW_BYTES = FOUR ? D / 2 : ROW_BYTES;
  /* Of 8 bits the tiles are followed by the descales of their keys, and those of their values; and tiles begin on the
   * longest rows. Of 4 bits the numbers are followed by the scales of their blocks, and a pipeline begins with two tiles. */
  static constexpr int STAGE_BYTES =
      FOUR ? KEYS * (D + D / 8) : 2 * TILE_BYTES + (EIGHT ? (8 * KEYS + 255) / 256 * 256 : 0);
  static constexpr int UNPACKED_BYTES = FOUR ? 2 * TILE_BYTES : 0;
  /* Where registers are short, each warp keeps its Q fragments in shared memory, after the pipelines. */
  static constexpr bool Q_IN_SHARED = D > 128 && (GENERAL || !FEW || FEWEST), Q_OF_BLOCK = Q_IN_SHARED && FEWEST; /* one for all its warps */
  static constexpr int Q_WARP_BYTES = Q_IN_SHARED ? 8 * ROWS8 * D * 2 : 0;
  /* Of 256 columns of 8 bits three blocks of two warps find room, which make elements of bytes all the while. */
  static constexpr int ROOM = FEWEST                 ? 224 * 1024 / A_PROCESSOR - 1024 - Q_WARP_BYTES
                              : EIGHT && Q_IN_SHARED ? 72 * 1024 - WARPS * Q_WARP_BYTES
                                                     : BLOCKS * 96 * 1024 - (FOUR ? WARPS * Q_WARP_BYTES : 0);
  static constexpr int STAGES =
      Q_IN_SHARED && !DESCALED ? 2 : FEW ? (ROOM / TEAMS - UNPACKED_BYTES) / STAGE_BYTES : 3;
  static constexpr int PIPELINE_BYTES = UNPACKED_BYTES + STAGES * STAGE_BYTES, Q_AT = TEAMS * PIPELINE_BYTES,
                       SHARED_BYTES = Q_AT + (Q_OF_BLOCK ? 1 : WARPS) * Q_WARP_BYTES;
  static_assert(PIPELINE_BYTES % (FOUR ? ROW_BYTES : 1) == 0, "tiles begin on the longest rows");
  static_assert(D % 64 == 0 && (D & (D - 1)) == 0, "rows are copied by 128 bytes");
  static_assert(FILLING || SHARED_BYTES <= BLOCKS * 99 * 1024, "devices of compute capability 8.6 have no more");
  /* In the epilogue: a warp's rows of O, not normalised, each followed by its maximum and its sum. A row
   * takes eight floats more than its columns, so that the rows of a fragment begin in different banks. */
  static constexpr int PART_ROW = (D + 8) * 4, PART_BYTES = 8 * ROWS8 * PART_ROW;
  static constexpr int PART_STEP = FEW ? PIPELINE_BYTES : PART_BYTES;
  static_assert(PART_BYTES <= PART_STEP && PART_STEP * WARPS <= SHARED_BYTES, "parts take the rings' place");
};

template <class C> FA_DEVICE void sync_team() {
  if (C::FEW)
    sync_warp();
  else
    sync_block();
}

template <class C> FA_DEVICE bool cache_scores_are_modified(const fa_cache_params &p) {
  return C::GENERAL && (p.softcap > 0.0f || p.alibi_slopes);
}

} // namespace fa

#endif
