/* Configuration of the flash forward kernel: tile sizes, and the work tile of a block. */
#ifndef FA_GPU_KERNELS_FLASH_FORWARD_CONFIG_CUH
#define FA_GPU_KERNELS_FLASH_FORWARD_CONFIG_CUH

#include "gpu/kernels/parts/kind.cuh"
#include "gpu/kernels/parts/mask.cuh"
#include "gpu/kernels/parts/tile.cuh"

namespace fa {

/* T: f16 or bf16. D: of the tiles, head_dim rounded up to a multiple of 32. The tiles fit into 99 KiB and 255
 * registers: where 32 rows a warp would need more, a warp has 16, and kinds that cost registers use fewer
 * keys at a time. */
template <class T_, int D_, kernel_kind KIND_> struct flash_forward_config : kernel_kind_traits<KIND_> {
  typedef T_ T;
  static constexpr kernel_kind KIND = KIND_;
  static constexpr int D = D_;
  /* 16-row tiles of a warp */
  static constexpr int M_TILES = D < (KIND == general || KIND == mixed ? 96 : 160) && KIND != alibi ? 2 : 1;
  static constexpr int WARPS = M_TILES == 1 && D <= 192 ? 8 : 4, THREADS = 32 * WARPS;
  static constexpr int BM = 16 * M_TILES * WARPS;
  static constexpr bool ROOM = KIND == plain || (M_TILES == 1 && D <= 224);
  static constexpr int BN = (D <= 64 ? 128 : 64) / (ROOM ? 1 : 2);
  static constexpr int Q_BYTES = BM * D * 2, KV_BYTES = BN * D * 2;
  static constexpr int BIAS_AT = Q_BYTES + 2 * KV_BYTES,
                       BIAS_BYTES = KIND == biased || KIND == mixed ? BM * BN * 2 : 0;
  static constexpr int SHARED_BYTES = BIAS_AT + BIAS_BYTES;
  static constexpr bool SINKS = KIND != dropout; /* which has no register left for them */
  static_assert(SHARED_BYTES <= 99 * 1024, "devices of compute capability 8.6 have no more");
  static_assert(BN % 32 == 0, "dropout decides on 32 keys at once");
};

/* What a block works on. Cheap to load again, so that it need not be kept in registers through the
 * mainloop. */
struct flash_work_tile {
  sequence seq;
  int row0, n_rows; /* in the sequence; n_rows <= 0: nothing to do */
};

template <class C> FA_DEVICE flash_work_tile load_flash_work_tile(const fa_attention_params &p, int batch) {
  flash_work_tile t;
  t.seq = load_sequence(p, batch);
  t.row0 = static_cast<int>(blockIdx.x) * C::BM;
  t.n_rows = min_int(C::BM, t.seq.len_q - t.row0);
  return t;
}

/* Rows are aligned by the kernel's kind, or in this call. */
template <class C> FA_DEVICE bool rows_are_aligned(const fa_attention_params &p) {
  return C::ALIGNED || p.aligned;
}
template <class C> FA_DEVICE void store_chunk(const fa_attention_params &p, uint16_t *to, vec4 v) {
  if (rows_are_aligned<C>(p))
    store_chunk<true>(to, v);
  else
    store_chunk<false>(to, v);
}
template <class C> FA_DEVICE bool scores_are_modified(const fa_attention_params &p) {
  return C::GENERAL ? p.softcap > 0.0f || p.alibi_slopes : C::ALIBI || C::SOFTCAP || C::BIAS;
}

/* Row and key of element 0 of a thread's first score tile, within the block's tile. */
template <class C> FA_DEVICE int score_row(int thread, int m) {
  return 16 * (C::M_TILES * (thread / 32) + m) + thread % 32 / 4;
}
FA_DEVICE int score_col(int thread) {
  return thread % 4 * 2;
}

} // namespace fa

#endif
