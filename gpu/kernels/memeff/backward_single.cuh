/* The memeff kernel that computes all gradients of float32 problems in one pass, for head dims (of Q, K and
 * of V) up to D. A block owns BM keys of one KV head with all columns, and loops over the query blocks that
 * see them, for all query heads of the group.
 *
 *   S^T = K Q^T, dP^T = V dO^T, P = exp(S scale + bias - LSE), dS = P (dP - delta)
 *   dV += P^T dO and dK += dS^T Q stay in registers; dQ += dS K is added to dQ itself with atomic additions,
 *   after
 *   prepare has cleared it.
 *
 * That takes five GEMMs instead of the seven of memeff_backward_keys and memeff_backward_queries, whose
 * results in return are the same in every run. K and V stay in shared memory; Q, dO, LSE and delta are
 * double-buffered. A warp has 16 keys: P and dS go from its registers into the GEMMs of dV and dK. dS also
 * goes through shared memory, for the GEMM of dQ, where a warp has 16 rows and 32 columns, and for the
 * gradient of the bias. There are two barriers per query block: one when Q and dO have arrived and all are
 * done with the previous dS, one when dS is in shared memory. */
#ifndef FA_GPU_KERNELS_MEMEFF_BACKWARD_SINGLE_CUH
#define FA_GPU_KERNELS_MEMEFF_BACKWARD_SINGLE_CUH

#include "gpu/kernels/memeff/backward_keys.cuh"
#include "gpu/kernels/memeff/gemm.cuh"

namespace fa {

template <int D_> struct memeff_single_config {
  typedef f32 T;
  static constexpr int D = D_, THREADS = FA_MEMEFF_BACKWARD_THREADS, WARPS = THREADS / 32;
  static constexpr int BM = 16 * WARPS, BN = D <= 64 ? 64 : 32, VC = D; /* keys, query rows, columns */
  static constexpr int KEY_BYTES = BM * memeff_row<D>::BYTES, ROW_BYTES = BN * memeff_row<D>::BYTES;
  static constexpr int VALUE_BYTES = 2 * BN * 4, STAGE_BYTES = 2 * ROW_BYTES + VALUE_BYTES;
  static constexpr int K_AT = 0, V_AT = KEY_BYTES, STAGE_AT = 2 * KEY_BYTES;
  static constexpr int DO_IN_STAGE = ROW_BYTES, VALUES_IN_STAGE = 2 * ROW_BYTES;
  static constexpr int DS_AT = STAGE_AT + 2 * STAGE_BYTES; /* [BN][BM], keys in_depth_order */
  static constexpr int SHARED_BYTES = DS_AT + BN * memeff_row<BM>::BYTES;
  static_assert(SHARED_BYTES <= 227 * 1024, "devices of compute capability 9.0 have no more");
  static_assert(BN / 16 * (D / 32) == WARPS, "a warp has 16 rows and 32 columns of dQ");
  static_assert(2 * BN <= THREADS, "a thread fetches one LSE or delta");
  typedef float score_tile[BN / 8][4];
  typedef float key_tile[D / 8][4]; /* columns in the order of gemm_tile_rows */
  FA_DEVICE static uint32_t stage(int buffer) { return shared_base() + STAGE_AT + buffer * STAGE_BYTES; }
};

/* Starts copying a query block's rows. */
template <class C>
FA_DEVICE void fetch_stage(const fa_memeff_backward_params &p, const memeff_coord &t, int row0, int buffer,
                           int thread) {
  const fa_attention_params &f = p.forward;
  load_memeff_tile<f32, C::BN, C::D, C::THREADS>(C::stage(buffer), q_rows(f, t), row0, 0, f.aligned, thread);
  load_memeff_tile<f32, C::BN, C::D, C::THREADS>(C::stage(buffer) + C::DO_IN_STAGE, do_rows(p, t), row0, 0,
                                          f.aligned, thread);
  cp_async_commit();
}

/* The thread's LSE or delta of a query block. A row that does not exist gets LSE = inf, so that its P is
 * 0. opaque: the kernel has no register for what the address is made of. */
template <class C>
FA_DEVICE float load_row_value(const fa_memeff_backward_params &p, const memeff_coord &t, int row0, int thread) {
  const fa_attention_params &f = p.forward;
  const int row = row0 + opaque(thread) % C::BN;
  const bool is_lse = thread < C::BN;
  if (thread >= 2 * C::BN || row >= t.seq.len_q) return is_lse ? infinity() : 0.0f;
  const float x = load_global((is_lse ? f.lse : p.delta) + statistics_at(f, is_lse ? f.lse_stride : p.delta_stride,
                                                                         t.batch, t.head, opaque(t.seq.q_row), row));
  return is_lse ? lse_of_p(f, t.head, x) : x;
}
template <class C> FA_DEVICE void store_row_value(float x, int buffer, int thread) {
  if (thread < 2 * C::BN) store_shared4(C::stage(buffer) + C::VALUES_IN_STAGE + thread * 4, float_bits(x));
}

/* P and dS of this warp's 16 keys by BN rows, for calls without bias and dropout. */
template <class C, bool MASK>
FA_DEVICE void plain_gradients(typename C::score_tile &s, typename C::score_tile &dp,
                               const fa_memeff_backward_params &p, const memeff_coord &t, int key, int row,
                               uint32_t values) {
  FA_UNROLL
  for (int n = 0; n < C::BN / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float lse = as_float(load_shared4(values + (8 * n + e) * 4));
      const float delta = as_float(load_shared4(values + (C::BN + 8 * n + e) * 4));
      const row_limits limits = MASK ? limits_of_row<true>(p.forward, t.seq, row + 8 * n + e) : row_limits{0, 0};
      FA_UNROLL
      for (int r = 0; r < 2; ++r) {
        float &x = s[n][2 * r + e], &y = dp[n][2 * r + e];
        const bool visible = !MASK || (key + 8 * r >= limits.lo && key + 8 * r < limits.hi);
        x = visible ? exp2_approx(multiply(fmaf(x, p.scale, -lse), 1.44269504088896340736f)) : 0.0f;
        y = visible ? x * (y - delta) : 0.0f;
      }
    }
  }
}

