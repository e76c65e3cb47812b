/* How dQ of a step gets to memory. Either the consumers add it themselves, 16 bytes at a time, or (DQ_COPIES) they leave it in
 * shared memory, and two warps of the producers add it from there with bulk copies, a warp for each group. That costs the
 * consumers neither addresses nor waits for memory. In deterministic calls those warps also keep the order in which blocks
 * add. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_DQ_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_DQ_CUH

#include "gpu/kernels/hopper_backward/config.cuh"

namespace fa {

/* Where 16 rows of a group's columns of dQ begin in the accumulator, whose tiles have the order of the registers. first: column
 * of the group. */
template <class C>
FA_DEVICE float *hopper_dq_accumulator(const fa_backward_params &p, int head, int row0, int group, int warp,
                                       int first) {
  const int row = row0 + (C::BM == 64 ? 0 : 64 * group) + 16 * warp;
  const int chunk = (C::BM == 64 ? group * (C::DQ_FIRST / 8) : 0) + first / 8;
  return p.dq_accum + (C::SPLITS ? own_accumulator(p) : 0) +
         workspace_row<C::D>(p, static_cast<int>(blockIdx.z), head, row) * C::D + chunk * 128;
}

/* Adds the group's part of dQ, or its columns from `first` on. */
template <class C, int TILES>
FA_DEVICE void hopper_atomic_add_dq(const fa_backward_params &p, const float (&dq)[TILES][4], int head,
                                    int row0, int group, int thread, int first) {
  float *to = hopper_dq_accumulator<C>(p, head, row0, group, thread / 32, first) + thread % 32 * 4;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n) atomic_add4(to + n * 128, dq[n]);
}

/* A warp's place in shared memory for its 16 rows. */
template <class C> FA_DEVICE uint32_t hopper_dq_place(int group, int warp) {
  return shared_base() + C::DQ_AT + (4 * group + warp) * C::DQ_PLACE_BYTES;
}

/* Leaves dQ of step n there, or its columns from `first` on; then hopper_release_dq tells the copying warp. */
template <class C, int TILES>
FA_DEVICE void hopper_stage_dq(const float (&dq)[TILES][4], unsigned n, int group, int thread, int first) {
  mbarrier_wait(hopper_backward_all_barriers<C>::dq_empty(group), static_cast<int>(n % 2) ^ 1);
  const uint32_t to = hopper_dq_place<C>(group, thread / 32) + first * 64 + thread % 32 * 16;
  FA_UNROLL
  for (int i = 0; i < TILES; ++i)
    store_shared16(to + i * 512, vec4{float_bits(dq[i][0]), float_bits(dq[i][1]), float_bits(dq[i][2]),
                                      float_bits(dq[i][3])});
}
template <class C> FA_DEVICE void hopper_release_dq(int group, int thread) {
  fence_async();
  sync_warp();
  hopper_release(hopper_backward_all_barriers<C>::dq_full(group), thread);
}

/* The semaphore of a row tile, or of a group's columns of it. */
template <class C>
FA_DEVICE unsigned *hopper_dq_semaphore_of(const fa_backward_params &p, int batch, int head, int tile,
                                           int group) {
  return p.dq_semaphore + workspace_row<C::D>(p, batch, head, tile * C::BM) / FA_DQ_SEMAPHORE_ROWS + group;
}

/* True if key block + 1, which adds before this one, visits the row tile too. By the masks by position, the
 * key blocks that visit a row tile are contiguous. */
template <class C> FA_DEVICE bool hopper_has_predecessor(const fa_backward_params &p, int block, int tile) {
  const hopper_key_tile next = hopper_load_key_tile<C>(p, block + 1);
  return next.key0 < next.seq.len_k && next.blocks.begin <= tile && tile < next.blocks.end;
}

/* Adds a group's dQ of one row tile from shared memory, a lane each warp's rows. */
template <class C>
FA_DEVICE void hopper_copy_dq(const fa_backward_params &p, int head, int tile, int group, int lane) {
  if (lane < 4) {
    bulk_add(hopper_dq_accumulator<C>(p, head, tile * C::BM, group, lane, 0), hopper_dq_place<C>(group, lane),
             (group == 0 ? C::DQ_FIRST : C::DQ_SECOND) * 64);
    tma_store_commit();
    tma_store_wait_read<0>();
  }
  sync_warp();
  if (lane == 0) mbarrier_arrive(hopper_backward_all_barriers<C>::dq_empty(group));
}

/* One warp for each group. In a deterministic call a block's addition to a row tile comes after that of the block with the next
 * keys; there is no deadlock, as that one has the blockIdx.x before, started earlier and visits the same row tiles in the same
 * order. */
template <class C> FA_DEVICE void hopper_backward_copy_dq(const fa_backward_params &p, int group, int lane) {
  const hopper_key_blocks<C> keys;
  const int block = keys.block(), batch = static_cast<int>(blockIdx.z);
  const bool ordered = C::DQ_SEMAPHORE && p.dq_semaphore;
  if (!keys.is_there(p.forward)) return;
  unsigned n = 0;
  FA_NO_UNROLL
  for (int i = 0; i < p.forward.heads_per_kv; ++i) {
    const int head = static_cast<int>(blockIdx.y) * p.forward.heads_per_kv + i;
    const block_range tiles = hopper_load_key_tile<C>(p, opaque(block)).blocks;
    FA_NO_UNROLL
    for (int tile = tiles.begin; tile < tiles.end; ++tile, ++n) {
      mbarrier_wait(hopper_backward_all_barriers<C>::dq_full(group), static_cast<int>(n % 2));
      if (ordered) {
        if (lane == 0 && hopper_has_predecessor<C>(p, opaque(block), tile))
          semaphore_wait(hopper_dq_semaphore_of<C>(p, batch, head, tile, group),
                         static_cast<unsigned>(block) + 2);
        sync_warp();
      }
      hopper_copy_dq<C>(p, head, tile, group, lane);
      if (ordered) {
        tma_store_wait();
        sync_warp();
        if (lane == 0)
          semaphore_release(hopper_dq_semaphore_of<C>(p, batch, head, tile, group),
                            static_cast<unsigned>(block) + 1);
      }
    }
  }
}

} // namespace fa

#endif
