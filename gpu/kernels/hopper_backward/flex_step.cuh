/* P^T and dS^T of a step in flex kernels. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_FLEX_STEP_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_FLEX_STEP_CUH

#include "gpu/kernels/hopper_backward/flex.cuh"
#include "gpu/kernels/hopper_backward/gemm.cuh"

namespace fa {

/* Which row tile a step has, and of which kind it is: they come with its LSE. */
template <class C> FA_DEVICE void hopper_load_flex_tile(pipeline_state<C::STAGES> pipe, hopper_row_tile &at) {
  mbarrier_wait(hopper_backward_barriers<C>::rows_full(pipe.stage()), pipe.phase());
  const int entry = uniform(static_cast<int>(load_shared4(shared_base() + C::FLEX_TILES_AT + 4 * pipe.stage())));
  at.row0 = (entry >> 2) * C::BM;
  at.kind = entry & 3;
}

/* hopper_compute_p_ds for flex kernels. LATE_DP: large head dims have no registers for S and dP at once, so
 * dP is computed after P; the other warpgroup's GEMMs fill the time. READS: gradients of captured buffers are
 * wanted, which need S and dP at once. */
template <class C, bool READS>
FA_DEVICE void hopper_flex_p_ds(const fa_backward_params &p, uint32_t (&p_frag)[C::BM / 16][4],
                                uint32_t (&ds)[C::BM / 16][4], float (&dv)[C::D / 8][4],
                                pipeline_state<C::STAGES> pipe, const hopper_key_tile &t, hopper_row_tile &at, int group,
                                int thread) {
  typedef hopper_backward_barriers<C> bar;
  constexpr bool LATE_DP = C::D > 64 && !READS;
  const uint32_t base = shared_base(), q_tile = base + C::Q_AT + pipe.stage() * C::Q_BYTES,
                 do_tile = base + C::DO_AT + pipe.stage() * C::Q_BYTES,
                 v_tile = base + C::V_AT + group * 64 * 128;
  const int lane = thread % 32, key = t.key0 + 64 * group + thread / 32 * 16 + lane / 4;
  float s[C::BM / 8][4], dp[C::BM / 8][4];
  mbarrier_wait(bar::q_full(pipe.stage()), pipe.phase());
  if constexpr (C::VARLEN) {
    hopper_load_flex_tile<C>(pipe, at); /* before the product, which reads what is cleared */
    if (t.seq.len_q - at.row0 < C::BM) {
      mbarrier_wait(bar::do_full(pipe.stage()), pipe.phase());
      hopper_clear_ragged_rows<C, C::Q_PANEL>(q_tile, do_tile, t.seq.len_q - at.row0, 128 * group + thread);
    }
  }
  wgmma_fence();
  hopper_gemm_s_dp<C>(s, base + C::K_AT + group * 64 * 128, q_tile);
  mbarrier_wait(bar::do_full(pipe.stage()), pipe.phase());
  if (!LATE_DP) {
    wgmma_fence();
    hopper_gemm_s_dp<C>(dp, v_tile, do_tile);
  }
  if constexpr (!C::VARLEN) hopper_load_flex_tile<C>(pipe, at);
  const int row = at.row0 + lane % 4 * 2, end = min_int(at.row0 + C::BM, t.seq.len_q),
            first_key = t.key0 + 64 * group;
  const bool all =
      end == at.row0 + C::BM && !keys_need_mask(p.forward, t.seq, at.row0, end, first_key, first_key + 64);
  const flex_pair first = {t.batch, at.head, row, key, t.seq.len_q, t.seq.len_k};
  const uint32_t visible = hopper_flex_seen<C>(p.forward, t.seq, at.kind, first, all);
  const uint32_t rows = base + C::ROWS_AT + pipe.stage() * (2 * C::ROW_BYTES) + lane % 4 * 8;
  if constexpr (READS) {
    wgmma_wait<0>(s);
    wgmma_wait<0>(dp);
    hopper_flex_compute_p_ds<C>(p_frag, ds, s, dp, p, first, visible, rows, lane);
    wgmma_fence();
    hopper_gemm_dkv<C>(dv, p_frag, do_tile);
  } else {
    if (LATE_DP)
      wgmma_wait<0>(s);
    else
      wgmma_wait<1>(s);
    hopper_flex_compute_p<C>(p_frag, s, p, first, visible, rows);
    wgmma_fence();
    if (LATE_DP) hopper_gemm_s_dp<C>(dp, v_tile, do_tile);
    hopper_gemm_dkv<C>(dv, p_frag, do_tile);
    wgmma_wait<1>(dp);
    hopper_compute_ds<C>(dp, s, rows + C::ROW_BYTES);
    hopper_pack<C>(ds, dp);
  }
}

/* On a device READS is known when the expressions are compiled. */
#ifdef __CUDACC__
#define HOPPER_FLEX_P_DS(p, ...) hopper_flex_p_ds<C, C::MODS::READS>(p, __VA_ARGS__)
#else
#define HOPPER_FLEX_P_DS(p, ...)                                                                             \
  hopper_has_reads(p.forward.flex) ? hopper_flex_p_ds<C, true>(p, __VA_ARGS__)                               \
                                   : hopper_flex_p_ds<C, false>(p, __VA_ARGS__)
#endif

} // namespace fa

#endif
