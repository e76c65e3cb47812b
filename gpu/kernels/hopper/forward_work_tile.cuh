/* What a block of the forward kernels for sm_90a works on, and what it does next. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_WORK_TILE_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_WORK_TILE_CUH

#include "gpu/kernels/mods/blocks.cuh"
#include "gpu/kernels/hopper/forward_config.cuh"

namespace fa {

struct hopper_task {
  sequence seq;
  int batch, head, row0;
  block_range blocks; /* of keys; of flex kernels as the masks by position have it */
};

template <class C> FA_DEVICE hopper_task hopper_load_task(const fa_hopper_params &p, int tile) {
  const fa_hopper_tiles &t = p.tiles;
  const int per_section = t.section * t.row_blocks, section = tile / per_section,
            in_section = tile - section * per_section;
  const int first = section * t.section, heads = min_int(t.section, t.heads - first);
  int row_block = in_section / heads;
  const int head = first + in_section - row_block * heads;
  if (t.last_first) row_block = t.row_blocks - 1 - row_block;
  hopper_task task;
  task.batch = head / p.f.heads_q;
  task.head = head - task.batch * p.f.heads_q;
  task.row0 = row_block * C::BM;
  if (C::VARLEN)
    task.seq = load_sequence(p.f, task.batch);
  else
    task.seq = {0, 0, p.f.seqlen_q, p.f.seqlen_k, p.f.top_left ? 0 : p.f.seqlen_k - p.f.seqlen_q};
  const int row1 = min_int(task.row0 + C::BM, task.seq.len_q);
  task.blocks = {0, 0};
  if (task.row0 < row1) task.blocks = visible_blocks<C::BN>(p.f, task.seq, task.row0, row1);
  return task;
}

/* The producer works tasks out, and tells the consumers; row0 -1: there are no more. */
template <class C> FA_DEVICE void hopper_tell(hopper_ring<2> told, const hopper_task &task) {
  const uint32_t at = shared_base() + C::TASKS_AT + C::TASK_BYTES * told.stage();
  const int words[8] = {task.row0,  task.blocks.begin, task.blocks.end, task.head,
                        task.batch, task.seq.q_row,    task.seq.len_q,  task.seq.len_k};
  FA_UNROLL
  for (int i = 0; i < (C::VARLEN ? 8 : 5); ++i) store_shared4(at + 4 * i, static_cast<uint32_t>(words[i]));
  mbarrier_arrive(hopper_barriers<C>::task_full(told.stage()));
}
/* All of it but where the keys begin in their tensor. */
template <class C> FA_DEVICE hopper_task hopper_told(const fa_flash_params &p, hopper_ring<2> told) {
  const uint32_t at = shared_base() + C::TASKS_AT + C::TASK_BYTES * told.stage();
  int w[8] = {0, 0, 0, 0, 0, 0, p.seqlen_q, p.seqlen_k};
  FA_UNROLL
  for (int i = 0; i < (C::VARLEN ? 8 : 5); ++i) w[i] = uniform(static_cast<int>(load_shared4(at + 4 * i)));
  return {{w[5], 0, w[6], w[7], p.top_left ? 0 : w[7] - w[6]}, w[4], w[3], w[0], {w[1], w[2]}};
}

/* Where a tensor's map has the entry: tokens of all lie side by side where lengths vary. */
FA_DEVICE int hopper_plane(const fa_flash_params &p, const hopper_task &task) {
  return p.cu_seqlens_q ? 0 : task.batch;
}

FA_COUNTERS(hopper_counters, FA_HOPPER_COUNTERS)

/* The tiles of a block, one after the other; p.tiles.n or more: there is none any
 * more. The first is the block's own number. Then, if there is a counter, what comes next of all; who takes
 * the last number of the launch, which no tile has, sets it back. Else rounds alternate in direction, so that
 * who had more to do in one has less in the next. */
struct hopper_queue {
  int round = 0;
  FA_DEVICE int first() const { return static_cast<int>(blockIdx.x); }
  FA_DEVICE int next(const fa_hopper_tiles &t) {
    const int n_blocks = static_cast<int>(gridDim.x), i = first();
    if (t.counter < 0) {
      ++round;
      return round * n_blocks + (round % 2 ? n_blocks - 1 - i : i);
    }
    unsigned *const counter = hopper_counters + t.counter;
    const int taken = take_number(counter);
    if (taken == t.n - 1) set_number(counter, 0);
    return n_blocks + taken;
  }
};

} // namespace fa

#endif
