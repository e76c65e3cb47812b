/* The f32 backward for sm_90a: a block has 128 keys of one KV head, each of two warpgroups 64 of them; a third one produces
 * what they multiply by (tf32_produce.cuh). dK and dV stay in registers; dQ is added in memory, after prepare has cleared it.
 * What gpu/kernels/memeff/backward_single.cuh does by other MMAs, for the calls that this one cannot do. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_TF32_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_TF32_CUH

#include "gpu/kernels/hopper_backward/tf32_produce.cuh"
#include "gpu/kernels/hopper_backward/tf32_products.cuh"

namespace fa {

/* Starts copying the group's rows of K or V. */
template <class C>
FA_DEVICE void hopper_tf32_copy_keys(uint32_t tile, const memeff_rows &from, int key0, int thread) {
  constexpr int QUADS = C::D / 4;
  FA_NO_UNROLL
  for (int i = thread % 128; i < C::KEYS * QUADS; i += 128) {
    const int row = i / QUADS, quad = i % QUADS, key = key0 + row;
    const bool exists = key < from.n_rows;
    cp_async16(tile + quad / 8 * C::KEY_PANEL + row * 128 + ((quad % 8 ^ row % 8) << 4),
               static_cast<const float *>(from.base) + from.first +
                   (exists ? key * from.stride + quad * 4 : 0),
               exists);
  }
}

/* What a consumer knows of its group and its place in it. */
struct hopper_tf32_consumer {
  int thread, group, key0, key; /* keys: the group's first, the lane's first */
  block_range blocks;           /* steps with a row that sees a key of the group */
};

template <class C>
FA_DEVICE hopper_tf32_consumer hopper_tf32_consumer_of(const fa_attention_params &f, const memeff_coord &t,
                                                       int key0, int thread) {
  const int group = thread / 128, first = key0 + C::KEYS * group;
  hopper_tf32_consumer c = {thread, group, first, first + thread % 128 / 32 * 16 + thread % 32 / 4, {0, 0}};
  if (first < t.seq.len_k)
    c.blocks = query_blocks_of_keys<C::BN>(f, t.seq, first, min_int(first + C::KEYS, t.seq.len_k));
  return c;
}

/* From raw S and dP to P and dS. */
template <class C>
FA_DEVICE void hopper_tf32_pairs(typename C::score_tile &s, typename C::score_tile &dp,
                                 const fa_memeff_backward_params &p, const memeff_coord &t,
                                 const hopper_tf32_consumer &c, int row0, unsigned step) {
  const int lane = c.thread % 32, warp_key = c.key - lane / 4, row = row0 + lane % 4 * 2;
  const uint32_t values = C::values(step) + lane % 4 * 8;
  if (keys_need_mask<true>(p.forward, t.seq, row0, min_int(row0 + C::BN, t.seq.len_q), warp_key,
                           warp_key + 16))
    plain_gradients<C, true>(s, dp, p, t, c.key, row, values);
  else
    plain_gradients<C, false>(s, dp, p, t, c.key, row, values);
}

/* Adds 64 columns of dQ of a step. */
template <class C>
FA_DEVICE void hopper_tf32_add_dq(const fa_memeff_backward_params &p, memeff_coord t,
                                  const typename C::score_tile &dq, int row0, int first_col, int thread) {
  const int lane = thread % 32, row = row0 + lane % 4 * 2,
            col = first_col + thread % 128 / 32 * 16 + lane / 4 * 2;
  t.batch = opaque(t.batch);
  float *const to = static_cast<float *>(p.dq) + row_at(p.dq_stride, t, row) + col;
  FA_UNROLL
  for (int n = 0; n < C::BN / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      if (row + 8 * n + e >= t.seq.len_q) continue;
      const float x[2] = {dq[n][e] * p.scale, dq[n][2 + e] * p.scale};
      atomic_add2(to + (8 * n + e) * p.dq_stride.row, x);
    }
  }
}

/* One step. slot: of its first tile. */
template <class C>
FA_DEVICE void hopper_tf32_step(typename C::key_tile &dk, typename C::key_tile &dv,
                                const fa_memeff_backward_params &p, const memeff_coord &t,
                                const hopper_tf32_consumer &c, int row0, pipeline_state<C::SLOTS> &slot) {
  const int thread = c.thread;
  const auto here = [&] {
    return opaque(thread);
  }; /* addresses are made where they are needed: no registers are left */
  const auto nothing = [] {};
  const auto take = [&] { /* waits for the next tile */
                          mbarrier_wait(C::full(slot.stage()), slot.phase());
                          return C::slot(slot.stage());
  };
  const auto give_before = [&] { hopper_release(C::empty(slot.before().stage()), thread); };
  hopper_tf32_operands<C> a;
  typename C::score_tile s, ds;
  hopper_tf32_products<C, C::D / 8, C::ROW_PANEL, C::PART_BYTES, false>(
      s, a, take(), hopper_tf32_key_rows<C>(C::k(c.group), here()), nothing);
  slot.next();
  hopper_tf32_products<C, C::D / 8, C::ROW_PANEL, C::PART_BYTES, false>(
      ds, a, take(), hopper_tf32_key_rows<C>(C::v(c.group), here()), give_before);
  wgmma_wait<0>(s);
  pin(ds);
  hopper_release(C::empty(slot.stage()), thread);
  slot.next();
  hopper_tf32_pairs<C>(s, ds, p, t, c, row0, slot.n / 4);
  hopper_tf32_products<C, C::BN / 8, C::COL_PANEL, C::PART_BYTES, true>(dv, a, take(),
                                                                        hopper_tf32_weights<C>(s), nothing);
  slot.next();
  /* All have dQ of the step before. With fewer tiles of room than a step has, the wait for this one sees to it as well. */
  named_sync<128>(1 + c.group);
  hopper_tf32_products<C, C::BN / 8, C::COL_PANEL, C::PART_BYTES, true>(
      dk, a, take(), hopper_tf32_gradients<C>(ds, C::ds(c.group), here()), give_before);
  slot.next();
  fence_async();
  named_sync<128>(1 + c.group); /* dS is there */
  FA_UNROLL
  for (int col = 0; col < C::D; col += 64) {
    typename C::score_tile dq;
    hopper_tf32_products<C, C::KEYS / 8, C::DS_PANEL, C::DS_PART, false>(
        dq, a, C::ds(c.group), hopper_tf32_key_cols<C>(C::k(c.group), col, here()), [&] {
          if (col == 0) give_before();
        });
    wgmma_wait<0>(dq);
    hopper_tf32_add_dq<C>(p, t, dq, row0, col, here());
  }
}

