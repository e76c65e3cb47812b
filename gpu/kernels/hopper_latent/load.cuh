/* What a block of latent attention works on, and how that comes to shared memory: the keys by one thread with bulk
 * copies, Q by all. */
#ifndef FA_GPU_KERNELS_HOPPER_LATENT_LOAD_CUH
#define FA_GPU_KERNELS_HOPPER_LATENT_LOAD_CUH

#include "gpu/kernels/cache/pipeline.cuh"
#include "gpu/kernels/hopper_latent/config.cuh"

namespace fa {

/* Grid: x over blocks of rows and splits, blocks of rows fastest: those that read the same keys run together. */
template <class C> FA_DEVICE cache_work_tile load_latent_work_tile(const fa_cache_params &p) {
  const int block = opaque(static_cast<int>(blockIdx.x)), row_blocks = static_cast<int>(gridDim.x) / p.n_splits;
  const int split = block / row_blocks;
  return find_cache_work_tile<C>(p, block - split * row_blocks, split);
}

/* Tiles of keys. */
template <class C> FA_DEVICE int latent_tiles(const cache_work_tile &work) {
  return work.hi > work.lo ? (work.hi + C::BN - 1) / C::BN - work.first_block : 0;
}

/* What the scores' group has no registers for: the sequence, the block's packed rows, the keys that are loaded, and those
 * that all rows see. */
enum latent_number {
  LATENT_PAD,
  LATENT_LEN,
  LATENT_DIAGONAL,
  LATENT_ROW0,
  LATENT_LAST_ROW,
  LATENT_LO,
  LATENT_HI,
  LATENT_ALL_LO,
  LATENT_ALL_HI,
  LATENT_KEY0 /* of the first tile */
};

template <class C> FA_DEVICE int load_latent(latent_number which) {
  return static_cast<int>(load_shared4(shared_base() + C::NUMBERS_AT + 4 * which));
}
template <class C> FA_DEVICE void store_latent(latent_number which, int x) {
  store_shared4(shared_base() + C::NUMBERS_AT + 4 * which, static_cast<uint32_t>(x));
}
template <class C>
FA_DEVICE void store_latent_numbers(const fa_cache_params &p, const cache_work_tile &work) {
  const int last = work.row0 + work.n_rows - 1;
  store_latent<C>(LATENT_PAD, work.seq.pad);
  store_latent<C>(LATENT_LEN, work.seq.len);
  store_latent<C>(LATENT_DIAGONAL, work.seq.diagonal);
  store_latent<C>(LATENT_ROW0, work.row0);
  store_latent<C>(LATENT_LAST_ROW, last);
  store_latent<C>(LATENT_LO, work.lo);
  store_latent<C>(LATENT_HI, work.hi);
  store_latent<C>(LATENT_ALL_LO, limits_of_cache_row<false>(p, work.seq, last / p.heads_per_kv).lo);
  store_latent<C>(LATENT_ALL_HI, limits_of_cache_row<false>(p, work.seq, work.row0 / p.heads_per_kv).hi);
  store_latent<C>(LATENT_KEY0, work.first_block * C::BN);
}

/* Where a chunk of 8 columns of a row of Q is put. */
template <class C> FA_DEVICE uint32_t latent_q_chunk(int row, int chunk) {
  const int panel = chunk / 8;
  if (chunk / 2 == C::Q_STEPS) return shared_base() + C::Q_STEP_AT + row * 32 + ((chunk % 2 ^ row / 4 % 2) << 4);
  return shared_base() + (panel == C::PANELS - 1 ? C::Q_LAST_AT : C::Q_AT + panel * C::PANEL) +
         tile_offset<64>(row, chunk % 8);
}

/* Loads all rows of Q, times the sign of the scale. Rows that do not exist become zeros. All threads. */
template <class C>
FA_DEVICE void load_latent_q(const fa_cache_params &p, const cache_work_tile &work, int thread) {
  constexpr int CHUNKS = C::D / 8;
  static_assert(C::BM * CHUNKS % C::THREADS == 0, "an equal share for each");
  const uint32_t keep = p.score_sign == 0.0f ? 0 : 0xffffffffu, flip = p.score_sign < 0.0f ? 0x80008000u : 0;
  FA_UNROLL_BY(4)
  for (int n = 0; n < C::BM * CHUNKS / C::THREADS; ++n) {
    const int i = thread + n * C::THREADS, row = i / CHUNKS, chunk = i - row * CHUNKS;
    vec4 v = {0, 0, 0, 0};
    if (row < work.n_rows) {
      const packed_row at = unpack_row(p, work.kv_head, work.row0 + row);
      v = load_chunk<true>(p.q + work.batch * p.q_stride.batch + at.head * p.q_stride.head +
                           (work.seq.q_row + at.row) * p.q_stride.row + chunk * 8);
    }
    store_shared16(latent_q_chunk<C>(row, chunk),
                   vec4{(v.x & keep) ^ flip, (v.y & keep) ^ flip, (v.z & keep) ^ flip, (v.w & keep) ^ flip});
  }
  fence_async();
  named_sync<C::THREADS>(1);
}

/* Where the keys of a work tile are loaded from. One thread has it. */
template <class C> struct latent_producer {
  typedef latent_barriers<C> bar;
  const fa_hopper_latent_params &p;
  int page; /* of the next tile; without pages the row of the cache, for all */

  FA_DEVICE void find_page(const cache_work_tile &work, int i) {
    const fa_cache_params &c = p.c;
    if (!c.block_table)
      page = c.cache_batch_idx ? load_global(c.cache_batch_idx + work.batch) : work.batch;
    else if (i < latent_tiles<C>(work))
      page = load_global(c.block_table + work.batch * c.table_stride +
                         page_of_key(c, (work.first_block + i) * C::BN));
  }
  /* Loads tile i, if there is one, as soon as its stage is empty, and looks up where the next one is. */
  FA_DEVICE void load(const cache_work_tile &work, int i) {
    if (i >= latent_tiles<C>(work)) return;
    const pipeline_state<C::STAGES> pipe = {static_cast<unsigned>(i)};
    const int key = (work.first_block + i) * C::BN;
    const int slot = p.c.block_table ? key - page_of_key(p.c, key) * p.c.page_size : key;
    mbarrier_wait(bar::empty(pipe.stage()), pipe.phase() ^ 1);
    if (i == C::STAGES - 1) mbarrier_wait(bar::q_taken(), 0);
    FA_NO_UNROLL
    for (int part = 0; part < C::PARTS; ++part) {
      const uint32_t to = shared_base() + pipe.stage() * C::STAGE_BYTES + part * (C::PART_PANELS * C::PANEL);
      hopper_load_panels<C::PART_PANELS, C::PANEL, C::RANKS>(to, &p.k, bar::full(pipe.stage(), part),
                                                             part * C::PART_PANELS, slot, work.kv_head, page);
    }
    find_page(work, i + 1);
  }
};

} // namespace fa

#endif
