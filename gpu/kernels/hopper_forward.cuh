/* The flash forward kernel for sm_90a: one producer warpgroup, of which one thread issues bulk copies, and
 * GROUPS consumer warpgroups of 64 query rows each, on row blocks that a persistent grid shares out.
 *
 *   consumer, per key block j, from the last visible one down:
 *     issue S' = Q K_j^T (shared operands), issue O += P V_(j+1) (P from registers)
 *     wait for S'; release K_j; softmax of S', while the other product and other warpgroups' go on
 *     wait for O; release V_(j+1); shrink O; P = S' in 16 bits
 *
 * TURNS: the warpgroups issue their products in turns, so that the softmax of one falls into the products of
 * another.
 *
 * LAZY: 1: O is multiplied only where a row of the warp has a new maximum. 2: besides, the old maximum stays
 * while the new one is at most 2^8 above, so that weights are as large as 2^8; O and LSE are the same but for
 * rounding, of which only that of the maximum's multiple grows, by 8 2^-24: the bounds of LSE have room for
 * that many times over.
 *
 * Shared memory, tiles in panels of 64 columns (128 bytes, 128-byte swizzle): Q of each group, STAGES tiles
 * of K, STAGES of V, if APART O of each group, barriers. Else O leaves from registers, or by Q's place where
 * those are needed for something else. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_CUH

#include "gpu/kernels/hopper_forward_produce.cuh"
#include "gpu/kernels/hopper_forward_softmax.cuh"

namespace fa {

/* ---- consumers ---- */

/* What a consumer keeps from tile to tile. group: 0.. of the consumers; thread: 0..127 of the group. */
template <class C> struct hopper_consumer {
  int group, thread;
  hopper_ring<1> q;
  hopper_ring<C::STAGES> k; /* and, between tiles, of V */
};

/* Turns: a group waits for its own, and gives the next group the turn. Group 0 has the first. */
template <class C> FA_DEVICE void hopper_take_turn(int group) {
  if (C::TURNS) named_sync<256>(1 + group);
}
template <class C> FA_DEVICE void hopper_give_turn(int group) {
  if (C::TURNS) named_arrive<256>(1 + (group + 1 == C::GROUPS ? 0 : group + 1));
}

template <class C> FA_DEVICE void hopper_wait_for_q(hopper_consumer<C> &c) {
  mbarrier_wait(hopper_barriers<C>::q_full(c.group), c.q.parity());
  c.q.next();
}

/* s = Q K^T and o += P V, issued. */
template <class C> FA_DEVICE void hopper_scores(float (&s)[C::BN / 8][4], uint32_t q_tile, int stage) {
  hopper_multiply<C::D, C::Q_PANEL, C::KV_PANEL>(s, q_tile, shared_base() + C::K_AT + stage * C::KV_BYTES,
                                                 typename C::T());
}
template <class C>
FA_DEVICE void hopper_values(float (&o)[C::D / 8][4], const uint32_t (&weights)[C::BN / 16][4], int stage) {
  hopper_add<C::KV_PANEL>(o, weights, shared_base() + C::V_AT + stage * C::KV_BYTES, typename C::T());
}

/* A key block that other groups of the row block see, and this one does not. */
template <class C> FA_DEVICE void hopper_pass(hopper_consumer<C> &c) {
  typedef hopper_barriers<C> bar;
  hopper_take_turn<C>(c.group);
  hopper_give_turn<C>(c.group);
  mbarrier_wait(bar::k_full(c.k.stage()), c.k.parity());
  sync_warp(); /* before all lanes have seen the phase, it must not give way to the next */
  hopper_release(bar::k_empty(c.k.stage()), c.thread);
  mbarrier_wait(bar::v_full(c.k.stage()), c.k.parity());
  sync_warp();
  hopper_release(bar::v_empty(c.k.stage()), c.thread);
  c.k.next();
}

/* The i-th key block of the task, whose K has come. */
template <class C> FA_DEVICE flex_tile hopper_block(int stage, int i) {
  if (!C::FLEX) return flex_tile{i, FA_FLEX_FULL};
  const int entry = uniform(static_cast<int>(load_shared4(shared_base() + C::ENTRIES_AT + 4 * stage)));
  return flex_tile{entry >> 2, entry & 3};
}

