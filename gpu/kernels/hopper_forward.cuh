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
 * of K, STAGES of V, O of each group (in Q's place if !APART), barriers. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_CUH

#include "gpu/kernels/flash_forward.cuh"
#include "gpu/kernels/hopper_params.h"
#include "gpu/kernels/prim_sm90.cuh"

namespace fa {

template <class T_, int D_, flash_kind KIND_, int GROUPS_, int BN_, bool TURNS_, bool APART_, int LAZY_ = 0,
          int STAGES_ = 2>
struct hopper_forward_config : flash_kind_traits<KIND_> {
  typedef T_ T;
  static constexpr flash_kind KIND = KIND_;
  static constexpr int D = D_, M_TILES = 1, GROUPS = GROUPS_, BN = BN_, STAGES = STAGES_;
  static constexpr bool TURNS = TURNS_, APART = APART_;
  static constexpr int LAZY = LAZY_;
  static constexpr int BM = 64 * GROUPS, THREADS = 128 * (GROUPS + 1);
  /* groups may have no use for a whole key block, and there are registers to see to it */
  static constexpr bool PASSES = KIND == plain && GROUPS == 3 && BM - 64 >= BN;
  static constexpr int PANELS = D / 64;
  static constexpr int Q_PANEL = 64 * 128, KV_PANEL = BN * 128; /* bytes */
  static constexpr int Q_BYTES = PANELS * Q_PANEL, KV_BYTES = PANELS * KV_PANEL;
  static constexpr int K_AT = GROUPS * Q_BYTES, V_AT = K_AT + STAGES * KV_BYTES;
  static constexpr int O_AT = APART ? V_AT + STAGES * KV_BYTES : 0;
  static constexpr int BARRIERS_AT = V_AT + STAGES * KV_BYTES + (APART ? GROUPS * Q_BYTES : 0);
  static constexpr int N_BARRIERS = 2 * GROUPS + 4 * STAGES + 4;
  static constexpr int BIAS_AT = 0;                             /* there is none */
  static constexpr int TILES_AT = BARRIERS_AT + 8 * N_BARRIERS; /* two numbers, 16 bytes apart */
  static constexpr int SHARED_BYTES = TILES_AT + 32;
  /* 64 K registers, in the shares of the launch bounds moved to where they are needed */
  static constexpr int PRODUCER_REGISTERS = GROUPS == 3 ? 32 : D > 128 ? 24 : 40;
  static constexpr int CONSUMER_REGISTERS = GROUPS == 3 ? 160 : D > 128 ? 240 : 232;
  static_assert(GROUPS == 2 || GROUPS == 3, "register shares are given for these");
  static_assert(BN % 32 == 0 || KIND_ != dropout, "dropout decides on 32 keys at once");
  static_assert(D % 64 == 0 && BN % 16 == 0 && KV_PANEL % 1024 == 0, "whole panels, whole swizzle atoms");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
};

/* ---- barriers ---- */

/* full: the data are there; empty: nobody needs the old ones any more. */
template <class C> struct hopper_barriers {
  FA_DEVICE static uint32_t at(int i) { return shared_base() + C::BARRIERS_AT + 8 * i; }
  FA_DEVICE static uint32_t q_full(int group) { return at(group); }
  FA_DEVICE static uint32_t q_empty(int group) { return at(C::GROUPS + group); }
  FA_DEVICE static uint32_t k_full(int stage) { return at(2 * C::GROUPS + stage); }
  FA_DEVICE static uint32_t k_empty(int stage) { return at(2 * C::GROUPS + C::STAGES + stage); }
  FA_DEVICE static uint32_t v_full(int stage) { return at(2 * C::GROUPS + 2 * C::STAGES + stage); }
  FA_DEVICE static uint32_t v_empty(int stage) { return at(2 * C::GROUPS + 3 * C::STAGES + stage); }
  FA_DEVICE static uint32_t tile_full(int stage) { return at(2 * C::GROUPS + 4 * C::STAGES + stage); }
  FA_DEVICE static uint32_t tile_empty(int stage) { return at(2 * C::GROUPS + 4 * C::STAGES + 2 + stage); }
};

template <class C> FA_DEVICE void hopper_init_barriers() {
  typedef hopper_barriers<C> bar;
  FA_NO_UNROLL
  for (int g = 0; g < C::GROUPS; ++g) {
    mbarrier_init(bar::q_full(g), 1);
    mbarrier_init(bar::q_empty(g), 4); /* a lane of each warp */
  }
  FA_NO_UNROLL
  for (int s = 0; s < C::STAGES; ++s) {
    mbarrier_init(bar::k_full(s), 1);
    mbarrier_init(bar::k_empty(s), 4 * C::GROUPS);
    mbarrier_init(bar::v_full(s), 1);
    mbarrier_init(bar::v_empty(s), 4 * C::GROUPS);
  }
  FA_NO_UNROLL
  for (int s = 0; s < 2; ++s) {
    mbarrier_init(bar::tile_full(s), 1);
    mbarrier_init(bar::tile_empty(s), 4 * C::GROUPS);
  }
  mbarrier_init_fence();
}

/* How often a ring of buffers was used: which comes next, and the parity of the phase that fills it. */
template <int STAGES> struct hopper_ring {
  unsigned n = 0;
  FA_DEVICE int stage() const { return static_cast<int>(n % STAGES); }
  FA_DEVICE int parity() const { return static_cast<int>(n / STAGES % 2); }
  FA_DEVICE void next() { ++n; }
  FA_DEVICE hopper_ring before() const { return hopper_ring{n - 1}; }
  FA_DEVICE hopper_ring after() const { return hopper_ring{n + 1}; }
};

/* ---- what a block does next ---- */

struct hopper_task {
  sequence seq;
  int batch, head, row0;
  block_range blocks; /* of keys */
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
  task.seq = {0, 0, p.f.seqlen_q, p.f.seqlen_k, p.f.top_left ? 0 : p.f.seqlen_k - p.f.seqlen_q};
  task.blocks = visible_blocks<C::BN>(p.f, task.seq, task.row0, min_int(task.row0 + C::BM, task.seq.len_q));
  return task;
}

FA_COUNTERS(hopper_counters, FA_HOPPER_COUNTERS)

/* The tiles of a block, one after the other; p.tiles.n or more: there is none any more. The first is the
 * block's own number. Then, if there is a counter, what comes next of all; who takes the last number of the
 * launch, which no tile has, sets it back. Else rounds alternate in direction, so that who had more to do in
 * one has less in the next. */
struct hopper_queue {
  int round = 0;
  FA_DEVICE int first() const { return static_cast<int>(blockIdx.x); }
  FA_DEVICE int next(const fa_hopper_tiles &t) {
    const int n_blocks = static_cast<int>(gridDim.x), i = static_cast<int>(blockIdx.x);
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

/* ---- the producer ---- */

/* ROWS x D of a map to shared memory, panel by panel. */
template <int PANELS, int PANEL_BYTES>
FA_DEVICE void hopper_load(uint32_t shared, const fa_tensor_map *map, uint32_t bar, int row, int head,
                           int batch) {
  mbarrier_arrive_expect(bar, PANELS * PANEL_BYTES);
  FA_UNROLL
  for (int i = 0; i < PANELS; ++i) tma_load(shared + i * PANEL_BYTES, map, bar, 64 * i, row, head, batch);
}

/* Loads everything of a tile that has keys. Empty barriers are waited for with the opposite parity: the first
 * use passes at once. */
template <class C> struct hopper_producer {
  typedef hopper_barriers<C> bar;
  typedef hopper_ring<C::STAGES> ring;
  hopper_ring<1> q;
  ring kv; /* of the block whose V comes next */

  FA_DEVICE static void load_k(const fa_hopper_params &p, const hopper_task &task, ring k, int block) {
    mbarrier_wait(bar::k_empty(k.stage()), k.parity() ^ 1);
    hopper_load<C::PANELS, C::KV_PANEL>(shared_base() + C::K_AT + k.stage() * C::KV_BYTES, &p.k,
                                        bar::k_full(k.stage()), block * C::BN, task.head / p.f.heads_per_kv,
                                        task.batch);
  }
  FA_DEVICE static void load_v(const fa_hopper_params &p, const hopper_task &task, ring v, int block) {
    mbarrier_wait(bar::v_empty(v.stage()), v.parity() ^ 1);
    hopper_load<C::PANELS, C::KV_PANEL>(shared_base() + C::V_AT + v.stage() * C::KV_BYTES, &p.v,
                                        bar::v_full(v.stage()), block * C::BN, task.head / p.f.heads_per_kv,
                                        task.batch);
  }
  FA_DEVICE void load(const fa_hopper_params &p, const hopper_task &task) {
    load_k(p, task, kv, task.blocks.end - 1);
    FA_NO_UNROLL
    for (int g = 0; g < C::GROUPS; ++g) {
      mbarrier_wait(bar::q_empty(g), q.parity() ^ 1);
      hopper_load<C::PANELS, C::Q_PANEL>(shared_base() + g * C::Q_BYTES, &p.q, bar::q_full(g),
                                         task.row0 + 64 * g, task.head, task.batch);
    }
    q.next();
    FA_NO_UNROLL
    for (int block = task.blocks.end - 1; block >= task.blocks.begin; --block) {
      if (block > task.blocks.begin) load_k(p, task, kv.after(), block - 1);
      load_v(p, task, kv, block);
      kv.next();
    }
  }
};

/* One thread. It tells the consumers each tile's number, and -1 in the end; the next number is on its way
 * while a tile is loaded. */
template <class C> FA_DEVICE void hopper_produce(const fa_hopper_params &p) {
  typedef hopper_barriers<C> bar;
  hopper_producer<C> producer;
  hopper_ring<2> told;
  hopper_queue queue;
  FA_NO_UNROLL
  for (int tile = queue.first(); tile >= 0;) {
    const int next = tile < p.tiles.n ? queue.next(p.tiles) : -1;
    mbarrier_wait(bar::tile_empty(told.stage()), told.parity() ^ 1);
    store_shared4(shared_base() + C::TILES_AT + 16 * told.stage(),
                  static_cast<uint32_t>(tile < p.tiles.n ? tile : -1));
    mbarrier_arrive(bar::tile_full(told.stage()));
    told.next();
    if (tile < p.tiles.n) {
      const hopper_task task = hopper_load_task<C>(p, tile);
      if (task.blocks.begin < task.blocks.end) producer.load(p, task);
    }
    tile = next;
  }
}

/* ---- consumers ---- */

/* What a consumer keeps from tile to tile. group: 0.. of the consumers; thread: 0..127 of the group. */
template <class C> struct hopper_consumer {
  int group, thread;
  hopper_ring<1> q;
  hopper_ring<C::STAGES> k; /* and, between tiles, of V */
};

/* The warps' own release of what the warpgroup has read. */
FA_DEVICE void hopper_release(uint32_t bar, int thread) {
  if (thread % 32 == 0) mbarrier_arrive(bar);
}

/* Turns: a group waits for its own, and gives the next group the turn. Group 0 has the first. */
template <class C> FA_DEVICE void hopper_take_turn(int group) {
  if (C::TURNS) named_sync<256>(1 + group);
}
template <class C> FA_DEVICE void hopper_give_turn(int group) {
  if (C::TURNS) named_arrive<256>(1 + (group + 1 == C::GROUPS ? 0 : group + 1));
}

/* s = Q K^T, issued. */
template <class C> FA_DEVICE void hopper_scores(float (&s)[C::BN / 8][4], uint32_t q_tile, uint32_t k_tile) {
  const uint64_t q = matrix_descriptor(q_tile, 16, 1024, FA_SWIZZLE_128),
                 k = matrix_descriptor(k_tile, 16, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < C::D / 16; ++i)
    wgmma_ss<0, 0>(s, descriptor_at(q, i / 4 * C::Q_PANEL + i % 4 * 32),
                   descriptor_at(k, i / 4 * C::KV_PANEL + i % 4 * 32), i > 0, typename C::T());
  wgmma_commit();
}

/* o += P V, issued. */
template <class C>
FA_DEVICE void hopper_values(float (&o)[C::D / 8][4], const uint32_t (&p)[C::BN / 16][4], uint32_t v_tile) {
  const uint64_t v = matrix_descriptor(v_tile, C::KV_PANEL, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i)
    wgmma_rs<1>(o, p[i], descriptor_at(v, i * 16 * 128), 1, typename C::T());
  wgmma_commit();
}

/* An accumulator becomes A's fragments in place. row0: of the group's rows. */
template <class C>
FA_DEVICE void hopper_weights(uint32_t (&weights)[C::BN / 16][4], const float (&s)[C::BN / 8][4],
                              const fa_flash_params &p, const hopper_task &task, int row0, int key0,
                              int thread) {
  uint32_t words[4];
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i) {
    if (C::DROPOUT && i % 2 == 0)
      drop_words<C>(words, p, dropout_of(p, task.batch, task.head, thread % 32),
                    row0 + score_row<C>(thread, 0), key0 + 16 * i);
    FA_UNROLL
    for (int j = 0; j < 4; ++j) {
      weights[i][j] = pack2(s[2 * i + j / 2][j % 2 * 2], s[2 * i + j / 2][j % 2 * 2 + 1], typename C::T());
      if (C::DROPOUT) weights[i][j] &= dropout_kept(p, words[i % 2 * 2 + j / 2], j % 2);
    }
  }
}

/* As softmax_row (softmax.cuh), value for value. */
template <int TILES, int LAZY>
FA_DEVICE float hopper_softmax_row(float (&s)[TILES][4], int r, float scale_log2, row_state &row) {
  float m = row.max;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n) m = greater(m, greater(s[n][2 * r], s[n][2 * r + 1]));
  m = greater(m, shfl_xor(m, 1));
  m = greater(m, shfl_xor(m, 2));
  if (LAZY == 2 && multiply(m - row.max, scale_log2) <= 8.0f) m = row.max;
  const float shift = m == -infinity() ? 0.0f : multiply(m, scale_log2);
  const float shrink = exp2_approx(multiply(row.max, scale_log2) - shift); /* exactly 1 while m stays */
  float sum = 0.0f;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n) {
    FA_UNROLL
    for (int e = 2 * r; e < 2 * r + 2; ++e) {
      s[n][e] = exp2_approx(fmaf(s[n][e], scale_log2, -shift));
      sum += s[n][e];
    }
  }
  row.sum = row.sum * shrink + sum;
  row.max = m;
  return shrink;
}

/* Scores become exponentials; shrink: by how much what was accumulated so far shrinks. */
template <class C>
FA_DEVICE void hopper_softmax(float (&s)[1][C::BN / 8][4], row_state (&rows)[2], float (&shrink)[2],
                              const fa_flash_params &p, const hopper_task &task, float slope, int row0,
                              int key0, int thread) {
  /* opaque: what the rare branch needs is worked out in it, not kept from before the loop */
  const int first = opaque(row0);
  if constexpr (C::KIND != plain) modify_scores<C>(s, p, task.seq, slope, first, key0, opaque(thread));
  if (keys_need_mask(p, task.seq, first, first + 64, key0, key0 + C::BN))
    mask_scores<C>(s, p, task.seq, first, key0, opaque(thread));
  const float scale_log2 = C::ALIBI || C::SOFTCAP ? LOG2E : p.scale_log2;
  FA_UNROLL
  for (int r = 0; r < 2; ++r)
    shrink[r] = hopper_softmax_row<C::BN / 8, C::LAZY>(s[0], r, scale_log2, rows[r]);
}

template <class C> FA_DEVICE void hopper_shrink(float (&o)[C::D / 8][4], const float (&shrink)[2]) {
  if (C::LAZY && !any_lane(shrink[0] != 1.0f || shrink[1] != 1.0f)) return;
  FA_UNROLL
  for (int n = 0; n < C::D / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 4; ++e) o[n][e] *= shrink[e / 2];
  }
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

/* Key blocks that some row of the group sees; all of the row block's if none does. */
template <class C>
FA_DEVICE block_range hopper_own_blocks(const fa_flash_params &p, const hopper_task &task, int row0) {
  block_range own = visible_blocks<C::BN>(p, task.seq, row0, row0 + 64);
  own.end = min_int(own.end, task.blocks.end);
  return own.begin < own.end ? own : task.blocks;
}

/* Everything of a task that has keys. */
template <class C>
FA_DEVICE void hopper_attend(hopper_consumer<C> &c, float (&o)[C::D / 8][4], row_state (&rows)[2],
                             const fa_hopper_params &p, const hopper_task &task) {
  typedef hopper_barriers<C> bar;
  const uint32_t base = shared_base(), q_tile = base + c.group * C::Q_BYTES;
  const int row0 = task.row0 + 64 * c.group;
  const float slope = C::ALIBI ? alibi_slope(p.f, task.batch, task.head) : 0.0f;
  float s[1][C::BN / 8][4], shrink[2];
  uint32_t weights[C::BN / 16][4];

  const block_range own = C::PASSES ? hopper_own_blocks<C>(p.f, task, row0) : task.blocks;
  int block = task.blocks.end - 1;
  FA_NO_UNROLL
  for (; C::PASSES && block >= own.end; --block) hopper_pass<C>(c);
  mbarrier_wait(bar::q_full(c.group), c.q.parity());
  mbarrier_wait(bar::k_full(c.k.stage()), c.k.parity());
  wgmma_fence();
  hopper_scores<C>(s[0], q_tile, base + C::K_AT + c.k.stage() * C::KV_BYTES);
  wgmma_wait<0>(s[0]);
  hopper_release(bar::k_empty(c.k.stage()), c.thread);
  c.k.next();
  hopper_softmax<C>(s, rows, shrink, p.f, task, slope, row0, block * C::BN, c.thread);
  hopper_weights<C>(weights, s[0], p.f, task, row0, block * C::BN, C::DROPOUT ? opaque(c.thread) : 0);

  FA_NO_UNROLL
  while (--block >= own.begin) {
    const hopper_ring<C::STAGES> v = c.k.before();
    mbarrier_wait(bar::k_full(c.k.stage()), c.k.parity());
    hopper_take_turn<C>(c.group);
    wgmma_fence();
    hopper_scores<C>(s[0], q_tile, base + C::K_AT + c.k.stage() * C::KV_BYTES);
    mbarrier_wait(bar::v_full(v.stage()), v.parity());
    wgmma_fence();
    hopper_values<C>(o, weights, base + C::V_AT + v.stage() * C::KV_BYTES);
    hopper_give_turn<C>(c.group);
    wgmma_wait<1>(s[0]);
    hopper_release(bar::k_empty(c.k.stage()), c.thread);
    hopper_softmax<C>(s, rows, shrink, p.f, task, slope, row0, block * C::BN, c.thread);
    wgmma_wait<0>(o);
    hopper_release(bar::v_empty(v.stage()), c.thread);
    c.k.next();
    hopper_shrink<C>(o, shrink);
    hopper_weights<C>(weights, s[0], p.f, task, row0, block * C::BN, C::DROPOUT ? opaque(c.thread) : 0);
  }
  if (C::APART) hopper_release(bar::q_empty(c.group), c.thread);
  const hopper_ring<C::STAGES> v = c.k.before();
  mbarrier_wait(bar::v_full(v.stage()), v.parity());
  wgmma_fence();
  hopper_values<C>(o, weights, base + C::V_AT + v.stage() * C::KV_BYTES);
  wgmma_wait<0>(o);
  hopper_release(bar::v_empty(v.stage()), c.thread);
  FA_NO_UNROLL
  for (; C::PASSES && block >= limits_of_row(p.f, task.seq, opaque(row0) - 64 * c.group).lo / C::BN; --block)
    hopper_pass<C>(c); /* to task.blocks.begin, worked out again */
  c.q.next();
}

/* Normalises, and stores the warp's 16 rows of O and LSE. What a store still reads of shared memory is waited
 * for before that is written again. */
template <class C>
FA_DEVICE void hopper_write(const fa_hopper_params &p, const float (&o)[C::D / 8][4],
                            const row_state (&rows)[2], const hopper_task &task, int group, int thread) {
  const int warp = thread / 32, lane = thread % 32, row0 = task.row0 + 64 * group + 16 * warp;
  const uint32_t tile = shared_base() + C::O_AT + group * C::Q_BYTES + warp * (16 * 128);
  if (C::APART && lane == 0) tma_store_wait_read<0>();
  sync_warp();
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = lane / 4 + 8 * r;
    const float sum = quad_sum(rows[r].sum),
                inverse = sum == 0.0f ? 0.0f : (C::DROPOUT ? p.f.dropout_scale : 1.0f) / sum;
    FA_UNROLL
    for (int n = 0; n < C::D / 8; ++n)
      store_shared4(tile + n / 8 * C::Q_PANEL + row * 128 + ((n % 8 ^ row % 8) << 4) + lane % 4 * 4,
                    pack2(o[n][2 * r] * inverse, o[n][2 * r + 1] * inverse, typename C::T()));
    if (lane % 4 == 0 && row0 + row < task.seq.len_q)
      store_global(p.f.lse + task.batch * p.f.lse_stride.batch + task.head * p.f.lse_stride.head +
                       (row0 + row) * p.f.lse_stride.row,
                   sum == 0.0f
                       ? p.f.empty_lse
                       : rows[r].max * (C::ALIBI || C::SOFTCAP ? 1.0f : p.f.scale) + natural_log(sum));
  }
  fence_async();
  sync_warp();
  if (lane == 0) {
    if (row0 < task.seq.len_q) {
      FA_UNROLL
      for (int i = 0; i < C::PANELS; ++i)
        tma_store(&p.o, tile + i * C::Q_PANEL, 64 * i, row0, task.head, task.batch);
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
    const int tile = uniform(static_cast<int>(load_shared4(shared_base() + C::TILES_AT + 16 * told.stage())));
    sync_warp();
    hopper_release(hopper_barriers<C>::tile_empty(told.stage()), c.thread);
    told.next();
    if (tile < 0) break;
    const hopper_task task = hopper_load_task<C>(p, tile);
    const bool any = task.blocks.begin < task.blocks.end;
    float o[C::D / 8][4] = {};
    row_state rows[2];
    if (any) hopper_attend<C>(c, o, rows, p, task);
    /* Worked out again, rather than kept; where O fills the registers, that would take even more of them. */
    if (C::D > 128)
      hopper_write<C>(p, o, rows, task, c.group, c.thread);
    else
      hopper_write<C>(p, o, rows, hopper_load_task<C>(p, opaque(tile)), c.group, opaque(c.thread));
    if (!C::APART) {
      if (c.thread % 32 == 0) tma_store_wait_read<0>();
      sync_warp();
      if (any) hopper_release(hopper_barriers<C>::q_empty(c.group), c.thread);
    }
  }
  if (c.thread % 32 == 0) tma_store_wait_read<0>(); /* shared memory ends with the block */
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
