/* Work tiles of the forward kernels for sm_90a, and the tile scheduler. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_WORK_TILE_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_WORK_TILE_CUH

#include "gpu/kernels/mods/blocks.cuh"
#include "gpu/kernels/hopper/forward_config.cuh"

namespace fa {

struct work_tile {
  sequence seq;
  int batch, head, row0;
  block_range blocks; /* key blocks; in flex kernels as the masks by position give them */
  int pack = 0;       /* over a cache: 2^pack query heads from `head` on share the tile, each row's side by side */
};

/* The rows of the tile's heads. */
template <class C> FA_DEVICE int hopper_n_rows(const work_tile &work) {
  return C::CACHE ? work.seq.len_q << work.pack : work.seq.len_q;
}

/* A row block of packed sequences. Sequence b has those from cu_seqlens_q[b] / BM + b on, so that the longest one costs the
 * others nothing: at most one of a sequence's row blocks has no rows. */
struct packed_block {
  int batch, row_block;
};
template <class C>
FA_DEVICE packed_block find_packed_block(const int32_t *cu_seqlens, int sequences, int row_block) {
  const auto first_of = [&](int batch) { return load_global(cu_seqlens + batch) / C::BM + batch; };
  int batch = 0, end = sequences;
  FA_NO_UNROLL
  while (end - batch > 1) {
    const int middle = (batch + end) / 2;
    if (first_of(middle) <= row_block)
      batch = middle;
    else
      end = middle;
  }
  return {batch, max_int(row_block - first_of(batch), 0)}; /* cu_seqlens_q should begin with 0; below 0 would be the end */
}

template <class C> FA_DEVICE work_tile load_work_tile(const fa_hopper_params &p, int tile) {
  const fa_tile_scheduler_params &t = p.tiles;
  const int per_section = t.section * t.row_blocks, section = tile / per_section,
            in_section = tile - section * per_section;
  const int first = section * t.section, heads = min_int(t.section, t.heads - first);
  int row_block = in_section / heads;
  const int head = first + in_section - row_block * heads;
  if (t.last_first) row_block = t.row_blocks - 1 - row_block;
  work_tile work;
  if (C::VARLEN && t.sequences) {
    const packed_block block = find_packed_block<C>(p.f.cu_seqlens_q, t.sequences, row_block);
    work.batch = block.batch;
    work.head = head;
    row_block = block.row_block;
  } else {
    work.batch = head / p.f.heads_q;
    work.head = head - work.batch * p.f.heads_q;
  }
  work.row0 = row_block * C::BM;
  if (C::VARLEN)
    work.seq = load_sequence(p.f, work.batch);
  else
    work.seq = {0, 0, p.f.seqlen_q, p.f.seqlen_k, p.f.top_left ? 0 : p.f.seqlen_k - p.f.seqlen_q};
  const int row1 = min_int(work.row0 + C::BM, work.seq.len_q);
  work.blocks = {0, 0};
  if (work.row0 < row1) work.blocks = visible_blocks<C::BN>(p.f, work.seq, work.row0, row1);
  return work;
}

/* The producer computes a work tile and publishes it to the consumers; row0 = -1: there are no more. */
template <class C> FA_DEVICE void publish_work_tile(pipeline_state<2> tile_pipe, const work_tile &work) {
  const uint32_t at = shared_base() + C::WORK_TILES_AT + C::WORK_TILE_BYTES * tile_pipe.stage();
  const int words[8] = {work.row0,  work.blocks.begin, work.blocks.end, work.head,
                        work.batch, work.seq.q_row,    work.seq.len_q,  work.seq.len_k};
  FA_UNROLL
  for (int i = 0; i < (C::VARLEN ? 8 : 5); ++i) store_shared4(at + 4 * i, static_cast<uint32_t>(words[i]));
  mbarrier_arrive(hopper_barriers<C>::tile_full(tile_pipe.stage()));
}
/* Reads all of it but where the keys begin in their tensor. */
template <class C> FA_DEVICE work_tile read_work_tile(const fa_attention_params &p, pipeline_state<2> tile_pipe) {
  const uint32_t at = shared_base() + C::WORK_TILES_AT + C::WORK_TILE_BYTES * tile_pipe.stage();
  int w[8] = {0, 0, 0, 0, 0, 0, p.seqlen_q, p.seqlen_k};
  FA_UNROLL
  for (int i = 0; i < (C::VARLEN ? 8 : 5); ++i) w[i] = uniform(static_cast<int>(load_shared4(at + 4 * i)));
  return {{w[5], 0, w[6], w[7], p.top_left ? 0 : w[7] - w[6]}, w[4], w[3], w[0], {w[1], w[2]}};
}

/* The batch coordinate in the tensor map: 0 for variable length, where all tokens are along the row axis. */
FA_DEVICE int work_tile_map_batch(const fa_attention_params &p, const work_tile &work) {
  return p.cu_seqlens_q ? 0 : work.batch;
}

FA_COUNTERS(hopper_counters, FA_HOPPER_COUNTERS)

/* The sequence of work tiles of one block; p.tiles.n or more: no more. The first tile is the block's own
 * index. After that there are two ways:
 *   a counter      the next tile that no block has fetched. The block that fetches the launch's last number,
 *                  which belongs to no tile, resets the counter.
 *   no counter     rounds of one tile per block in alternating direction, so that a block with more work in
 *                  one round has less in the next. */
struct tile_scheduler {
  int round = 0;
  FA_DEVICE int first() const { return static_cast<int>(blockIdx.x); }
  FA_DEVICE int next(const fa_tile_scheduler_params &t) {
    const int n_blocks = static_cast<int>(gridDim.x), i = first();
    if (t.counter < 0) {
      ++round;
      return round * n_blocks + (round % 2 ? n_blocks - 1 - i : i);
    }
    unsigned *const counter = hopper_counters + t.counter;
    const int taken = counter_fetch_add(counter);
    if (taken == t.n - 1) counter_store(counter, 0);
    return n_blocks + taken;
  }
};

} // namespace fa

#endif
