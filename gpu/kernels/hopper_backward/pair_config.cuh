/* Configuration of the main backward kernel for sm_90a for head dims above 128 (pair.cuh): layout of shared
 * memory, barriers, and what a block works on. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_CONFIG_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_CONFIG_CUH

#include "gpu/kernels/hopper_backward/config.cuh"

namespace fa {

/* D: of the tiles, whole panels; the workspace's rows may be 32 columns shorter. */
template <class T_, int D_, kernel_kind KIND_ = plain, bool VARLEN_ = false, bool ORDERED_ = false>
struct hopper_backward_pair_config : hopper_backward_kind<KIND_, VARLEN_, ORDERED_> {
  typedef T_ T;
  static constexpr int D = D_, BM = 64, BN = 64, RANKS = 2, THREADS = 384;
  static constexpr int PANELS = D / 64, OTHER_PANELS = 2, STAGES = 2;
  static constexpr int DO_STAGES = D == 256 ? 1 : 2;                                 /* what fits */
  static constexpr int KV_PANEL = BN * 128, Q_PANEL = BM * 128, DS_PANEL = BN * 128; /* bytes */
  static constexpr int KV_BYTES = PANELS * KV_PANEL, Q_BYTES = PANELS * Q_PANEL, DS_BYTES = DS_PANEL;
  static constexpr int K_AT = 0, V_AT = KV_BYTES, OTHER_K_AT = 2 * KV_BYTES,
                       Q_AT = OTHER_K_AT + OTHER_PANELS * KV_PANEL, DO_AT = Q_AT + STAGES * Q_BYTES,
                       DS_AT = DO_AT + DO_STAGES * Q_BYTES, OTHER_DS_AT = DS_AT + STAGES * DS_BYTES,
                       P_AT = OTHER_DS_AT + STAGES * DS_BYTES, ROWS_AT = P_AT + BM * BN * 4;
  static constexpr int ROW_BYTES = BM * 4; /* of LSE; as much for delta */
  static constexpr int DROP_AT = ROWS_AT + STAGES * 2 * ROW_BYTES;
  static constexpr bool DROPS = kernel_kind_traits<KIND_>::DROPOUT;
  /* with dropout no warps are left that would take turns */
  static constexpr bool DQ_SEMAPHORE = ORDERED_ && KIND_ != flex && !DROPS, SPLITS = ORDERED_ && !DQ_SEMAPHORE;
  static constexpr int DROP_BYTES = DROPS ? BM * BN / 8 : 0;        /* one bit per pair (row, key) */
  static constexpr int SEQUENCE_AT = DROP_AT + STAGES * DROP_BYTES; /* the block's sequence, for VARLEN */
  /* flex: which row tiles the last steps have. As many as there are from the one whose dQ is added to the one whose LSE is
   * loaded */
  static constexpr int FLEX_TILES_AT = SEQUENCE_AT + (VARLEN_ ? 16 : 0), FLEX_TILES = 4;
  static constexpr int BARRIERS_AT = FLEX_TILES_AT + (KIND_ == flex ? 8 * FLEX_TILES : 0), N_BARRIERS = 13 * STAGES + 5;
  static constexpr int SHARED_BYTES = BARRIERS_AT + 8 * N_BARRIERS;
  static constexpr bool APART =
      KIND_ != plain || VARLEN_ || ORDERED_; /* a producer warp for dO alone, with its registers */
  /* dropout warps that also know where a sequence lies need more, and the consumers can spare them */
  static constexpr int PRODUCER_REGISTERS = KIND_ == several ? 40 : 24,
                       CONSUMER_REGISTERS = KIND_ == several ? 232 : 240;
  static_assert(D == 192 || D == 256, "how dQ is shared out");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
};

/* A warpgroup's columns of dQ. D = 256: pieces of 64. D = 192: 64 for the dK group of each block; the dV
 * groups have halves of the panel in between. */
template <class C, bool DV_GROUP> struct hopper_pair_columns {
  static constexpr int N = DV_GROUP && C::D == 192 ? 32 : 64;
  FA_DEVICE static int first(int rank) {
    return 128 * rank + (DV_GROUP ? C::D == 192 ? 64 - 96 * rank : 64 : 0);
  }
};

/* The first panel of the other block's K that this block needs. */
template <class C> FA_DEVICE int hopper_pair_panel(int rank) {
  return rank * (C::PANELS - C::OTHER_PANELS);
}

