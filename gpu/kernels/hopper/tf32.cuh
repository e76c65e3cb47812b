/* The f32 forward for sm_90a: a block works on 128 rows of one head, each of two warpgroups on 64 of them; a third one
 * produces K and V (tf32_produce.cuh). While one warpgroup has its softmax the other's MMAs run. */
#ifndef FA_GPU_KERNELS_HOPPER_TF32_CUH
#define FA_GPU_KERNELS_HOPPER_TF32_CUH

#include "gpu/kernels/hopper/tf32_produce.cuh"

namespace fa {

template <int D> struct hopper_tf32_q { uint32_t big[D / 8][4]; /* the A operands of all steps */ };

/* Loads the warpgroup's rows. first_row: the lane's first. The small parts go to the group's rows of the tile. */
template <class C>
FA_DEVICE void hopper_tf32_load_q(hopper_tf32_q<C::D> &q, const memeff_rows &from, int first_row,
                                  uint32_t tile, int thread) {
  const int lane = thread % 32, at = thread % 128 / 32 * 16 + lane / 4;
  const float *base = static_cast<const float *>(from.base) + from.first + lane % 4;
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = first_row + 8 * r;
    const uint32_t to = tile + (at + 8 * r) * 128 + lane % 4 * 4;
    FA_UNROLL
    for (int k = 0; k < C::D / 4; ++k) { /* four columns: half a step */
      const float x = row < from.n_rows ? load_global(base + row * from.stride + 4 * k) : 0.0f;
      const tf32_parts parts = split(x);
      q.big[k / 2][r + k % 2 * 2] = parts.big;
      store_shared4(to + k / 8 * C::Q_PANEL + ((k % 8 ^ at % 8) << 4), parts.small);
    }
  }
}

/* s = Q K^T, of both operands' parts. */
template <class C>
FA_DEVICE void hopper_tf32_scores(typename C::score_tile &s, const hopper_tf32_q<C::D> &q, uint32_t q_small,
                                  uint32_t k) {
  const uint64_t a = matrix_descriptor(in_uniform_register(q_small), 16, 1024, FA_SWIZZLE_128),
                 b = matrix_descriptor(in_uniform_register(k), 16, 1024, FA_SWIZZLE_128);
  wgmma_fence();
  FA_UNROLL
  for (int i = 0; i < C::D / 8; ++i) {
    const uint64_t big = descriptor_at(b, i / 4 * C::K_PANEL + i % 4 * 32),
                   small = descriptor_at(big, C::PART_BYTES);
    wgmma_ss<0, 0>(s, descriptor_at(a, i / 4 * C::Q_PANEL + i % 4 * 32), big, i > 0, f32());
    wgmma_rs<0>(s, q.big[i], small, 1, f32());
    wgmma_rs<0>(s, q.big[i], big, 1, f32());
  }
  wgmma_commit();
  wgmma_wait<0>(s);
}

/* o += P V. The weights of one batch are split while the products of the one before it run. */
template <class C>
FA_DEVICE void hopper_tf32_values(typename C::output_tile &o, const typename C::score_tile &w, uint32_t v) {
  const uint64_t b = matrix_descriptor(in_uniform_register(v), 16, 1024, FA_SWIZZLE_128);
  tf32_a a[2][C::BATCH];
  FA_UNROLL
  for (int i = 0; i < C::BN / 8; i += C::BATCH) {
    tf32_a(&x)[C::BATCH] = a[i / C::BATCH % 2];
    FA_UNROLL
    for (int j = 0; j < C::BATCH; ++j) accumulators_as_a(x[j], w[i + j]);
    wgmma_fence();
    FA_UNROLL
    for (int j = 0; j < C::BATCH; ++j) {
      const uint64_t big = descriptor_at(b, (i + j) / 4 * C::V_PANEL + (i + j) % 4 * 32),
                     small = descriptor_at(big, C::PART_BYTES);
      wgmma_rs<0>(o, x[j].small, big, 1, f32());
      wgmma_rs<0>(o, x[j].big, small, 1, f32());
      wgmma_rs<0>(o, x[j].big, big, 1, f32());
    }
    wgmma_commit();
    if (i + C::BATCH < C::BN / 8) wgmma_wait_operands<1>();
  }
  wgmma_wait<0>(o);
}

