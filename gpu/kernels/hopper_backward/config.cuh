/* Configuration of the main backward kernel for sm_90a: layout of shared memory, barriers, and what a block
 * works on. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_CONFIG_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_CONFIG_CUH

#include "gpu/kernels/flash/backward.cuh"
#include "gpu/kernels/mods/blocks.cuh"
#include "gpu/kernels/params/hopper.h"
#include "gpu/kernels/hopper/forward_config.cuh"

namespace fa {

enum { HOPPER_DROP_WARPS = 2 }; /* of the producers: the last ones, which work out what is dropped */

/* VARLEN: sequences have their own lengths (cu_seqlens), or masked keys before or after the others
 * (leftpad_k, seqused_k). ORDERED: deterministic calls, in one of two ways: DQ_SEMAPHORE: blocks add to dQ in
 * a fixed order. SPLITS, for flex kernels, where no block knows which row tiles another one visits, and for dropout in
 * clusters: a block, or cluster, has several key blocks and an accumulator of its own. */
template <kernel_kind KIND_, bool VARLEN_ = false, bool ORDERED_ = false>
struct hopper_backward_kind : kernel_kind_traits<KIND_> {
  typedef typename hopper_mods_of<KIND_>::type MODS;
  static constexpr kernel_kind KIND = KIND_;
  static constexpr bool LINEAR = kernel_kind_traits<KIND_>::LINEAR;
  static constexpr bool DROPOUT = kernel_kind_traits<KIND_>::DROPOUT || LINEAR; /* of either scheme */
  static constexpr bool VARLEN = VARLEN_, ORDERED = ORDERED_;
  static constexpr bool DQ_SEMAPHORE = ORDERED_ && KIND_ != flex, SPLITS = ORDERED_ && KIND_ == flex;
};

