/* Scores of the memeff kernels: 16 rows x 64 keys per warp, in m16n8 accumulator tiles; from raw scores to
 * logits. */
#ifndef FA_GPU_KERNELS_MEMEFF_SCORE_CUH
#define FA_GPU_KERNELS_MEMEFF_SCORE_CUH

#include "gpu/kernels/parts/dropout_linear.cuh"
#include "gpu/kernels/memeff/tile.cuh"

namespace fa {

static constexpr int MEMEFF_CHUNK = 32; /* columns of Q and K, or of V and dO, in one buffer in shared memory */

/* The coordinates of a block's work. */
struct memeff_coord {
  sequence seq;
  int batch, head, kv_head;
};

FA_DEVICE memeff_coord load_memeff_coord(const fa_attention_params &p, int batch, int head) {
  return memeff_coord{load_sequence(p, batch), batch, head, head / p.heads_per_kv};
}

/* The block of rows or keys, head and sequence that a block of the grid works on. */
struct grid_place {
  int block, head, batch;
};

/* If masks make some blocks of a head longer than others, eight heads are interleaved: block 0 of each, then
 * block 1 of each. If the blocks come in descending order of length, no long block is left for the end. Only
 * eight, so that what they read stays in the L2 cache. */
FA_DEVICE grid_place longest_first_coord(const fa_attention_params &p) {
  if (p.window_left < 0 && p.window_right < 0)
    return grid_place{static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y),
                      static_cast<int>(blockIdx.z)};
  const int64_t n_blocks = gridDim.x, heads = gridDim.y, all_heads = heads * gridDim.z;
  const int64_t at = blockIdx.x + n_blocks * (blockIdx.y + heads * blockIdx.z),
                first = at / (8 * n_blocks) * 8;
  const int64_t interleaved = all_heads - first < 8 ? all_heads - first : 8, i = at - first * n_blocks;
  const int64_t head = first + i % interleaved;
  return grid_place{static_cast<int>(i / interleaved), static_cast<int>(head % heads),
                    static_cast<int>(head / heads)};
}

/* The rows of one head and sequence of a tensor; the first n_cols columns are used. */
FA_DEVICE memeff_rows rows_of(const void *base, const fa_kernel_strides &s, int batch, int head, int row0,
                            int n_rows, int n_cols) {
  return memeff_rows{base, batch * s.batch + head * s.head + row0 * s.row, s.row, n_rows, n_cols};
}
FA_DEVICE memeff_rows q_rows(const fa_attention_params &p, const memeff_coord &t) {
  return rows_of(p.q, p.q_stride, t.batch, t.head, t.seq.q_row, t.seq.len_q, p.head_dim);
}
FA_DEVICE memeff_rows k_rows(const fa_attention_params &p, const memeff_coord &t) {
  return rows_of(p.k, p.k_stride, t.batch, t.kv_head, t.seq.k_row, t.seq.len_k, p.head_dim);
}
FA_DEVICE memeff_rows v_rows(const fa_attention_params &p, const memeff_coord &t) {
  return rows_of(p.v, p.v_stride, t.batch, t.kv_head, t.seq.k_row, t.seq.len_k, p.head_dim_v);
}

/* True if this warp has any rows within the sequence. The other warps help to load, and skip the GEMMs. */
FA_DEVICE bool warp_has_rows(int row0, int n_rows, int thread) {
  return row0 + thread / 32 * 16 < n_rows;
}

FA_DEVICE int64_t bias_row(const fa_attention_params &p, const memeff_coord &t, int row) {
  return t.batch * p.bias_stride.batch + t.head * p.bias_stride.head + row * p.bias_stride.row;
}

/* Logits where nothing is masked and there is no bias. */
template <int N8> FA_DEVICE void scale_scores(float (&s)[N8][4], float scale) {
  FA_UNROLL
  for (int n = 0; n < N8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 4; ++e) s[n][e] *= scale;
  }
}

/* Logits: scaled, with bias, and -inf where masked. row, key: of the lane's element 0, in the sequence. */
template <class T, int N8>
FA_DEVICE void make_logits(float (&s)[N8][4], const fa_attention_params &p, const memeff_coord &t, int row,
                           int key) {
  const float scale = p.scale * p.score_sign;
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const row_limits limits = limits_of_row<true>(p, t.seq, row + 8 * r);
    const bool biased = p.bias && row + 8 * r < t.seq.len_q;
    const int64_t bias_at = biased ? bias_row(p, t, row + 8 * r) : 0;
    FA_UNROLL
    for (int n = 0; n < N8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 2; ++e) {
        const int j = key + 8 * n + e;
        const bool visible = j >= limits.lo && j < limits.hi;
        const float bias = biased && visible ? load_element(p.bias, bias_at + j, T()) : 0.0f;
        float &x = s[n][2 * r + e];
        x = visible ? fmaf(x, scale, bias) : -infinity();
      }
    }
  }
}

} // namespace fa

#endif
