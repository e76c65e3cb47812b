/* The mainloop of the forward kernels for sm_90a, of one consumer warpgroup (forward.cuh has the picture).
 *
 * A warpgroup's products occupy the tensor cores for as long as it takes to issue them, but for the last few; so what counts
 * is that the others' are issued meanwhile, and how long the softmax takes from the end of one issue to the next. Hence:
 *   turns       warpgroups issue in the order of their numbers (C::TURNS), so that their softmaxes do not coincide
 *   O           is rescaled, and P converted, among exponentials, in the slots that these leave
 *   the start   descriptors are one addition away from what stays in registers, the next K is waited for early
 *   masks       are a comparison of the key block with those that need none
 *
 * wgmma_wait<0> of O should come behind the first row's exponentials. ptxas hoists it as far as it may, which is up to a
 * branch: hence the wait for the next K in between (C::BY_ROW). Three warpgroups on 160 registers hide each other's waits,
 * and there it may be where it likes. The counter of key blocks is the same in all lanes, and the compiler must know it:
 * descriptors are computed from it between the GEMMs. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_MAINLOOP_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_MAINLOOP_CUH

#include "gpu/kernels/hopper/forward_softmax.cuh"

namespace fa {

/* What a consumer keeps from work tile to work tile. group: index of the consumer warpgroup; thread: 0..127
 * in the group. */
template <class C> struct hopper_consumer {
  int group, thread;
  pipeline_state<1> q;
  pipeline_state<C::STAGES> k; /* also V's, between work tiles */
  pipeline_state<2> tile_pipe;
};

/* Q's descriptor, and the low words of those of the first stages of K and V: all of an address is in them. */
struct hopper_descriptors {
  uint64_t q;
  uint32_t k, v;
};

/* Rows of a tile in panels, as A or B of A B^T; and as B of A B. */
FA_DEVICE uint64_t hopper_rows_descriptor(uint32_t tile) {
  return matrix_descriptor(tile, 16, 1024, FA_SWIZZLE_128);
}
template <class C> FA_DEVICE uint64_t hopper_v_descriptor(uint32_t tile) {
  return matrix_descriptor(tile, C::KV_PANEL, 1024, FA_SWIZZLE_128);
}

/* uniform: kept rather than made from the address of shared memory again, for which a loop would ask every time. */
template <class C> FA_DEVICE hopper_descriptors hopper_make_descriptors(int group) {
  const uint64_t k = hopper_rows_descriptor(shared_base() + C::K_AT),
                 v = hopper_v_descriptor<C>(shared_base() + C::V_AT);
  return {hopper_rows_descriptor(shared_base() + group * C::Q_BYTES),
          static_cast<uint32_t>(uniform(static_cast<int>(k))),
          static_cast<uint32_t>(uniform(static_cast<int>(v)))};
}

FA_DEVICE uint64_t hopper_with_low_word(uint64_t descriptor, uint32_t low) {
  return descriptor >> 32 << 32 | low;
}

/* Issue s = Q K^T and o += P V. */
template <class C>
FA_DEVICE void hopper_gemm_qk(float (&s)[C::BN / 8][4], const hopper_descriptors &d, int stage) {
  const uint32_t k = d.k + stage * (C::KV_BYTES >> 4);
  FA_UNROLL
  for (int i = 0; i < C::D * 64 / C::PANEL_COLUMNS / 16; ++i) /* of 32 bytes */
    wgmma_ss<0, 0>(
        s, descriptor_at(d.q, i / 4 * C::Q_PANEL + i % 4 * 32),
        hopper_with_low_word(hopper_rows_descriptor(0), k + ((i / 4 * C::KV_PANEL + i % 4 * 32) >> 4)), i > 0,
        typename C::ELEMENT());
  wgmma_commit();
}
template <class C>
FA_DEVICE void hopper_gemm_pv(float (&o)[C::D / 8][4], const uint32_t (&p_frag)[C::BN / 16][4],
                              const hopper_descriptors &d, int stage) {
  const uint32_t v = d.v + stage * (C::KV_BYTES >> 4);
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i)
    wgmma_rs<1>(o, p_frag[i], hopper_with_low_word(hopper_v_descriptor<C>(0), v + (i * 16 * 128 >> 4)), 1,
                typename C::T());
  wgmma_commit();
}

