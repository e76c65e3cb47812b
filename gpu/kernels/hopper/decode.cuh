/* Attention of few rows over a KV cache whose keys are divided into splits, in one kernel: cache/forward.cuh, where
 * the splits of the same rows are the blocks of a cluster. Each leaves its rows of O and their LSE in its own shared
 * memory; then the blocks share the rows out, and a warp gathers a row from all of them. So nothing goes through the
 * workspace, and no second kernel has to be waited for. */
#ifndef FA_GPU_KERNELS_HOPPER_DECODE_CUH
#define FA_GPU_KERNELS_HOPPER_DECODE_CUH

#include "gpu/kernels/cache/combine.cuh"
#include "gpu/kernels/cache/forward.cuh"
#include "gpu/kernels/machine/prim_sm90.cuh"

namespace fa {

/* The rows of a split lie behind the first warp's part, as such parts do: O, and the LSE where a part has its maximum. */
template <class T, int D, int BLOCKS>
struct hopper_decode_config : cache_config<T, D, few_rows, false, BLOCKS, false> {
  typedef cache_config<T, D, few_rows, false, BLOCKS, false> base;
  static constexpr int ROWS_AT = base::PART_BYTES;
  /* More than 8 blocks of a cluster find room less often, and where one fills a processor, some wait for a whole round. */
  static constexpr int A_PROCESSOR = 3 - BLOCKS, MOST_SPLITS = 8 * BLOCKS;
  static_assert(ROWS_AT + base::PART_BYTES <= base::PART_STEP, "they have a place that no part takes");
};

template <class C> FA_DEVICE uint32_t decode_row_at(int row) {
  return shared_base() + C::ROWS_AT + row * C::PART_ROW;
}

/* Where the epilogue puts a split's rows. */
template <class C> struct decode_rows {
  FA_DEVICE static void columns(const fa_cache_params &, const cache_work_tile &, int row, packed_row,
                                int column, vec4 x, vec4 y) {
    store_shared16(decode_row_at<C>(row) + column * 4, x);
    store_shared16(decode_row_at<C>(row) + column * 4 + 16, y);
  }
  FA_DEVICE static void lse(const fa_cache_params &, const cache_work_tile &, int row, packed_row,
                            float lse) {
    store_shared4(decode_row_at<C>(row) + C::D * 4, float_bits(lse));
  }
};

/* Of a split without keys. Zeros, so that whoever gathers need not look. */
template <class C>
FA_DEVICE void store_no_keys(const fa_cache_params &p, const cache_work_tile &work, int thread) {
  const vec4 zeros = {0, 0, 0, 0};
  const packed_row any = {0, 0};
  for (int i = thread; i < work.n_rows * (C::D / 8); i += C::THREADS) {
    const int row = i / (C::D / 8), chunk = i % (C::D / 8);
    decode_rows<C>::columns(p, work, row, any, chunk * 8, zeros, zeros);
    if (chunk == 0) decode_rows<C>::lse(p, work, row, any, -infinity());
  }
}

/* The splits' shares of a row, a lane for each split, and the row's LSE; -inf: no split has a key that it sees. */
struct decode_weights {
  float own, lse;
};
template <class C> FA_DEVICE decode_weights weigh_splits(const fa_cache_params &p, int row, int lane) {
  float own = -infinity();
  if (lane < p.n_splits)
    own = as_float(load_cluster4(cluster_address(decode_row_at<C>(row) + C::D * 4, lane)));
  const float max = warp_max(own);
  if (max == -infinity()) return decode_weights{0.0f, max};
  const float share = exp2_approx(multiply(own - max, LOG2E)), sum = warp_sum(share);
  return decode_weights{share / sum, max + natural_log(sum)};
}

/* to += four columns of every split's row, times its share. All lanes of a warp. */
template <class C>
FA_DEVICE void gather_columns(float (&to)[4], const fa_cache_params &p, const decode_weights &w, int row,
                              int column) {
  constexpr int AT_ONCE = 4;
  FA_NO_UNROLL
  for (int first = 0; first < p.n_splits; first += AT_ONCE) {
    vec4 x[AT_ONCE];
    FA_UNROLL
    for (int i = 0; i < AT_ONCE; ++i) /* beyond the last split its row again, of weight 0 */
      x[i] = load_cluster16(
          cluster_address(decode_row_at<C>(row) + column * 4, cache_min(first + i, p.n_splits - 1)));
    FA_UNROLL
    for (int i = 0; i < AT_ONCE; ++i) {
      const float weight =
          as_float(static_cast<uint32_t>(from_lane(static_cast<int>(float_bits(w.own)), first + i)));
      to[0] = fmaf(weight, as_float(x[i].x), to[0]);
      to[1] = fmaf(weight, as_float(x[i].y), to[1]);
      to[2] = fmaf(weight, as_float(x[i].z), to[2]);
      to[3] = fmaf(weight, as_float(x[i].w), to[3]);
    }
  }
}

/* One row, by a warp: four columns a lane. */
template <class C>
FA_DEVICE void gather_row(const fa_cache_params &p, const cache_work_tile &work, int row, int lane) {
  const packed_row at = unpack_row(p, work.kv_head, work.row0 + row);
  const decode_weights w = weigh_splits<C>(p, row, lane);
  uint16_t *o = row_of_o(p, work, at);
  typename C::T t;
  FA_UNROLL
  for (int first = 0; first < C::D; first += 128) {
    const int column = first + 4 * lane;
    float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    gather_columns<C>(x, p, w, row, cache_min(column, p.head_dim - 4)); /* from_lane is for all lanes */
    if (column >= p.head_dim) continue;
    store_global(reinterpret_cast<uint32_t *>(o + column), pack2(x[0], x[1], t));
    store_global(reinterpret_cast<uint32_t *>(o + column) + 1, pack2(x[2], x[3], t));
  }
  if (lane == 0) store_whole_lse(p, work, at, w.lse);
}

/* Grid: as that of cache_forward; the p.n_splits blocks of the same rows, neighbours in x, are a cluster. */
template <class C> FA_DEVICE void hopper_decode(const fa_cache_params &p) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const cache_work_tile work = load_cache_work_tile<C>(p);
  if (work.n_rows <= 0) return; /* as all of the cluster */
  if (work.hi > work.lo) {
    cache_forward_parts<C>(p, work, thread, warp, lane);
    named_sync<C::THREADS>(1);
    cache_epilogue<C, decode_rows<C>>(p, work, thread);
  } else {
    store_no_keys<C>(p, work, thread);
  }
  cluster_sync();
  for (int row = warp * p.n_splits + work.split; row < work.n_rows; row += C::WARPS * p.n_splits)
    gather_row<C>(p, work, row, lane);
  cluster_end(); /* others may still read here */
}

} // namespace fa

#endif
