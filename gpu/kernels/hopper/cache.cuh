/* Forward kernels for sm_90a over a KV cache: the mainloop of forward.cuh, with a producer that follows page tables, and
 * tiles whose rows are those of several query heads of a KV head. So a row that decodes fills more of a tile, and the
 * heads that share keys share their loads. */
#ifndef FA_GPU_KERNELS_HOPPER_CACHE_CUH
#define FA_GPU_KERNELS_HOPPER_CACHE_CUH

#include "gpu/kernels/hopper/cache_produce.cuh"
#include "gpu/kernels/hopper/cache_store.cuh"

namespace fa {

template <class C> FA_DEVICE void hopper_cache_consume(const fa_hopper_cache_params &p, int group, int thread) {
  hopper_consumer<C> c = {group, thread, {}, {}, {}};
  FA_NO_UNROLL
  for (;; c.tile_pipe.next()) {
    work_tile work = fetch_work_tile<C>(p.f, c.tile_pipe);
    if (work.row0 < 0) break;
    work.pack = p.pack;
    const block_range own = hopper_group_blocks<C>(p.f, work, group);
    if (own.begin < own.end) {
      float o[C::D / 8][4] = {};
      row_state rows[2];
      hopper_mainloop<C>(c, o, rows, p.f, work, own);
      work_tile again = read_work_tile<C>(p.f, c.tile_pipe); /* rather than kept in registers */
      again.pack = p.pack;
      hopper_cache_epilogue<C>(p, o, rows, again, group, opaque(thread));
    } else if (work.blocks.begin >= work.blocks.end) {
      hopper_store_masked_rows<C>(p.f, work, group, thread);
    } else {
      hopper_pass_work_tile<C>(c, work);
    }
    sync_warp();
    hopper_release(hopper_barriers<C>::tile_empty(c.tile_pipe.stage()), thread);
  }
  if (!C::DIRECT && thread % 32 == 0) tma_store_wait_read<0>(); /* shared memory must outlive the stores that
                                                                   read it */
}

/* Grid: x as many blocks as multiprocessors, or as work tiles if those are fewer. */
template <class C> FA_DEVICE void hopper_cache_forward(const fa_hopper_cache_params &p) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128;
  if (thread == 0) hopper_init_barriers<C>();
  sync_block();
  if (group == 0) {
    registers_down<C::PRODUCER_REGISTERS>();
    hopper_cache_produce<C>(p, uniform(thread / 32), thread % 32);
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    hopper_cache_consume<C>(p, uniform(group - 1), thread % 128);
  }
}

} // namespace fa

#endif