/* A group waits for its turn to issue, and gives it to the next one. Group 0 has the first. In a work tile all groups take as
 * many turns: one for each key block but the first. */
template <class C> FA_DEVICE void hopper_take_turn(int group) {
  if (C::TURNS) named_sync<256>(4 + C::GROUPS + group);
}
template <class C> FA_DEVICE void hopper_give_turn(int group) {
  if (C::TURNS) named_arrive<256>(4 + C::GROUPS + (group + 1 == C::GROUPS ? 0 : group + 1));
}
template <class C> FA_DEVICE void hopper_give_first_turn(int group) {
  if (group == C::GROUPS - 1) hopper_give_turn<C>(group);
}

/* Passes over a key block that other groups of the row block see and this one does not. turn: they take one for it. */
template <class C> FA_DEVICE void hopper_skip_key_tile(hopper_consumer<C> &c, bool turn) {
  typedef hopper_barriers<C> bar;
  if (turn) {
    hopper_take_turn<C>(c.group);
    hopper_give_turn<C>(c.group);
  }
  mbarrier_wait(bar::k_full(c.k.stage()), c.k.phase());
  sync_warp(); /* all lanes must see this phase before the barrier can complete the next */
  hopper_release(bar::k_empty(c.k.stage()), c.thread);
  mbarrier_wait(bar::v_full(c.k.stage()), c.k.phase());
  sync_warp();
  hopper_release(bar::v_empty(c.k.stage()), c.thread);
  /* Not waited for: what a block visits some group of it sees, which waits for the load and then gives the place back. */
  if constexpr (C::BIAS) hopper_release(bar::bias_empty(c.k.stage()), c.thread);
  c.k.next();
}

/* Adds the bias of a key block to its scaled scores, which makes them logits. */
template <class C>
FA_DEVICE void hopper_add_bias(float (&s)[C::BN / 8][4], float scale, pipeline_state<C::STAGES> k, int group,
                               int thread) {
  typedef hopper_barriers<C> bar;
  typename C::T t;
  const int warp = thread / 32, lane = thread % 32;
  const uint32_t first = shared_base() + C::BIAS_AT + k.stage() * C::BIAS_BYTES +
                         (64 * group + 16 * warp + lane % 16) * 128 + ((lane / 16 ^ lane % 8) << 4);
  mbarrier_wait(bar::bias_full(k.stage()), k.phase());
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i) {
    uint32_t pairs[4];
    ldmatrix_x4(pairs, (first ^ static_cast<uint32_t>(i % 4 * 32)) + i / 4 * C::BIAS_PANEL);
    hopper_add_bias_matrices(s, 2 * i, pairs, scale, t); /* of rows l/4, l/4 + 8 and keys 0..7, then 8..15 */
  }
  sync_warp();
  hopper_release(bar::bias_empty(k.stage()), thread);
}

/* The i-th key block of the work tile. Its K must have arrived. */
template <class C> FA_DEVICE flex_tile hopper_block(int stage, int i) {
  if (!C::FLEX) return flex_tile{i, FA_FLEX_FULL};
  const int entry = uniform(static_cast<int>(load_shared4(shared_base() + C::FLEX_TILES_AT + 4 * stage)));
  return flex_tile{entry >> 2, entry & 3};
}

/* Sequences may end where other keys follow in memory. */
template <class C> FA_DEVICE bool hopper_has_tails(const fa_attention_params &p) {
  return C::VARLEN && (C::CACHE || p.cu_seqlens_k || p.seqused_k);
}

/* True if the work tile's last key block is a ragged tail: its tile in shared memory also has rows past the
 * sequence's keys. (At the end of the tensor they are zeros.) end: the number of the key block behind it. */
template <class C>
FA_DEVICE bool hopper_is_ragged(const fa_attention_params &p, const work_tile &work, int end) {
  return hopper_has_tails<C>(p) && end * C::BN > work.seq.len_k;
}

/* Key blocks that some row of the group sees; empty if the group has no rows. All key blocks of the work tile
 * if its rows see none, or if all groups are needed to clear a ragged tail; flex kernels know whether there is one only when
 * the last tile of the list has come. Over a cache, where tiles of few rows are many, those with rows clear it. */