template <class T_, int D_, int BM_, kernel_kind KIND_ = plain, bool VARLEN_ = false, bool ORDERED_ = false>
struct hopper_backward_config : hopper_backward_kind<KIND_, VARLEN_, ORDERED_> {
  typedef T_ T;
  static constexpr int D = D_, BM = BM_, BN = 128, GROUPS = 2, THREADS = 384;
  static constexpr int PANELS = (D + 63) / 64, STAGES = 2;      /* columns past D are zeros */
  static constexpr int KV_PANEL = BN * 128, Q_PANEL = BM * 128; /* bytes */
  static constexpr int KV_BYTES = PANELS * KV_PANEL, Q_BYTES = PANELS * Q_PANEL;
  static constexpr int DS_PANEL = BN * 128, DS_BYTES = BM / 64 * DS_PANEL;
  static constexpr int K_AT = 0, V_AT = KV_BYTES, Q_AT = 2 * KV_BYTES, DO_AT = Q_AT + STAGES * Q_BYTES,
                       DS_AT = DO_AT + STAGES * Q_BYTES;
  /* Of the bias of a step, and then of its gradient: rows are queries, 64 keys to a panel. */
  static constexpr int BIAS_PANEL = BM * 128, BIAS_BYTES = kernel_kind_traits<KIND_>::BIAS ? BN / 64 * BIAS_PANEL : 0;
  static constexpr int BIAS_AT = DS_AT + STAGES * DS_BYTES, ROWS_AT = BIAS_AT + STAGES * BIAS_BYTES;
  static constexpr int ROW_BYTES = BM * 4;                            /* of LSE; as much for delta */
  static constexpr int FLEX_TILES_AT = ROWS_AT + STAGES * 2 * ROW_BYTES; /* flex: the row tile and its kind */
  static constexpr int DROP_AT = FLEX_TILES_AT + (KIND_ == flex ? 4 * STAGES : 0);
  static constexpr bool DROPS = hopper_backward_kind<KIND_, VARLEN_, ORDERED_>::DROPOUT;
  static constexpr bool DROPS_ALONE = KIND_ == dropout || KIND_ == linear;
  static constexpr int DROP_BYTES = DROPS ? BM / 64 * 1024 : 0;     /* one bit per pair (row, key) */
  static constexpr int DROP_STAGES = KIND_ == linear ? 4 : STAGES; /* steps for which they are kept */
  static constexpr int SEQUENCE_AT = (DROP_AT + DROP_STAGES * DROP_BYTES + 15) / 16 * 16; /* the block's sequence, for VARLEN */
  /* dQ of a step: with 64 rows the groups divide the columns, by whole panels if there are several; with 128
   * rows each group has half of the rows */
  static constexpr int DQ_FIRST = BM == 128 ? D : D <= 64 ? D / 2 : 64; /* columns of the first group */
  static constexpr int DQ_SECOND = BM == 128 ? D : D - DQ_FIRST;     /* and of the second */
  /* dropout warps need registers too, where the consumers can spare them: not where these do everything */
  static constexpr bool DROP_UNROLLED = DROPS_ALONE && D <= 96;
  /* Where two warps would hold up the steps, the one that loads LSE and delta works out its share of what is dropped, too. Not
   * where it keeps the order of additions. */
  static constexpr bool LOADER_DROPS = DROPS_ALONE && (D > 96 || KIND_ == linear) && !VARLEN_ && !ORDERED_;
  static constexpr int DROP_WARPS = HOPPER_DROP_WARPS + LOADER_DROPS;
  /* The warp that issues copies loads LSE and delta, too, and the other three work out what is dropped, some steps ahead: else
   * who has two of a step's four shares holds it up. */
  static constexpr bool LOADS_ALONE = KIND_ == linear;
  static constexpr int PRODUCER_REGISTERS = DROP_UNROLLED ? 72 : LOADER_DROPS ? 56 : 40,
                       CONSUMER_REGISTERS = DROP_UNROLLED ? 216 : LOADER_DROPS ? 224 : 232;
  /* K and V in registers: MMAs with both operands in shared memory would take all of its bandwidth */
  static constexpr bool KV_IN_REGISTERS = D <= 64 && KIND_ != flex;
  /* dQ of a tile is computed one step later, so that neither group waits in every step for the other's dS,
   * and the GEMMs of one group overlap the exponentials of the other. Not where registers are short. */
  static constexpr bool LAG = KIND_ != flex && (D < 128 || LOADER_DROPS || (!DROPS && KIND_ != softcap));
  /* dQ is added to memory by bulk copies: dq.cuh. Not where dropout takes the warps for it. */
  static constexpr bool DQ_COPIES = LAG && !DROPS;
  /* The order of a step, as it was found to be fastest: dV's product is issued behind dS instead of before it; dQ's and
   * dK's before dS can be read by the other group; dQ for the copy can be read as soon as it is stored, instead of when the next
   * step's scores are on their way. */
  static constexpr bool LATE_DV = DQ_COPIES && D <= 64, PRODUCTS_FIRST = DQ_COPIES && D > 64,
                        DQ_AT_ONCE = D > 64;
  /* LSE and delta are on their way to registers while products are waited for */
  static constexpr bool EARLY_ROWS = KIND_ == plain;
  static constexpr int DQ_PLACE_BYTES = 16 * 4 * DQ_FIRST; /* of a warp: 16 rows of its group's columns */
  /* Additions in order take longer than a step (dq.cuh): steps of even and odd numbers have barriers of their own, so that a warp
   * that sees to every second step misses none, and places of their own where there is room. */
  static constexpr int DQ_FULLS = DQ_COPIES && ORDERED_ ? 2 : 1, DQ_PLACES = D <= 64 ? DQ_FULLS : 1;
  static constexpr int DQ_AT = (SEQUENCE_AT + (VARLEN_ ? 16 : 0) + 15) / 16 * 16;
  static constexpr int BARRIERS_AT = DQ_AT + (DQ_COPIES ? DQ_PLACES * 8 * DQ_PLACE_BYTES : 0),
                       BIAS_BARRIERS = 2 + (DQ_COPIES ? GROUPS * (DQ_FULLS + DQ_PLACES) : 2) + 10 * STAGES,
                       N_BARRIERS = BIAS_BARRIERS + (kernel_kind_traits<KIND_>::BIAS ? 2 * STAGES : 0) +
                                    (LOADS_ALONE ? 2 * DROP_STAGES : 0);
  static constexpr int SHARED_BYTES = BARRIERS_AT + 8 * N_BARRIERS;
  static_assert(BM == 64 || BM == 128, "how dQ is shared out");
  static_assert(BM == 64 || (!DROPS && KIND_ != flex),
                "a thread has a word with a bit to each pair");
  static_assert(!kernel_kind_traits<KIND_>::BIAS || (DQ_COPIES && !ORDERED_ && !VARLEN_ && BM == 64),
                "the warps that add dQ store the gradient of the bias, each that of a group");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
};

