/* The portable flex forward. For float32 it is gpu/kernels/memeff/forward.cuh; for 16-bit elements it does
 * the same with 16-bit MMAs and P rounded to 16 bits, as in the flash family. A chunk is then CHUNK columns
 * of Q and K, and Q stays in shared memory if head_dim is one chunk. */
#ifndef FA_GPU_KERNELS_FLEX_FORWARD_CUH
#define FA_GPU_KERNELS_FLEX_FORWARD_CUH

#include "gpu/kernels/memeff/half_tile.cuh"
#include "gpu/kernels/memeff/forward.cuh"

namespace fa {

/* T: f16 or bf16. BN: keys of a tile. VC: columns of V and O of a block, 64 or 128. Blocks are small, so that a processor has
 * several that do not wait for each other. */
template <class T_, int BN_, int VC_> struct half_forward_config {
  typedef T_ T;
  typedef flex_mods MODS;
  static constexpr int VC = VC_, BM = 64, BN = BN_, WARPS = BM / 16, THREADS = 32 * WARPS, CHUNK = 64;
  static constexpr int BLOCKS = VC == 64 ? 3 : 2; /* per processor: 168 or 255 registers */
  static constexpr int Q_BYTES = BM * half_row<CHUNK>::BYTES, K_BYTES = BN * half_row<CHUNK>::BYTES;
  static constexpr int V_BYTES = BN * half_row<VC>::BYTES;
  static constexpr int Q_AT = 0, K_AT = 2 * Q_BYTES, V_AT = K_AT + 2 * K_BYTES;
  static constexpr int SHARED_BYTES = V_AT + 2 * V_BYTES;
  static_assert(SHARED_BYTES <= 99 * 1024, "devices of compute capability 8.6 have no more");
  typedef float score_tile[BN / 8][4];
  typedef float output_tile[VC / 8][4];
};

/* The inputs of a block. */
struct half_operands {
  memeff_rows q, k, v;
  int row0, col0, n_chunks;
  bool aligned;
};

template <class C>
FA_DEVICE void fetch_half(const half_operands &x, int key0, int chunk, int buffer, bool with_q, int thread) {
  if (with_q)
    load_half<C::BM, C::CHUNK, C::THREADS>(shared_base() + C::Q_AT + buffer * C::Q_BYTES, x.q, x.row0,
                                           chunk * C::CHUNK, x.aligned, thread);
  load_half<C::BN, C::CHUNK, C::THREADS>(shared_base() + C::K_AT + buffer * C::K_BYTES, x.k, key0,
                                         chunk * C::CHUNK, x.aligned, thread);
}

/* Starts loading the first chunk of a key block, and its V. */
template <class C>
FA_DEVICE void fetch_first_half(const half_operands &x, int key0, int buffer, int v_buffer, bool with_q,
                                int thread) {
  fetch_half<C>(x, key0, 0, buffer, with_q, thread);
  load_half<C::BN, C::VC, C::THREADS>(shared_base() + C::V_AT + v_buffer * C::V_BYTES, x.v, key0, x.col0,
                                      x.aligned, thread);
}

/* S of this warp's rows and one key block. On entry V and the first chunk are already being loaded; starts
 * loading those of the next key block, if there is one (next_key0 >= 0), and leaves buffer at it. */
template <class C>
FA_DEVICE void half_scores(typename C::score_tile &s, const half_operands &x, int key0, int next_key0,
                           int &buffer, int v_buffer, bool works, int thread) {
  FA_NO_UNROLL
  for (int c = 0; c < x.n_chunks; ++c) {
    cp_async_wait<0>();
    sync_block(); /* the chunk has arrived for all, V with the first; all are done with the other buffers */
    if (c + 1 < x.n_chunks)
      fetch_half<C>(x, key0, c + 1, buffer ^ 1, true, thread);
    else if (next_key0 >= 0)
      fetch_first_half<C>(x, next_key0, buffer ^ 1, v_buffer ^ 1, x.n_chunks > 1, thread);
    cp_async_commit();
    const int q_buffer = x.n_chunks == 1 ? 0 : buffer;
    if (works)
      gemm_half<C::CHUNK>(
          s,
          first_half_a<C::CHUNK>(shared_base() + C::Q_AT + q_buffer * C::Q_BYTES, thread / 32 * 16,
                                 thread % 32),
          first_half_b<C::CHUNK>(shared_base() + C::K_AT + buffer * C::K_BYTES, thread % 32),
          typename C::T());
    buffer ^= 1;
  }
}

/* Grid: as memeff_forward. */
template <class C> FA_DEVICE void half_forward(const fa_attention_params &p) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int n_cols = (p.head_dim_v + C::VC - 1) / C::VC;
  const memeff_coord t = load_memeff_coord(p, static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y));
  const half_operands x = {q_rows(p, t),
                           k_rows(p, t),
                           v_rows(p, t),
                           static_cast<int>(blockIdx.x) / n_cols * C::BM,
                           static_cast<int>(blockIdx.x) % n_cols * C::VC,
                           may_have(FA_HAS_WIDE) ? (p.head_dim + C::CHUNK - 1) / C::CHUNK : 1,
                           p.aligned != 0};
  store_dropout_used_of<C>(p, thread);
  if (x.row0 >= t.seq.len_q) return;
  const tile_walk<typename C::MODS> tiles(
      p.flex, p.flex.keys, t.batch, t.head, x.row0 / C::BM,
      visible_blocks<C::BN, true>(p, t.seq, x.row0, min_int(x.row0 + C::BM, t.seq.len_q)));
  const int row = x.row0 + thread / 32 * 16 + lane / 4;

  const bool works = warp_has_rows(x.row0, t.seq.len_q, thread);
  typename C::output_tile o = {};
  row_state rows[2];
  int buffer = 0, v_buffer = 0;
  flex_tile next = {0, FA_FLEX_FULL};
  if (tiles.begin() < tiles.end()) {
    next = tiles.at(tiles.begin());
    fetch_first_half<C>(x, next.tile * C::BN, 0, 0, true, thread);
    cp_async_commit();
  }
  FA_NO_UNROLL
  for (int i = tiles.begin(); i < tiles.end(); ++i) {
    const flex_tile at = next;
    const int key0 = at.tile * C::BN;
    uint32_t dropped = 0;
    if constexpr (C::MODS::DROPS) dropped = flex_dropped<C::BN / 8, false>(p, t, row, key0 + lane % 4 * 2, lane);
    typename C::score_tile s = {};
    if (i + 1 < tiles.end()) next = tiles.at(i + 1);
    half_scores<C>(s, x, key0, i + 1 < tiles.end() ? next.tile * C::BN : -1, buffer, v_buffer, works, thread);
    if (works) {
      memeff_compute_p<C>(s, o, rows, p, t, row, key0 + lane % 4 * 2, at.kind, dropped, lane);
      gemm_half_rows<C::VC>(o, s,
                                first_half_rows<C::VC>(shared_base() + C::V_AT + v_buffer * C::V_BYTES, lane),
                                typename C::T());
    }
    v_buffer ^= 1;
  }
  write_rows<C>(p, t, o, rows, row, x.col0, lane);
}

/* T: f32, f16 or bf16. */
template <class T, int BN, int VC> struct flex_forward_config_of { typedef half_forward_config<T, BN, VC> type; };
template <int BN, int VC> struct flex_forward_config_of<f32, BN, VC> {
  struct type : memeff_forward_config<f32, VC, flex_mods, BN> {
    static constexpr int BLOCKS = 1;
  };
};

template <class C> FA_DEVICE void flex_forward(const fa_attention_params &p) {
  if constexpr (is_f32<typename C::T>::value)
    memeff_forward<C>(p);
  else
    half_forward<C>(p);
}

} // namespace fa

#endif