template <class C>
FA_DEVICE block_range hopper_group_blocks(const fa_attention_params &p, const work_tile &work, int group) {
  const int row0 = work.row0 + 64 * group;
  if (C::FLEX ? hopper_has_tails<C>(p)
              : !C::CACHE && !C::EIGHT && hopper_is_ragged<C>(p, work, work.blocks.end))
    return work.blocks;
  if (row0 >= hopper_n_rows<C>(work)) return {work.blocks.begin, work.blocks.begin};
  if (!C::SKIPS) return work.blocks;
  block_range own = visible_blocks<C::BN>(p, work.seq, row0, row0 + 64);
  own.end = min_int(own.end, work.blocks.end);
  return own.begin < own.end ? own : work.blocks;
}

/* The consumers that clear a ragged tail, all or those with rows, wait for each other. */
template <class C> FA_DEVICE void hopper_sync_clearing(int groups) {
  if (!C::CACHE || groups == C::GROUPS)
    named_sync<128 * C::GROUPS>(1 + C::GROUPS);
  else if (C::GROUPS == 2 || groups == 1)
    named_sync<128>(2 + C::GROUPS);
  else
    named_sync<256>(3 + C::GROUPS);
}

/* Writes zeros to V's ragged tail, in the key block before end: P is 0 there, but 0 times what the tail holds could be
 * NaN. All consumers call it, or over a cache all that have rows. */
template <class C>
FA_DEVICE void hopper_clear_ragged_v(const work_tile &work, int end, pipeline_state<C::STAGES> v, int group,
                                     int thread) {
  const int groups =
      C::CACHE ? min_int(C::GROUPS, (hopper_n_rows<C>(work) - work.row0 + 63) / 64) : C::GROUPS;
  const int first = work.seq.len_k - (end - 1) * C::BN;
  const uint32_t tile = shared_base() + C::V_AT + v.stage() * C::KV_BYTES;
  mbarrier_wait(hopper_barriers<C>::v_full(v.stage()), v.phase());
  FA_NO_UNROLL
  for (int i = 128 * group + thread; i < (C::BN - first) * 8; i += 128 * groups) {
    FA_UNROLL
    for (int panel = 0; panel < C::PANELS; ++panel)
      store_shared16(tile + panel * C::KV_PANEL + first * 128 + i * 16, vec4{0, 0, 0, 0});
  }
  fence_async();
  hopper_sync_clearing<C>(groups);
}

/* Waits for a block's V, and issues o += P V. */
template <class C>
FA_DEVICE void hopper_issue_pv(float (&o)[C::D / 8][4], const uint32_t (&p_frag)[C::BN / 16][4],
                               const hopper_descriptors &d, pipeline_state<C::STAGES> v) {
  mbarrier_wait(hopper_barriers<C>::v_full(v.stage()), v.phase());
  wgmma_fence();
  hopper_gemm_pv<C>(o, p_frag, d, v.stage());
}