/* Key blocks that some row of the group sees; all of the row block's if none does. */
template <class C>
FA_DEVICE block_range hopper_own_blocks(const fa_flash_params &p, const hopper_task &task, int row0) {
  block_range own = visible_blocks<C::BN>(p, task.seq, row0, row0 + 64);
  own.end = min_int(own.end, task.blocks.end);
  return own.begin < own.end ? own : task.blocks;
}

/* Do rows of other keys follow those of the task's last key block in its tile? Where the tensor ends, zeros
 * do. */
template <class C> FA_DEVICE bool hopper_is_ragged(const fa_flash_params &p, const hopper_task &task) {
  return C::VARLEN && (p.cu_seqlens_k || p.seqused_k) && task.blocks.end * C::BN > task.seq.len_k;
}

/* Then V has zeros instead: a weight of 0 times what stands there could be NaN. All consumers. */
template <class C>
FA_DEVICE void hopper_clear_values(const hopper_task &task, hopper_ring<C::STAGES> v, int group, int thread) {
  const int first = task.seq.len_k - (task.blocks.end - 1) * C::BN;
  const uint32_t tile = shared_base() + C::V_AT + v.stage() * C::KV_BYTES;
  mbarrier_wait(hopper_barriers<C>::v_full(v.stage()), v.parity());
  FA_NO_UNROLL
  for (int i = 128 * group + thread; i < (C::BN - first) * 8; i += 128 * C::GROUPS) {
    FA_UNROLL
    for (int panel = 0; panel < C::PANELS; ++panel)
      store_shared16(tile + panel * C::KV_PANEL + first * 128 + i * 16, vec4{0, 0, 0, 0});
  }
  fence_async();
  named_sync<128 * C::GROUPS>(1 + C::GROUPS);
}

/* Everything of a task that has keys. */
template <class C>
FA_DEVICE void hopper_attend(hopper_consumer<C> &c, float (&o)[C::D / 8][4], row_state (&rows)[2],
                             const fa_hopper_params &p, const hopper_task &task) {
  typedef hopper_barriers<C> bar;
  const uint32_t q_tile = shared_base() + c.group * C::Q_BYTES;
  const int row0 = task.row0 + 64 * c.group;
  const float slope = C::ALIBI ? alibi_slope(p.f, task.batch, task.head) : 0.0f;
  float s[1][C::BN / 8][4], shrink[2];
  uint32_t weights[C::BN / 16][4];

  const bool ragged = hopper_is_ragged<C>(p.f, task);
  const block_range own = C::PASSES && !ragged ? hopper_own_blocks<C>(p.f, task, row0) : task.blocks;
  int i = task.blocks.end - 1;
  FA_NO_UNROLL
  for (; C::PASSES && i >= own.end; --i) hopper_pass<C>(c);
  mbarrier_wait(bar::q_full(c.group), c.q.parity());
  mbarrier_wait(bar::k_full(c.k.stage()), c.k.parity());
  flex_tile block = hopper_block<C>(c.k.stage(), i);
  wgmma_fence();
  hopper_scores<C>(s[0], q_tile, c.k.stage());
  if (ragged) hopper_clear_values<C>(task, c.k, c.group, c.thread);
  wgmma_wait<0>(s[0]);
  hopper_release(bar::k_empty(c.k.stage()), c.thread);
  c.k.next();
  hopper_softmax<C>(s, rows, shrink, p.f, task, slope, row0, block, c.thread);
  hopper_weights<C>(weights, s[0], p.f, task, row0, block.tile * C::BN, C::DROPOUT ? opaque(c.thread) : 0);

  FA_NO_UNROLL
  while (--i >= own.begin) {
    const hopper_ring<C::STAGES> v = c.k.before();
    mbarrier_wait(bar::k_full(c.k.stage()), c.k.parity());
    block = hopper_block<C>(c.k.stage(), i);
    hopper_take_turn<C>(c.group);
    wgmma_fence();
    hopper_scores<C>(s[0], q_tile, c.k.stage());
    mbarrier_wait(bar::v_full(v.stage()), v.parity());
    wgmma_fence();
    hopper_values<C>(o, weights, v.stage());
    hopper_give_turn<C>(c.group);
    wgmma_wait<1>(s[0]);
    hopper_release(bar::k_empty(c.k.stage()), c.thread);
    hopper_softmax<C>(s, rows, shrink, p.f, task, slope, row0, block, c.thread);
    wgmma_wait<0>(o);
    hopper_release(bar::v_empty(v.stage()), c.thread);
    c.k.next();
    hopper_shrink<C>(o, shrink);
    hopper_weights<C>(weights, s[0], p.f, task, row0, block.tile * C::BN, C::DROPOUT ? opaque(c.thread) : 0);
  }
  if (!C::IN_Q) hopper_release(bar::q_empty(c.group), c.thread);
  const hopper_ring<C::STAGES> v = c.k.before();
  mbarrier_wait(bar::v_full(v.stage()), v.parity());
  wgmma_fence();
  hopper_values<C>(o, weights, v.stage());
  wgmma_wait<0>(o);
  hopper_release(bar::v_empty(v.stage()), c.thread);
  FA_NO_UNROLL
  for (; C::PASSES && i >= limits_of_row(p.f, task.seq, opaque(row0) - 64 * c.group).lo / C::BN; --i)
    hopper_pass<C>(c); /* to task.blocks.begin, worked out again */
  c.q.next();
}