/* What a kernel of that kind takes. */
template <kernel_kind KIND> struct hopper_backward_params { typedef fa_hopper_backward_params type; };
template <> struct hopper_backward_params<biased> { typedef fa_hopper_biased_backward_params type; };

/* The maps of the bias and its gradient; NULL: there is none. */
struct hopper_bias_maps {
  const fa_tensor_map *bias = nullptr, *dbias = nullptr;
};

/* full: the data have arrived; empty: all consumers have released the stage. */
template <class C> struct hopper_backward_barriers {
  FA_DEVICE static uint32_t at(int i) { return shared_base() + C::BARRIERS_AT + 8 * i; }
  FA_DEVICE static uint32_t keys() { return at(0); }
  FA_DEVICE static uint32_t q_full(int s) { return at(1 + s); }
  FA_DEVICE static uint32_t q_empty(int s) { return at(1 + C::STAGES + s); }
  FA_DEVICE static uint32_t do_full(int s) { return at(1 + 2 * C::STAGES + s); }
  FA_DEVICE static uint32_t do_empty(int s) { return at(1 + 3 * C::STAGES + s); }
  FA_DEVICE static uint32_t rows_full(int s) { return at(1 + 4 * C::STAGES + s); }
  FA_DEVICE static uint32_t rows_empty(int s) { return at(1 + 5 * C::STAGES + s); }
};

/* Initialises the barriers that all main backward kernels have. */
template <class C> FA_DEVICE void hopper_backward_init_barriers() {
  typedef hopper_backward_barriers<C> bar;
  mbarrier_init(bar::keys(), 1);
  FA_NO_UNROLL
  for (int s = 0; s < C::STAGES; ++s) {
    mbarrier_init(bar::q_full(s), 1);
    mbarrier_init(bar::q_empty(s), 8); /* one lane of each warp */
    mbarrier_init(bar::do_full(s), 1);
    mbarrier_init(bar::do_empty(s), 8);
    mbarrier_init(bar::rows_full(s), 32);
    mbarrier_init(bar::rows_empty(s), 8);
  }
  mbarrier_init_fence();
}