/* Passes over a step. All lanes must see every phase before its barrier can complete the next. */
template <class C> FA_DEVICE void hopper_tf32_pass(pipeline_state<C::SLOTS> &slot, int thread) {
  FA_NO_UNROLL
  for (int i = 0; i < 4; ++i, slot.next()) {
    mbarrier_wait(C::full(slot.stage()), slot.phase());
    sync_warp();
    hopper_release(C::empty(slot.stage()), thread);
  }
}

/* Stores dK or dV of the group's keys. to: the sequence's first key. */
template <class C>
FA_DEVICE void hopper_tf32_store_keys(float *to, int64_t stride, const typename C::key_tile &x, float factor,
                                      int key, int len_k, int lane) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (key + 8 * r >= len_k) continue;
    float *const row = to + (key + 8 * r) * stride + lane % 4 * 2;
    FA_UNROLL
    for (int n = 0; n < C::D / 8; ++n)
      store_global(reinterpret_cast<vec2 *>(row + 8 * n),
                   vec2{float_bits(x[n][2 * r] * factor), float_bits(x[n][2 * r + 1] * factor)});
  }
}

FA_DEVICE float *hopper_tf32_keys_of(void *to, const fa_kernel_strides &s, const memeff_coord &t) {
  return static_cast<float *>(to) + t.batch * s.batch + t.kv_head * s.head + t.seq.k_row * s.row;
}

template <class C>
FA_DEVICE void hopper_tf32_backward_consume(const fa_memeff_backward_params &p, memeff_coord t,
                                            const hopper_tf32_steps &steps, int key0, int thread) {
  const hopper_tf32_consumer c = hopper_tf32_consumer_of<C>(p.forward, t, key0, thread);
  hopper_tf32_copy_keys<C>(C::k(c.group), k_rows(p.forward, t), c.key0, thread);
  hopper_tf32_copy_keys<C>(C::v(c.group), v_rows(p.forward, t), c.key0, thread);
  cp_async_commit();
  cp_async_wait<0>();
  named_sync<128>(1 + c.group); /* the copies are the group's own */
  typename C::key_tile dk = {}, dv = {};
  pipeline_state<C::SLOTS> slot;
  walk at = steps.first();
  FA_NO_UNROLL
  for (; steps.has(at); at = next_of(at, steps.blocks)) {
    t.head = at.head;
    if (at.m >= c.blocks.begin && at.m < c.blocks.end)
      hopper_tf32_step<C>(dk, dv, p, t, c, at.m * C::BN, slot);
    else
      hopper_tf32_pass<C>(slot, thread);
  }
  wgmma_wait<0>(dk);
  pin(dv);
  hopper_tf32_store_keys<C>(hopper_tf32_keys_of(p.dk, p.dk_stride, t), p.dk_stride.row, dk, p.scale, c.key,
                            t.seq.len_k, thread % 32);
  hopper_tf32_store_keys<C>(hopper_tf32_keys_of(p.dv, p.dv_stride, t), p.dv_stride.row, dv, 1.0f, c.key,
                            t.seq.len_k, thread % 32);
}

/* Grid: x over key blocks, y over KV heads, z over the batch. */
template <class C> FA_DEVICE void hopper_tf32_backward(const fa_memeff_backward_params &p) {
  const fa_attention_params &f = p.forward;
  const int thread = static_cast<int>(threadIdx.x);
  const grid_place place = longest_first_coord(f);
  const int key0 = place.block * C::BM; /* under a causal mask most rows see the first keys */
  const memeff_coord t = load_memeff_coord(f, place.batch, place.head * f.heads_per_kv);
  clear_masked<C>(p, t, p.dk, p.dk_stride, C::D, key0, 0, thread);
  clear_masked<C>(p, t, p.dv, p.dv_stride, C::D, key0, 0, thread);
  if (key0 >= t.seq.len_k) return;
  hopper_tf32_steps steps = {query_blocks_of_keys<C::BN>(f, t.seq, key0, min_int(key0 + C::BM, t.seq.len_k)),
                             t.head, t.head + f.heads_per_kv};
  if (steps.blocks.end <= steps.blocks.begin) steps.end_head = t.head;
  if (thread == 0) hopper_tf32_backward_init_barriers<C>();
  sync_block();
  if (uniform(thread / 128) == C::GROUPS) {
    registers_down<C::PRODUCER_REGISTERS>();
    hopper_tf32_backward_produce<C>(p, t, steps, thread % 128);
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    hopper_tf32_backward_consume<C>(p, t, steps, key0, thread);
  }
}

} // namespace fa

#endif