FA_DEVICE float *hopper_lse(const fa_flash_params &p, const hopper_task &task, int row) {
  return p.lse + task.batch * p.lse_stride.batch + task.head * p.lse_stride.head +
         (task.seq.q_row + row) * p.lse_stride.row;
}

/* Those of a warp's 16 rows that exist, where another entry's follow. */
template <class C>
FA_DEVICE void hopper_copy_rows(const fa_flash_params &p, uint32_t tile, const hopper_task &task, int row0,
                                int lane) {
  uint16_t *const to = p.o + (task.seq.q_row + row0) * p.o_stride.row + task.head * p.o_stride.head;
  FA_NO_UNROLL
  for (int i = lane; i < 16 * (C::D / 8); i += 32) {
    const int row = i / (C::D / 8), chunk = i % (C::D / 8);
    if (row0 + row >= task.seq.len_q || chunk >= p.head_dim_v / 8) continue;
    const uint32_t from = tile + chunk / 8 * C::Q_PANEL + row * 128 + ((chunk % 8 ^ row % 8) << 4);
    store_global(reinterpret_cast<vec4 *>(to + row * p.o_stride.row + chunk * 8), load_shared16(from));
  }
}

/* Lane l of a quad has words 2l, 2l + 1 of four chunks of 16 bytes, a register each; then it has chunk l. */
FA_DEVICE void hopper_transpose(uint32_t (&w)[4], int lane) {
  FA_UNROLL
  for (int bit = 0; bit < 2; ++bit) {
    const bool high = lane >> bit & 1;
    FA_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int low_at = bit == 0 ? 2 * i : i, high_at = low_at + 1 + bit;
      const uint32_t other = float_bits(shfl_xor(as_float(high ? w[low_at] : w[high_at]), 1 + bit));
      if (high)
        w[low_at] = other;
      else
        w[high_at] = other;
    }
  }
}

/* The warp's rows of O from registers, times the factors of a thread's two. */
template <class C>
FA_DEVICE void hopper_write_rows(const fa_flash_params &p, const float (&o)[C::D / 8][4],
                                 const float (&factor)[2], const hopper_task &task, int row, int lane) {
  const int64_t first = task.batch * p.o_stride.batch + (task.seq.q_row + row) * p.o_stride.row +
                        task.head * p.o_stride.head + lane % 4 * 8;
  FA_UNROLL
  for (int i = 0; i < C::D / 32; ++i) {
    const bool in_head = 4 * i + lane % 4 < p.head_dim_v / 8;
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      uint32_t w[4];
      FA_UNROLL
      for (int n = 0; n < 4; ++n)
        w[n] = pack2(o[4 * i + n][2 * r] * factor[r], o[4 * i + n][2 * r + 1] * factor[r], typename C::T());
      hopper_transpose(w, lane);
      if (in_head && row + 8 * r < task.seq.len_q)
        store_global(reinterpret_cast<vec4 *>(p.o + first + 8 * r * p.o_stride.row + 32 * i),
                     vec4{w[0], w[1], w[2], w[3]});
    }
  }
}

/* Normalises, and stores the warp's 16 rows of O and LSE. What a store still reads of shared memory is waited
 * for before that is written again. */