/* And those that only hopper_backward has. */
template <class C> struct hopper_backward_all_barriers : hopper_backward_barriers<C> {
  typedef hopper_backward_barriers<C> base;
  FA_DEVICE static uint32_t keys_empty() { return base::at(1 + 6 * C::STAGES); }
  FA_DEVICE static uint32_t drop_full(int s) {
    return base::at((C::LOADS_ALONE ? C::BIAS_BARRIERS : 2 + 6 * C::STAGES) + s);
  }
  FA_DEVICE static uint32_t drop_empty(int s) {
    return base::at((C::LOADS_ALONE ? C::BIAS_BARRIERS + C::DROP_STAGES : 2 + 7 * C::STAGES) + s);
  }
  FA_DEVICE static uint32_t ds_full(int s) { return base::at(2 + 8 * C::STAGES + s); } /* by both groups */
  FA_DEVICE static uint32_t ds_empty(int s) { return base::at(2 + 9 * C::STAGES + s); }
  FA_DEVICE static uint32_t dq_ready() { return base::at(2 + 10 * C::STAGES); } /* the block may add to dQ */
  FA_DEVICE static uint32_t dq_added() { return base::at(3 + 10 * C::STAGES); }
  /* DQ_COPIES: a group's dQ of step n is in shared memory, and its place has been read */
  FA_DEVICE static uint32_t dq_full(int group, unsigned n) {
    return base::at(2 + 10 * C::STAGES + C::DQ_FULLS * group + static_cast<int>(n % C::DQ_FULLS));
  }
  FA_DEVICE static uint32_t dq_empty(int group, unsigned n) {
    return base::at(2 + 10 * C::STAGES + C::DQ_FULLS * C::GROUPS + C::DQ_PLACES * group +
                    static_cast<int>(n % C::DQ_PLACES));
  }
  FA_DEVICE static uint32_t bias_full(int s) { return base::at(C::BIAS_BARRIERS + s); }
  FA_DEVICE static uint32_t bias_empty(int s) { return base::at(C::BIAS_BARRIERS + C::STAGES + s); }
  /* Whoever is the last to use a stage gives it back: the two warps that store the gradient, or the consumers. */
  FA_DEVICE static void init_bias(bool has_gradient) {
    FA_NO_UNROLL
    for (int s = 0; s < C::STAGES; ++s) {
      mbarrier_init(bias_full(s), 1);
      mbarrier_init(bias_empty(s), has_gradient ? C::GROUPS : 8);
    }
  }
  FA_DEVICE static void init_drop(int s) {
    mbarrier_init(drop_full(s), 32 * C::DROP_WARPS);
    mbarrier_init(drop_empty(s), 8);
  }
  FA_DEVICE static void init() {
    mbarrier_init(keys_empty(), 8);
    for (int group = 0; C::DQ_COPIES && group < C::GROUPS; ++group) {
      for (unsigned n = 0; n < C::DQ_FULLS; ++n) mbarrier_init(dq_full(group, n), 4);
      for (unsigned n = 0; n < C::DQ_PLACES; ++n) mbarrier_init(dq_empty(group, n), 1);
    }
    if (!C::DQ_COPIES) {
      mbarrier_init(dq_ready(), 1);
      mbarrier_init(dq_added(), 8);
    }
    FA_NO_UNROLL
    for (int s = 0; s < C::STAGES; ++s) {
      mbarrier_init(ds_full(s), 8);
      mbarrier_init(ds_empty(s), 8);
      if (!C::DROPOUT || C::DROP_STAGES != C::STAGES) continue;
      init_drop(s);
    }
    FA_NO_UNROLL
    for (int s = 0; C::DROP_STAGES != C::STAGES && s < C::DROP_STAGES; ++s) init_drop(s);
  }
};

/* The block's sequence, loaded from global memory once, because every thread needs it again and again. */
template <class C> FA_DEVICE void hopper_store_sequence(const fa_attention_params &f) {
  const sequence seq = load_sequence(f, static_cast<int>(blockIdx.z));
  store_shared16(shared_base() + C::SEQUENCE_AT,
                 vec4{static_cast<uint32_t>(seq.q_row), static_cast<uint32_t>(seq.k_row),
                      static_cast<uint32_t>(seq.len_q), static_cast<uint32_t>(seq.len_k)});
}
template <class C> FA_DEVICE sequence hopper_load_sequence(const fa_attention_params &f) {
  sequence seq = {0, 0, f.seqlen_q, f.seqlen_k, 0};
  if constexpr (C::VARLEN) {
    const vec4 x = load_shared16(shared_base() + C::SEQUENCE_AT);
    seq = {static_cast<int>(x.x), static_cast<int>(x.y), static_cast<int>(x.z), static_cast<int>(x.w), 0};
  }
  seq.shift = f.top_left ? 0 : seq.len_k - seq.len_q;
  return seq;
}

/* The KV head and the sequence of a block. */
template <class C> FA_DEVICE int hopper_grid_head(const fa_backward_params &p) {
  if (!C::BIAS || p.grid_order == FA_GRID_KEYS_FIRST) return static_cast<int>(blockIdx.y);
  return static_cast<int>(p.grid_order == FA_GRID_HEADS_FIRST ? blockIdx.x : blockIdx.z);
}
template <class C> FA_DEVICE int hopper_grid_batch(const fa_backward_params &p) {
  return static_cast<int>(C::BIAS && p.grid_order == FA_GRID_BATCH_FIRST ? blockIdx.x : blockIdx.z);
}