/* full: the data have arrived; empty: all consumers have released the stage. */
template <class C> struct hopper_pair_barriers {
  FA_DEVICE static uint32_t at(int of, int s) {
    return shared_base() + C::BARRIERS_AT + 8 * (C::STAGES * of + s);
  }
  FA_DEVICE static uint32_t q_full(int s) { return at(0, s); }
  FA_DEVICE static uint32_t q_empty(int s) { return at(1, s); }
  FA_DEVICE static uint32_t rows_full(int s) { return at(2, s); }
  FA_DEVICE static uint32_t rows_empty(int s) { return at(3, s); }
  FA_DEVICE static uint32_t ds_full(int s) { return at(4, s); }
  FA_DEVICE static uint32_t ds_empty(int s) { return at(5, s); } /* also of the other block's copy of it */
  FA_DEVICE static uint32_t other_full(int s) { return at(6, s); }
  FA_DEVICE static uint32_t drop_full(int s) { return at(7, s); }
  FA_DEVICE static uint32_t drop_empty(int s) { return at(8, s); }
  FA_DEVICE static uint32_t do_full(pipeline_state<C::DO_STAGES> pipe) { return at(9, pipe.stage()); }
  FA_DEVICE static uint32_t do_empty(pipeline_state<C::DO_STAGES> pipe) { return at(10, pipe.stage()); }
  /* VARLEN: a tile has arrived, but is not full before its ragged tail has been cleared */
  FA_DEVICE static uint32_t q_arrived(int s) { return at(11, s); }
  FA_DEVICE static uint32_t do_arrived(int s) { return at(12, s); }
  FA_DEVICE static uint32_t keys_arrived() { return at(13, 0); }
  FA_DEVICE static uint32_t keys() { return at(13, 1); }
  FA_DEVICE static uint32_t keys_empty() { return at(13, 2); } /* SPLITS only */
  FA_DEVICE static uint32_t dq_ready() { return at(13, 3); }   /* the block may add to dQ */
  FA_DEVICE static uint32_t dq_added() { return at(13, 4); }
  FA_DEVICE static void init() {
    FA_NO_UNROLL
    for (int s = 0; s < C::STAGES; ++s) {
      mbarrier_init(q_full(s), 1);
      mbarrier_init(q_empty(s), 8 * C::RANKS); /* one lane of each warp of both blocks */
      mbarrier_init(rows_full(s), 1);
      mbarrier_init(rows_empty(s), 8);
      mbarrier_init(ds_full(s), 4);
      mbarrier_init(ds_empty(s), 8 * C::RANKS);
      mbarrier_init(other_full(s), 1);
      mbarrier_init(drop_full(s), HOPPER_DROP_WARPS);
      mbarrier_init(drop_empty(s), 4);
      mbarrier_init(at(9, s), 1);
      mbarrier_init(at(10, s), 8 * C::RANKS);
      mbarrier_init(q_arrived(s), 1);
      mbarrier_init(do_arrived(s), 1);
    }
    mbarrier_init(keys_arrived(), 1);
    mbarrier_init(keys(), 1);
    mbarrier_init(keys_empty(), 8);
    mbarrier_init(dq_ready(), 2); /* who takes turns, and who passes them on */
    mbarrier_init(dq_added(), 8);
    mbarrier_init_fence();
  }
};

/* The state of dO's pipeline. */
template <class C> FA_DEVICE pipeline_state<C::DO_STAGES> hopper_pair_do_pipeline(pipeline_state<C::STAGES> pipe) {
  return pipeline_state<C::DO_STAGES>{pipe.n};
}

/* Named barriers: HOPPER_PAIR_P_FULL + warp, of a warp of each group, hands over P; by HOPPER_PAIR_KEYS_READ the
 * dK group learns that the other one is done with K. That P has been read is known from its dS. */
enum { HOPPER_PAIR_P_FULL = 1, HOPPER_PAIR_KEYS_READ = 5 };

/* x, the same in all lanes of a warp. If x comes from shared memory, the vote makes that known to the
 * compiler, so that loop counters need no register in each lane. */
template <class C> FA_DEVICE bool hopper_pair_vote(bool x) {
  return C::VARLEN ? any_lane(x) : x;
}

/* hopper_load_block_turn of a cluster. */
template <class C> FA_DEVICE hopper_block_turn hopper_pair_load_turn(const fa_backward_params &p) {
  const int x = opaque(static_cast<int>(blockIdx.x)) / C::RANKS, y = opaque(static_cast<int>(blockIdx.y));
  if constexpr (!C::DQ_SEMAPHORE) return {x, y};
  return hopper_turn_of(p, x, static_cast<int>(gridDim.x) / C::RANKS, y);
}

/* The pairs of key blocks of a cluster: a single one, or with SPLITS those of its accumulator. */
template <class C> struct hopper_pair_key_tiles {
  int n = 0; /* the number of pairs before this one */
  FA_DEVICE int block(const fa_backward_params &p) const {
    const int x = opaque(static_cast<int>(blockIdx.x)), blocks = static_cast<int>(gridDim.x);
    if constexpr (C::DQ_SEMAPHORE) /* from the last pair to the first */
      return blocks - C::RANKS * (hopper_pair_load_turn<C>(p).x + 1) + x % C::RANKS;
    return x + (C::SPLITS ? opaque(n) * blocks : 0);
  }
  FA_DEVICE bool is_there(const fa_backward_params &p) const {
    if (!C::SPLITS && n > 0) return false;
    if (!C::SPLITS && !C::VARLEN) return true;
    return hopper_pair_vote<C>(block(p) / C::RANKS * (C::RANKS * C::BN) < hopper_load_sequence<C>(p.forward).len_k);
  }
};