/* make_logits without a bias, for which there are no registers. */
template <class C>
FA_DEVICE void hopper_tf32_logits(typename C::score_tile &s, const fa_attention_params &p,
                                  const sequence &seq, int row, int key) {
  const float scale = p.scale * p.score_sign;
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const row_limits limits = limits_of_row<true>(p, seq, row + 8 * r);
    const int lo = limits.lo - key, hi = limits.hi - key;
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 2; ++e) {
        float &x = s[n][2 * r + e];
        x = 8 * n + e >= lo && 8 * n + e < hi ? x * scale : -infinity();
      }
    }
  }
}

/* From raw scores to weights, with O rescaled. first_row: the group's first. */
template <class C>
FA_DEVICE void hopper_tf32_softmax(typename C::score_tile &s, typename C::output_tile &o,
                                   row_state (&rows)[2], const fa_attention_params &p, const memeff_coord &t,
                                   int first_row, int row, int key0, int lane) {
  if (keys_need_mask<true>(p, t.seq, first_row, min_int(first_row + 64, t.seq.len_q), key0, key0 + C::BN)) {
    hopper_tf32_logits<C>(s, p, t.seq, row, key0 + lane % 4 * 2);
  } else {
    scale_scores(s, p.scale * p.score_sign);
  }
  memeff_softmax<C>(s, o, rows);
}

template <class C>
FA_DEVICE void hopper_tf32_consume(const fa_attention_params &p, const memeff_coord &t, block_range blocks,
                                   int row0, int thread) {
  typedef hopper_tf32_barriers<C> bar;
  const int group = thread / 128, lane = thread % 32, first_row = row0 + 64 * group,
            row = first_row + thread % 128 / 32 * 16 + lane / 4;
  const uint32_t q_small = shared_base() + 64 * 128 * group;
  hopper_tf32_q<C::D> q;
  hopper_tf32_load_q<C>(q, q_rows(p, t), row, q_small, thread);
  fence_async();
  named_sync<128>(1 + group); /* the small parts are the group's own */
  block_range seen = {0, 0};
  if (first_row < t.seq.len_q)
    seen = visible_blocks<C::BN, true>(p, t.seq, first_row, min_int(first_row + 64, t.seq.len_q));

  typename C::output_tile o = {};
  row_state rows[2];
  pipeline_state<C::STAGES> at;
  FA_NO_UNROLL
  for (int block = blocks.begin; block < blocks.end; ++block, at.next()) {
    const int stage = at.stage();
    const bool sees = block >= seen.begin && block < seen.end;
    mbarrier_wait(bar::k_full(stage), at.phase());
    if (!sees) {
      sync_warp(); /* all lanes must see this phase before the barrier can complete the next */
      hopper_release(bar::k_empty(stage), thread);
      mbarrier_wait(bar::v_full(stage), at.phase());
      sync_warp();
      hopper_release(bar::v_empty(stage), thread);
      continue;
    }
    typename C::score_tile s;
    hopper_tf32_scores<C>(s, q, q_small, hopper_tf32_k<C>(stage));
    hopper_release(bar::k_empty(stage), thread);
    hopper_tf32_softmax<C>(s, o, rows, p, t, first_row, row, block * C::BN, lane);
    mbarrier_wait(bar::v_full(stage), at.phase());
    hopper_tf32_values<C>(o, s, hopper_tf32_v<C>(stage));
    hopper_release(bar::v_empty(stage), thread);
  }
  write_rows<C>(p, t, o, rows, row, 0, lane);
}

/* Grid: x over row blocks, y over query heads, z over the batch. */
template <class C> FA_DEVICE void hopper_tf32_forward(const fa_attention_params &p) {
  const int thread = static_cast<int>(threadIdx.x);
  const grid_place place = longest_first_coord(p);
  const memeff_coord t = load_memeff_coord(p, place.batch, place.head);
  /* under a causal mask the last rows see the most keys */
  const int row0 = (static_cast<int>(gridDim.x) - 1 - place.block) * C::BM;
  if (row0 >= t.seq.len_q) return;
  const block_range blocks = visible_blocks<C::BN, true>(p, t.seq, row0, min_int(row0 + C::BM, t.seq.len_q));
  if (thread == 0) hopper_tf32_init_barriers<C>();
  sync_block();
  if (uniform(thread / 128) == C::GROUPS) {
    registers_down<C::PRODUCER_REGISTERS>();
    hopper_tf32_produce<C>(p, t, blocks, thread % 128);
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    hopper_tf32_consume<C>(p, t, blocks, row0, thread);
  }
}

} // namespace fa

#endif