template <class C> FA_DEVICE void store_ds(const typename C::score_tile &ds, int thread) {
  const int lane = thread % 32;
  const uint32_t first = shared_base() + C::DS_AT + lane % 4 * 2 * memeff_row<C::BM>::BYTES +
                         (thread / 32 * 16 + in_depth_order(lane / 4)) * 4;
  FA_UNROLL
  for (int n = 0; n < C::BN / 8; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i)
      store_shared4(first + (8 * n + i % 2) * memeff_row<C::BM>::BYTES + i / 2 * 32, float_bits(ds[n][i]));
  }
}

/* Adds a warp's 16 rows and 32 columns of dQ of a query block. keys: those [begin, end) of the block that
 * some row sees. */
template <class C>
FA_DEVICE void add_dq(const fa_memeff_backward_params &p, const memeff_coord &t, int row0, block_range keys,
                      int thread) {
  const int lane = thread % 32, tile = thread / 32 % (C::BN / 16), col0 = thread / 32 / (C::BN / 16) * 32;
  float dq[4][4] = {};
  gemm_ordered<C::BM, C::D>(dq, first_tile_a<C::BM>(shared_base() + C::DS_AT, 16 * tile, lane),
                                first_tile_rows<C::D>(shared_base() + C::K_AT, col0, lane), keys.begin / 8,
                                (keys.end + 7) / 8);
  const int col = col0 + lane % 4 * 8;
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + 16 * tile + lane / 4 + 8 * r;
    if (row >= t.seq.len_q) continue;
    float *to = static_cast<float *>(p.dq) + row_at(p.dq_stride, t, row) + col;
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      float x[4];
      FA_UNROLL
      for (int j = 0; j < 4; ++j) x[j] = dq[j][2 * r + e] * p.scale;
      if (p.forward.aligned) {
        if (col + 4 * e < p.forward.head_dim) atomic_add4(to + 4 * e, x);
        continue;
      }
      FA_UNROLL
      for (int j = 0; j < 4; ++j)
        if (col + 4 * e + j < p.forward.head_dim) atomic_add(to + 4 * e + j, x[j]);
    }
  }
}