/* Which of its KV head's blocks a block is, in the order in which they begin. In deterministic calls blocks of 2^heads_by_turns
 * heads are launched by turns, so that each begins some steps after the one that it waits for, and does not wait at its start.
 * x, n_x, y: as in the grid, or of clusters. */
struct hopper_block_turn {
  int x, kv_head;
};
FA_DEVICE hopper_block_turn hopper_turn_of(const fa_backward_params &p, int x, int n_x, int y) {
  const int others = (1 << p.heads_by_turns) - 1, n = (y & others) * n_x + x;
  return {n >> p.heads_by_turns, y - (y & others) + (n & others)};
}
template <class C> FA_DEVICE hopper_block_turn hopper_load_block_turn(const fa_backward_params &p, int y) {
  const int x = static_cast<int>(C::BIAS && p.grid_order != FA_GRID_KEYS_FIRST ? blockIdx.y : blockIdx.x);
  if constexpr (!C::DQ_SEMAPHORE) return {x, y};
  return hopper_turn_of(p, x, static_cast<int>(gridDim.x), y);
}
template <class C> FA_DEVICE hopper_block_turn hopper_load_block_turn(const fa_backward_params &p) {
  return hopper_load_block_turn<C>(p, hopper_grid_head<C>(p));
}

/* The first query head of the KV head's group. Where it takes some work it is worked out anew for each head, so that it takes no
 * register meanwhile. */
template <class C> FA_DEVICE int hopper_first_head(const fa_backward_params &p) {
  const int y = hopper_grid_head<C>(p);
  return hopper_load_block_turn<C>(p, C::DQ_SEMAPHORE ? opaque(y) : y).kv_head * p.forward.heads_per_kv;
}

/* What a block works on: one key block of one KV head. */
struct hopper_key_tile {
  sequence seq;
  int batch, kv_head, key0;
  block_range blocks; /* row blocks, as the masks by position give them */
  int end;            /* one past the group's last query head */
};

template <class C> FA_DEVICE hopper_key_tile hopper_load_key_tile(const fa_backward_params &p, int block) {
  const fa_attention_params &f = p.forward;
  hopper_key_tile t;
  t.batch = hopper_grid_batch<C>(p);
  t.kv_head = hopper_load_block_turn<C>(p).kv_head;
  t.key0 = block * C::BN;
  t.seq = hopper_load_sequence<C>(f);
  t.blocks = query_blocks<C>(f, t.seq, t.key0, min_int(t.key0 + C::BN, t.seq.len_k));
  t.end = (t.kv_head + 1) * f.heads_per_kv;
  return t;
}

/* The key blocks of a block: a single one, or with SPLITS every gridDim.x-th. */
template <class C> struct hopper_key_blocks {
  int n = 0; /* the number of key blocks before this one */
  FA_DEVICE int block(const fa_backward_params &p) const {
    const int x = hopper_load_block_turn<C>(p).x, blocks = static_cast<int>(gridDim.x);
    return C::SPLITS ? x + n * blocks : C::DQ_SEMAPHORE ? blocks - 1 - x : x;
  }
  FA_DEVICE bool is_there(const fa_backward_params &p) const {
    if (!C::SPLITS && n > 0) return false;
    if (!C::ORDERED && !C::VARLEN) return true;
    return block(p) * C::BN < hopper_load_sequence<C>(p.forward).len_k;
  }
};

/* What a step works on: one row tile of one query head. */
struct hopper_row_tile {
  int head, row0, kind; /* kind: of the tile, in flex kernels */
};

/* The row tiles that a key block visits for one head. */
template <class C>
FA_DEVICE tile_walk<typename C::MODS> hopper_row_tiles(const fa_attention_params &f, const hopper_key_tile &t,
                                                       int head) {
  return tile_walk<typename C::MODS>(f.flex, f.flex.rows, t.batch, head, t.key0 / C::BN, t.blocks);
}

/* The batch coordinate in the tensor maps: 0 with cu_seqlens, where all tokens are along the row axis. */
template <class C> FA_DEVICE int hopper_map_batch(const fa_attention_params &f, int batch) {
  return C::VARLEN && f.cu_seqlens_q ? 0 : batch;
}

} // namespace fa

#endif
