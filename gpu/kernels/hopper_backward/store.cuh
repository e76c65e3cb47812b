/* The epilogue of the main backward kernels for sm_90a: stores dK and dV. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_STORE_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_STORE_CUH

#include "gpu/kernels/hopper_backward/config.cuh"

namespace fa {

/* Where a gradient is stored: by a tensor map, or row by row where the tile has a ragged tail. */
struct hopper_gradient {
  const fa_tensor_map *map;
  uint16_t *to;
  const fa_kernel_strides *stride;
  int head_dim;
};

/* Stores n_rows rows of a warp from a tile in shared memory. */
template <class C>
FA_DEVICE void hopper_store_rows(const hopper_gradient &g, uint32_t tile, const hopper_key_tile &t, int first,
                                 int n_rows, int lane) {
  uint16_t *to = g.to + t.batch * g.stride->batch + t.kv_head * g.stride->head +
                 (static_cast<int64_t>(t.seq.k_row) + t.key0 + first) * g.stride->row;
  FA_NO_UNROLL
  for (int i = lane; i < n_rows * (C::D / 8); i += 32) {
    const int row = i / (C::D / 8), chunk = i % (C::D / 8);
    if (8 * chunk < g.head_dim)
      store_global(reinterpret_cast<vec4 *>(to + row * g.stride->row + 8 * chunk),
                   load_shared16(tile + chunk / 8 * C::KV_PANEL + row * 128 + ((chunk % 8 ^ row % 8) << 4)));
  }
}

/* Copies the warp's 16 rows of a gradient to shared memory, visible to all lanes and to bulk copies. */
template <class C>
FA_DEVICE void hopper_stage_gradient(const float (&x)[C::D / 8][4], float factor, uint32_t tile, int lane) {
  hopper_store_row<C::KV_PANEL>(tile, x, factor, 0, lane, typename C::T());
  hopper_store_row<C::KV_PANEL>(tile, x, factor, 1, lane, typename C::T());
  fence_async();
  sync_warp();
}

/* Issues the bulk store from there. batch: in the map. */
template <class C>
FA_DEVICE void hopper_issue_gradient(const fa_tensor_map *map, uint32_t tile, const hopper_key_tile &t, int first,
                                    int batch) {
  FA_UNROLL
  for (int i = 0; i < C::PANELS; ++i)
    tma_store(map, tile + i * C::KV_PANEL, 64 * i, t.seq.k_row + t.key0 + first, t.kv_head, batch);
}

/* Both, where keys past the last are also outside the map. */
template <class C>
FA_DEVICE void hopper_store_gradient(const fa_tensor_map *map, const float (&x)[C::D / 8][4], float factor,
                                     uint32_t tile, const hopper_key_tile &t, int first, int lane) {
  tile += first * 128;
  hopper_stage_gradient<C>(x, factor, tile, lane);
  if (lane == 0 && t.key0 + first < t.seq.len_k) hopper_issue_gradient<C>(map, tile, t, first, t.batch);
}

/* Both, where the next sequence's rows may follow. */
template <class C>
FA_DEVICE void hopper_store_ragged_gradient(const fa_attention_params &f, const hopper_gradient &g,
                                         const float (&x)[C::D / 8][4], float factor, uint32_t tile,
                                         const hopper_key_tile &t, int first, int lane) {
  const int n_rows = t.seq.len_k - t.key0 - first;
  tile += first * 128;
  hopper_stage_gradient<C>(x, factor, tile, lane);
  if (n_rows < 16)
    hopper_store_rows<C>(g, tile, t, first, n_rows, lane);
  else if (lane == 0)
    hopper_issue_gradient<C>(g.map, tile, t, first, hopper_map_batch<C>(f, t.batch));
}

/* Stores dK and dV of a warp's keys. */
template <class C>
FA_DEVICE void hopper_store_gradients(const fa_hopper_backward_params &p, const float (&dk)[C::D / 8][4],
                                      const float (&dv)[C::D / 8][4], int key_block, int group, int thread) {
  const fa_attention_params &f = p.b.forward;
  const hopper_key_tile t = hopper_load_key_tile<C>(p.b, key_block);
  const int first = 64 * group + thread / 32 * 16, lane = thread % 32;
  const uint32_t k_tile = shared_base() + C::K_AT, v_tile = shared_base() + C::V_AT;
  const float factor = C::DROPOUT ? f.dropout_scale : 1.0f;
  if constexpr (C::VARLEN) {
    const hopper_gradient to_dk = {&p.dk, p.b.dk, &p.b.dk_stride, f.head_dim},
                          to_dv = {&p.dv, p.b.dv, &p.b.dv_stride, f.head_dim_v};
    hopper_store_ragged_gradient<C>(f, to_dk, dk, p.b.scale, k_tile, t, first, lane);
    hopper_store_ragged_gradient<C>(f, to_dv, dv, factor, v_tile, t, first, lane);
  } else {
    hopper_store_gradient<C>(&p.dk, dk, p.b.scale, k_tile, t, first, lane);
    hopper_store_gradient<C>(&p.dv, dv, factor, v_tile, t, first, lane);
  }
}

} // namespace fa

#endif