/* Stores dS of a query block as the gradient of the bias. */
template <class C>
FA_DEVICE void write_ds(const fa_memeff_backward_params &p, const memeff_coord &t, int row0, int key0,
                        int thread) {
  constexpr int CHUNKS = C::BM / 8;
  FA_NO_UNROLL
  for (int i = thread; i < C::BN * CHUNKS; i += C::THREADS) {
    const int row = i / CHUNKS, key = key0 + i % CHUNKS * 8;
    if (row0 + row >= t.seq.len_q) return;
    const uint32_t from = shared_base() + C::DS_AT + row * memeff_row<C::BM>::BYTES + i % CHUNKS * 32;
    const vec4 even = load_shared16(from), odd = load_shared16(from + 16);
    const uint32_t x[8] = {even.x, odd.x, even.y, odd.y, even.z, odd.z, even.w, odd.w};
    float *to = static_cast<float *>(p.dbias) + t.batch * p.dbias_stride.batch +
                t.head * p.dbias_stride.head + (row0 + row) * p.dbias_stride.row + key;
    FA_UNROLL
    for (int e = 0; e < 8; ++e)
      if (key + e < p.forward.seqlen_k) store_global(to + e, as_float(x[e]));
  }
}

/* Writes zeros to the gradient of the bias for the block's keys and rows [begin, end), in all heads of the
 * group. */
template <class C>
FA_DEVICE void clear_bias_rows(const fa_memeff_backward_params &p, memeff_coord t, int key0, int begin, int end,
                               int thread) {
  const int n_keys = min_int(C::BM, p.forward.seqlen_k - key0);
  for (int head = 0; head < p.forward.heads_per_kv; ++head, ++t.head) {
    float *to =
        static_cast<float *>(p.dbias) + t.batch * p.dbias_stride.batch + t.head * p.dbias_stride.head + key0;
    FA_NO_UNROLL
    for (int row = begin + thread / C::BM; row < end; row += C::THREADS / C::BM)
      if (thread % C::BM < n_keys) store_global(to + row * p.dbias_stride.row + thread % C::BM, 0.0f);
  }
}

/* The keys [begin, end) of the block, relative to its first, that some row of a query block sees. */
template <class C>
FA_DEVICE block_range seen_keys(const fa_attention_params &f, const sequence &seq, int row0, int key0) {
  const int lo = limits_of_row<true>(f, seq, row0).lo;
  const int hi = limits_of_row<true>(f, seq, min_int(row0 + C::BN, seq.len_q) - 1).hi;
  return block_range{max_int(lo - key0, 0), min_int(hi - key0, C::BM)};
}

/* Stores dK and dV of a warp's 16 keys. key: the lane's first. */
template <class C>
FA_DEVICE void write_keys(const fa_memeff_backward_params &p, const memeff_coord &t,
                          const typename C::key_tile &dk, const typename C::key_tile &dv, int key, int lane) {
  const fa_attention_params &f = p.forward;
  const float factor_k[2] = {p.scale, p.scale}, factor_v[2] = {f.dropout_scale, f.dropout_scale};
  write_tile(static_cast<float *>(p.dk) + t.batch * p.dk_stride.batch + t.kv_head * p.dk_stride.head +
                 t.seq.k_row * p.dk_stride.row,
             p.dk_stride.row, dk, factor_k, key, t.seq.len_k, f.head_dim, f.aligned, lane);
  write_tile(static_cast<float *>(p.dv) + t.batch * p.dv_stride.batch + t.kv_head * p.dv_stride.head +
                 t.seq.k_row * p.dv_stride.row,
             p.dv_stride.row, dv, factor_v, key, t.seq.len_k, f.head_dim_v, f.aligned, lane);
}

/* P and dS of a query block, and dV += P^T dO. */
template <class C>
FA_DEVICE void single_scores(typename C::score_tile &ds, typename C::key_tile &dv,
                             const fa_memeff_backward_params &p, const memeff_coord &t, int key0, int row0,
                             int buffer, int thread) {
  const fa_attention_params &f = p.forward;
  const int lane = thread % 32, warp_key = key0 + thread / 32 * 16;
  const int key = warp_key + lane / 4, row = row0 + lane % 4 * 2;
  const uint32_t stage = C::stage(buffer);
  typename C::score_tile s = {};
  gemm_tiles<C::D>(s, first_tile_a<C::D>(shared_base() + C::K_AT, thread / 32 * 16, lane),
                       first_tile_b<C::D>(stage, lane));
  gemm_tiles<C::D>(ds, first_tile_a<C::D>(shared_base() + C::V_AT, thread / 32 * 16, lane),
                       first_tile_b<C::D>(stage + C::DO_IN_STAGE, lane));
  const uint32_t values = stage + C::VALUES_IN_STAGE + lane % 4 * 8;
  if (f.bias || f.dropout_linear)
    key_gradients<C>(s, ds, p, t, key, row);
  else if (keys_need_mask<true>(f, t.seq, row0, min_int(row0 + C::BN, t.seq.len_q), warp_key, warp_key + 16))
    plain_gradients<C, true>(s, ds, p, t, key, row, values);
  else
    plain_gradients<C, false>(s, ds, p, t, key, row, values);
  gemm_tile_rows<C::D>(dv, s, first_tile_rows<C::D>(stage + C::DO_IN_STAGE, 0, lane));
}

