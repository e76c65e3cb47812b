/* The values' warpgroups of latent attention: each accumulates half of O's columns for all rows, and stores them. */
#ifndef FA_GPU_KERNELS_HOPPER_LATENT_VALUES_CUH
#define FA_GPU_KERNELS_HOPPER_LATENT_VALUES_CUH

#include "gpu/kernels/cache/forward_store.cuh"
#include "gpu/kernels/hopper_latent/load.cuh"

namespace fa {

/* A group's columns of O. */
template <class C> struct latent_o {
  float x[C::O_COLUMNS / 8][4] = {};
};

template <class C> FA_DEVICE void load_latent_factors(float (&factor)[2], int stage, int thread) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r)
    factor[r] = as_float(load_shared4(latent_factor<C>(stage, thread / 32 * 16 + thread % 32 / 4 + 8 * r)));
}

/* Few tiles have a new maximum in any of a warp's rows. */
template <class C>
FA_DEVICE void rescale_latent_o(latent_o<C> &o, const float (&factor)[2]) {
  if (!any_lane(factor[0] != 1.0f || factor[1] != 1.0f)) return;
  FA_UNROLL
  for (int n = 0; n < C::O_COLUMNS / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 4; ++e) o.x[n][e] *= factor[e / 2];
  }
}

/* Issues o += P V for the group's columns. */
template <class C>
FA_DEVICE void latent_gemm_pv(latent_o<C> &o, uint32_t stage, int group) {
  const uint64_t p = matrix_descriptor(stage + C::P_IN_STAGE, 16, 1024, FA_SWIZZLE_128),
                 v = matrix_descriptor(stage + group * (C::O_COLUMNS / 64) * C::PANEL, C::PANEL, 1024,
                                       FA_SWIZZLE_128);
  wgmma_fence();
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i)
    wgmma_ss<0, 1>(o.x, descriptor_at(p, i * 32), descriptor_at(v, i * 16 * 128), 1, typename C::T());
  wgmma_commit();
}

/* Stores the warp's rows of partial results, one pair of columns at a time: a quad has 32 bytes. */
template <class C>
FA_DEVICE void store_latent_parts(float *to, const latent_o<C> &o, float factor, int r) {
  FA_UNROLL
  for (int n = 0; n < C::O_COLUMNS / 8; ++n) {
    const uint64_t low = float_bits(o.x[n][2 * r] * factor), high = float_bits(o.x[n][2 * r + 1] * factor);
    store_global(reinterpret_cast<uint64_t *>(to + 8 * n), high << 32 | low);
  }
}

/* Stores the warp's rows of O. */
template <class C>
FA_DEVICE void store_latent_o(uint16_t *to, const latent_o<C> &o, float factor, int r, bool is_row, int lane) {
  FA_UNROLL
  for (int i = 0; i < C::O_COLUMNS / 32; ++i) {
    uint32_t w[4];
    FA_UNROLL
    for (int n = 0; n < 4; ++n)
      w[n] = pack2(o.x[4 * i + n][2 * r] * factor, o.x[4 * i + n][2 * r + 1] * factor, typename C::T());
    hopper_transpose(w, lane);
    sync_warp(); /* or the compiler would begin with more than it has registers for */
    if (is_row) store_global(reinterpret_cast<vec4 *>(to + 32 * i), vec4{w[0], w[1], w[2], w[3]});
  }
}

template <class C>
FA_DEVICE void store_latent_rows(const fa_cache_params &p, const latent_o<C> &o, int group, int thread) {
  const cache_work_tile work = load_latent_work_tile<C>(p);
  const int lane = thread % 32;
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = thread / 32 * 16 + lane / 4 + 8 * r;
    const float factor = as_float(load_shared4(latent_end_factor<C>(row)));
    const packed_row at = unpack_row(p, work.kv_head, work.row0 + row);
    if (p.n_splits == 1) {
      uint16_t *const to = p.o + work.batch * p.o_stride.batch + at.head * p.o_stride.head +
                           (work.seq.q_row + at.row) * p.o_stride.row + group * C::O_COLUMNS + lane % 4 * 8;
      store_latent_o<C>(to, o, factor, r, row < work.n_rows, lane);
    } else if (row < work.n_rows) {
      float *const to = p.partial_o + (partial_row(p, work, at) * p.n_splits + work.split) * C::DV +
                        group * C::O_COLUMNS + lane % 4 * 2;
      store_latent_parts<C>(to, o, factor, r);
    }
  }
}

/* A tile's turn begins when the MMAs of the next tile's scores have all been issued: while the other group waits for the
 * last of them and is busy with their softmax, the tensor cores are these groups' alone. One thread also loads tiles: the third as soon as Q leaves its place, and then
 * always the one that takes the place of the values just added. group: index of the values' group; thread: of the
 * group. */
template <class C>
FA_DEVICE void add_latent_values(const fa_hopper_latent_params &p, const cache_work_tile &work,
                                 latent_producer<C> &producer, int group, int thread) {
  typedef latent_barriers<C> bar;
  latent_o<C> o;
  const int n = uniform(latent_tiles<C>(work));
  pipeline_state<C::STAGES> pipe;
  if (n > 0) mbarrier_wait(bar::issued(0), 0); /* as every later one: synccheck misses a wait for a phase */
  FA_NO_UNROLL
  for (int i = 0; i < n; ++i) {
    const pipeline_state<C::STAGES> next = pipe.after();
    float factor[2];
    if (group == 0 && thread == 0) producer.load(work, i + C::STAGES - 1);
    sync_warp();
    mbarrier_wait(bar::p_full(pipe.stage()), pipe.phase());
    load_latent_factors<C>(factor, pipe.stage(), thread);
    rescale_latent_o<C>(o, factor);
    if (i + 1 < n) mbarrier_wait(bar::issued(next.stage()), next.phase());
    latent_gemm_pv<C>(o, in_uniform_register(shared_base()) + pipe.stage() * C::STAGE_BYTES, group);
    wgmma_wait<0>(o.x);
    release_latent<C>(bar::empty(pipe.stage()), thread);
    pipe = next;
  }
  mbarrier_wait(bar::finished(), 0);
  store_latent_rows<C>(p.c, o, group, opaque(thread));
}

} // namespace fa

#endif