/* A thread's index in its group, recomputed. */
FA_DEVICE int hopper_pair_thread() {
  return opaque(static_cast<int>(threadIdx.x)) & 127;
}

/* What a block works on; its rows are those that see keys of the cluster. */
template <class C>
FA_DEVICE hopper_key_tile hopper_pair_load_key_tile(const fa_backward_params &p, hopper_pair_key_tiles<C> at) {
  const fa_attention_params &f = p.forward;
  const int block = at.block(p), first = block / C::RANKS * (C::RANKS * C::BN);
  hopper_key_tile t;
  t.batch = opaque(static_cast<int>(blockIdx.z));
  t.kv_head = hopper_pair_load_turn<C>(p).kv_head;
  t.key0 = block * C::BN;
  t.seq = hopper_load_sequence<C>(f);
  t.blocks = query_blocks<C>(f, t.seq, first, min_int(first + C::RANKS * C::BN, t.seq.len_k));
  t.end = (t.kv_head + 1) * f.heads_per_kv;
  return t;
}

/* What a step works on: a row block of a query head. kind: in flex kernels, of the tile. */
struct hopper_pair_tile {
  int head, block, kind;
};

/* The row blocks that a block loops over, for all heads of the group. The end of the loop is recomputed each
 * time, which is cheaper than keeping it. */
template <class C, bool FLEX = C::FLEX> struct hopper_pair_walk {
  int head, block;
  FA_DEVICE hopper_pair_walk(int head_, int block_) : head(head_), block(block_) {}
  FA_DEVICE hopper_pair_walk(const fa_attention_params &f, const hopper_key_tile &t)
      : head(t.blocks.begin < t.blocks.end ? t.kv_head * f.heads_per_kv : t.end), block(t.blocks.begin) {}
  FA_DEVICE bool is_there(const hopper_key_tile &t) const { return head < t.end; }
  FA_DEVICE bool has_next(const fa_backward_params &p, hopper_pair_key_tiles<C> keys) const {
    const hopper_key_tile t = hopper_pair_load_key_tile<C>(p, keys);
    return hopper_pair_vote<C>(head + 1 < t.end || block + 1 < t.blocks.end);
  }
  FA_DEVICE hopper_pair_walk after(const hopper_key_tile &t) const {
    hopper_pair_walk x = {opaque(head), opaque(block) + 1};
    if (x.block < t.blocks.end) return x;
    return {x.head + 1, t.blocks.begin};
  }
  FA_DEVICE hopper_pair_tile tile(pipeline_state<C::STAGES>) const { return {head, block, 0}; }
};

/* The row tiles that both blocks of a cluster visit for one head: lists are of the cluster's keys. */
template <class C>
FA_DEVICE tile_walk<typename C::MODS> hopper_pair_row_tiles(const fa_attention_params &f, const hopper_key_tile &t,
                                                            int head) {
  return tile_walk<typename C::MODS>(f.flex, f.flex.rows, t.batch, head, t.key0 / (C::RANKS * C::BN), t.blocks);
}

/* In flex kernels who loads LSE and delta says which tile they are of, so that all others need to know only how many steps
 * there are. */
template <class C> FA_DEVICE uint32_t hopper_pair_tile_address(pipeline_state<C::STAGES> pipe) {
  return shared_base() + C::FLEX_TILES_AT + 8 * (pipe.n % C::FLEX_TILES);
}
template <class C> struct hopper_pair_walk<C, true> {
  int left; /* steps, with this one */
  FA_DEVICE hopper_pair_walk(const fa_attention_params &f, const hopper_key_tile &t) : left(0) {
    FA_NO_UNROLL
    for (int head = t.kv_head * f.heads_per_kv; head < t.end; ++head)
      left += hopper_pair_row_tiles<C>(f, t, head).end();
    left = uniform(left);
  }
  FA_DEVICE bool is_there(const hopper_key_tile &) const { return left > 0; }
  FA_DEVICE bool has_next(const fa_backward_params &, hopper_pair_key_tiles<C>) const { return left > 1; }
  FA_DEVICE hopper_pair_walk after(const hopper_key_tile &) const {
    hopper_pair_walk x = *this;
    --x.left;
    return x;
  }
  /* Once the step's LSE is full, until that of the step after next has been released. */
  FA_DEVICE hopper_pair_tile tile(pipeline_state<C::STAGES> pipe) const {
    const uint32_t at = hopper_pair_tile_address<C>(pipe);
    const int entry = uniform(static_cast<int>(load_shared4(at)));
    return {uniform(static_cast<int>(load_shared4(at + 4))), entry >> 2, entry & 3};
  }
};

} // namespace fa

#endif