template <class C> FA_DEVICE void memeff_backward_single(const fa_memeff_backward_params &p) {
  const fa_attention_params &f = p.forward;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const grid_place place = longest_first_coord(f);
  const int key0 = place.block * C::BM; /* under a causal mask most rows see the first keys */
  memeff_coord t = load_memeff_coord(f, place.batch, place.head * f.heads_per_kv);
  clear_masked<C>(p, t, p.dk, p.dk_stride, f.head_dim, key0, 0, thread);
  clear_masked<C>(p, t, p.dv, p.dv_stride, f.head_dim_v, key0, 0, thread);
  const bool dbias = p.dbias && !p.dbias_sums, exists = key0 < t.seq.len_k;
  block_range blocks = {0, 0};
  if (exists) blocks = query_blocks_of_keys<C::BN>(f, t.seq, key0, min_int(key0 + C::BM, t.seq.len_k));
  if (blocks.end <= blocks.begin) blocks.begin = blocks.end = 0;
  if (dbias) {
    clear_bias_rows<C>(p, t, key0, 0, blocks.begin * C::BN, thread);
    clear_bias_rows<C>(p, t, key0, blocks.end * C::BN, t.seq.len_q, thread);
  }
  if (!exists) return;

  typename C::key_tile dk = {}, dv = {};
  walk at = {t.head, blocks.begin};
  const int end = blocks.begin < blocks.end ? t.head + f.heads_per_kv : t.head;
  int buffer = 0;
  if (at.head < end) {
    load_memeff_tile<f32, C::BM, C::D, C::THREADS>(shared_base() + C::K_AT, k_rows(f, t), key0, 0, f.aligned,
                                            thread);
    load_memeff_tile<f32, C::BM, C::D, C::THREADS>(shared_base() + C::V_AT, v_rows(f, t), key0, 0, f.aligned,
                                            thread);
    fetch_stage<C>(p, t, at.m * C::BN, 0, thread);
    store_row_value<C>(load_row_value<C>(p, t, at.m * C::BN, thread), 0, thread);
  }
  FA_NO_UNROLL
  while (at.head < end) {
    cp_async_wait<0>();
    sync_block(); /* Q and dO have arrived for all; all are done with dS and the other buffer */
    const walk next = next_of(at, blocks);
    float value = 0.0f;
    if (next.head < end) {
      t.head = next.head;
      fetch_stage<C>(p, t, next.m * C::BN, buffer ^ 1, thread);
      value = load_row_value<C>(p, t, next.m * C::BN, thread);
    }
    t.head = at.head;
    const int row0 = at.m * C::BN, warp_key = thread / 32 * 16;
    const block_range keys = seen_keys<C>(f, t.seq, row0, key0);
    const bool works = warp_key < keys.end && warp_key + 16 > keys.begin;
    typename C::score_tile ds = {};
    if (works) single_scores<C>(ds, dv, p, t, key0, row0, buffer, thread);
    if (works || dbias) store_ds<C>(ds, thread);
    store_row_value<C>(value, buffer ^ 1, thread);
    sync_block(); /* dS is in shared memory */
    if (works) gemm_tile_rows<C::D>(dk, ds, first_tile_rows<C::D>(C::stage(buffer), 0, lane));
    add_dq<C>(p, t, row0, keys, thread);
    if (dbias) write_ds<C>(p, t, row0, key0, thread);
    at = next;
    buffer ^= 1;
  }
  write_keys<C>(p, t, dk, dv, key0 + thread / 32 * 16 + lane / 4, lane);
}

} // namespace fa

#endif