template <class C>
FA_DEVICE void hopper_write(const fa_hopper_params &p, const float (&o)[C::D / 8][4],
                            const row_state (&rows)[2], const hopper_task &task, int group, int thread) {
  const int warp = thread / 32, lane = thread % 32, row0 = task.row0 + 64 * group + 16 * warp;
  const uint32_t tile = shared_base() + C::O_AT + group * C::Q_BYTES + warp * (16 * 128);
  float inverse[2];
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + lane / 4 + 8 * r;
    const float sum = quad_sum(rows[r].sum);
    inverse[r] = sum == 0.0f ? 0.0f : (C::DROPOUT ? p.f.dropout_scale : 1.0f) / sum;
    if (lane % 4 == 0 && row < task.seq.len_q)
      store_global(hopper_lse(p.f, task, row),
                   sum == 0.0f
                       ? p.f.empty_lse
                       : rows[r].max * (hopper_has_logits<C>(p.f) ? 1.0f : p.f.scale) + natural_log(sum));
  }
  if constexpr (C::DIRECT) {
    hopper_write_rows<C>(p.f, o, inverse, task, row0 + lane / 4, lane);
    return;
  }
  if (C::APART && lane == 0) tma_store_wait_read<0>();
  sync_warp();
  FA_UNROLL
  for (int r = 0; r < 2; ++r) hopper_store_row<C::Q_PANEL>(tile, o, inverse[r], r, lane, typename C::T());
  fence_async();
  sync_warp();
  if (C::VARLEN && p.f.cu_seqlens_q && row0 + 16 > task.seq.len_q) {
    hopper_copy_rows<C>(p.f, tile, task, row0, lane);
  } else if (lane == 0) {
    if (row0 < task.seq.len_q) {
      FA_UNROLL
      for (int i = 0; i < C::PANELS; ++i)
        tma_store(&p.o, tile + i * C::Q_PANEL, 64 * i, task.seq.q_row + row0, task.head,
                  hopper_plane(p.f, task));
    }
    tma_store_commit();
  }
}

template <class C> FA_DEVICE void hopper_consume(const fa_hopper_params &p, int group, int thread) {
  hopper_consumer<C> c = {group, thread, {}, {}};
  if (C::TURNS && group == C::GROUPS - 1) named_arrive<256>(1); /* the first turn */
  hopper_ring<2> told;
  FA_NO_UNROLL
  for (;;) {
    mbarrier_wait(hopper_barriers<C>::tile_full(told.stage()), told.parity());
    const uint32_t at = shared_base() + C::TILES_AT + 16 * told.stage();
    const int tile = uniform(static_cast<int>(load_shared4(at))),
              n_blocks = C::FLEX ? uniform(static_cast<int>(load_shared4(at + 4))) : 0;
    sync_warp();
    hopper_release(hopper_barriers<C>::tile_empty(told.stage()), c.thread);
    told.next();
    if (tile < 0) break;
    hopper_task task = hopper_load_task<C>(p, tile);
    if (C::FLEX) task.blocks = {0, n_blocks};
    float o[C::D / 8][4] = {};
    row_state rows[2];
    if (task.blocks.begin < task.blocks.end)
      hopper_attend<C>(c, o, rows, p, task);
    else if (C::IN_Q) /* O is about to take that place */
      hopper_wait_for_q<C>(c);
    /* Worked out again, rather than kept; where O fills the registers, that would take even more of them. */
    if (C::D > 128 && C::DIRECT)
      hopper_write<C>(p, o, rows, task, opaque(c.group), opaque(c.thread));
    else if (C::D > 128)
      hopper_write<C>(p, o, rows, task, c.group, c.thread);
    else
      hopper_write<C>(p, o, rows, hopper_load_task<C>(p, opaque(tile)), c.group, opaque(c.thread));
    if (C::IN_Q) {
      if (c.thread % 32 == 0) tma_store_wait_read<0>();
      sync_warp();
      hopper_release(hopper_barriers<C>::q_empty(c.group), c.thread);
    }
  }
  if (!C::DIRECT && c.thread % 32 == 0) tma_store_wait_read<0>(); /* shared memory ends with the block */
}

/* Grid: x over as many blocks as there are multiprocessors, or tiles if those are fewer. */
template <class C> FA_DEVICE void hopper_forward(const fa_hopper_params &p) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128;
  if (thread == 0) hopper_init_barriers<C>();
  sync_block();
  if (group == 0) {
    registers_down<C::PRODUCER_REGISTERS>();
    if (thread == 0) hopper_produce<C>(p);
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    hopper_consume<C>(p, group - 1, thread % 128);
  }
}

} // namespace fa

#endif