/* All key blocks of the work tile that the group sees. */
template <class C>
FA_DEVICE void hopper_mainloop(hopper_consumer<C> &c, float (&o)[C::D / 8][4], row_state (&rows)[2],
                               const fa_attention_params &p, const work_tile &work, block_range own) {
  typedef hopper_barriers<C> bar;
  const hopper_descriptors d = hopper_make_descriptors<C>(c.group);
  const int row0 = work.row0 + 64 * c.group, begin = uniform(own.begin);
  const float slope = C::ALIBI ? alibi_slope(p, work.batch, work.head) : 0.0f;
  const block_range unmasked = hopper_unmasked_blocks<C>(p, work, row0);
  float s[1][C::BN / 8][4], shift[2], rescale[2];
  uint32_t p_frag[C::BN / 16][4], kept[2] = {0, 0};
  hopper_linear_row linear;
  if constexpr (C::LINEAR)
    linear = hopper_linear_begin(p, work.batch, work.head, row0 + score_row<C>(c.thread, 0), c.thread % 32);
  const auto drop = [&](int key_block) { /* before products are issued: until then scores take no registers */
    if constexpr (C::LINEAR)
      hopper_linear_kept<C::BN / 8>(kept, p, linear, key_block * C::BN, opaque(c.thread) % 32);
  };

  FA_NO_UNROLL
  for (int i = work.blocks.end; C::SKIPS && i > own.end; --i) hopper_skip_key_tile<C>(c, true);
  pipeline_state<C::STAGES> k = {static_cast<unsigned>(uniform(static_cast<int>(c.k.n)))};
  int i = uniform(own.end) - 1;
  mbarrier_wait(bar::q_full(c.group), c.q.phase());
  mbarrier_wait(bar::k_full(k.stage()), k.phase());
  flex_tile block = hopper_block<C>(k.stage(), i);
  wgmma_fence();
  hopper_gemm_qk<C>(s[0], d, k.stage());
  const int end = C::FLEX ? block.tile + 1 : work.blocks.end;
  if (hopper_is_ragged<C>(p, work, end)) hopper_clear_ragged_v<C>(work, end, k, c.group, c.thread);
  drop(block.tile);
  wgmma_wait<0>(s[0]);
  hopper_release(bar::k_empty(k.stage()), c.thread);
  if (!C::IN_Q && i == begin) hopper_release(bar::q_empty(c.group), c.thread);
  if constexpr (C::BIAS) hopper_add_bias<C>(s[0], p.scale, k, c.group, opaque(c.thread));
  hopper_logits<C>(s, p, {}, work, slope, row0, block, unmasked, c.thread);
  hopper_shifts<C>(s[0], shift, rescale, rows, p, {});
  FA_UNROLL
  for (int r = 0; r < 2; ++r) hopper_row_exp<C>(s[0], r, shift, rescale, rows, p, {});
  hopper_convert_p<C>(p_frag, s[0], p, work, row0, block.tile * C::BN, C::DROPOUT ? opaque(c.thread) : 0, kept);
  k.next();
  if (C::BY_ROW && i > begin) mbarrier_wait(bar::k_full(k.stage()), k.phase());

  FA_NO_UNROLL
  while (--i >= begin) {
    drop(i);
    const pipeline_state<C::STAGES> v = k.before();
    if (!C::BY_ROW) mbarrier_wait(bar::k_full(k.stage()), k.phase());
    block = hopper_block<C>(k.stage(), i);
    hopper_take_turn<C>(c.group);
    wgmma_fence();
    hopper_gemm_qk<C>(s[0], d, k.stage());
    hopper_issue_pv<C>(o, p_frag, d, v);
    hopper_give_turn<C>(c.group);
    wgmma_wait<1>(s[0]);
    hopper_release(bar::k_empty(k.stage()), c.thread);
    if (!C::IN_Q && i == begin) hopper_release(bar::q_empty(c.group), c.thread);
    if constexpr (C::BIAS) hopper_add_bias<C>(s[0], p.scale, k, c.group, opaque(c.thread));
    hopper_logits<C>(s, p, {}, work, slope, row0, block, unmasked, c.thread);
    hopper_shifts<C>(s[0], shift, rescale, rows, p, {});
    k.next();
    if (C::BY_ROW) {
      hopper_row_exp<C>(s[0], 0, shift, rescale, rows, p, {});
      if (i > begin) mbarrier_wait(bar::k_full(k.stage()), k.phase());
    }
    wgmma_wait<0>(o);
    hopper_release(bar::v_empty(v.stage()), c.thread);
    hopper_rescale<C>(o, rescale);
    if (!C::BY_ROW) hopper_row_exp<C>(s[0], 0, shift, rescale, rows, p, {});
    hopper_row_exp<C>(s[0], 1, shift, rescale, rows, p, {});
    hopper_convert_p<C>(p_frag, s[0], p, work, row0, block.tile * C::BN, C::DROPOUT ? opaque(c.thread) : 0, kept);
  }
  const pipeline_state<C::STAGES> v = k.before();
  hopper_issue_pv<C>(o, p_frag, d, v);
  wgmma_wait<0>(o);
  hopper_release(bar::v_empty(v.stage()), c.thread);
  c.k = k;
  c.q.next();
}

} // namespace fa

#endif
