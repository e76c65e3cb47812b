/* The bias in the backward kernels by keys: loads it, and stores its gradient dS. Each pair (row, key)
 * belongs to one block, so each element is written once. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_BIAS_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_BIAS_CUH

#include "gpu/kernels/flash/backward_config.cuh"
#include "gpu/kernels/parts/bias.cuh"

namespace fa {

/* Starts copying the bias of a pair of tiles into the space of P; commits a group of its own, empty without a
 * bias. */
template <class C>
FA_DEVICE void fetch_bias(const fa_attention_params &f, const sequence &seq, int batch, int head, int row0,
                          int key0, int thread) {
  if (!C::MIXED || f.bias)
    load_bias<C, C::BM, C::BN>(f, shared_base() + C::P_AT, batch, head, row0, seq.len_q - row0, key0, thread);
  cp_async_commit();
}

/* The first n of 8 neighbouring elements of dbias, or of sums of dbias. */
FA_DEVICE void store_dbias(const fa_backward_params &p, uint16_t *to, int batch, int head, int row,
                           int key, int n, vec4 v) {
  to += batch * p.dbias_stride.batch + head * p.dbias_stride.head + row * p.dbias_stride.row + key;
  if (p.dbias_aligned)
    store_chunk<true>(to, v);
  else
    store_some(to, v, n);
}

/* Stores dS of a pair of tiles from shared memory. */
template <class C>
FA_DEVICE void write_dbias(const fa_backward_params &p, const sequence &seq, int batch, int head,
                           int row0, int key0, int thread) {
  constexpr int CHUNKS = C::BN / 8;
  FA_NO_UNROLL
  for (int i = thread; i < min_int(C::BM, seq.len_q - row0) * CHUNKS; i += C::THREADS) {
    const int row = i / CHUNKS, chunk = i % CHUNKS, n = p.forward.seqlen_k - key0 - 8 * chunk;
    if (n > 0)
      store_dbias(p, p.dbias, batch, head, row0 + row, key0 + 8 * chunk, n,
                  load_shared16(shared_base() + C::DS_AT + tile_offset<C::BN>(row, chunk)));
  }
}

/* Zeros in rows [begin, end) of a key block. */
template <class C>
FA_DEVICE void clear_dbias_rows(const fa_backward_params &p, int batch, int head, int key0, int begin,
                                int end, int thread) {
  constexpr int CHUNKS = C::BN / 8;
  const int n_keys = p.forward.seqlen_k - key0;
  FA_NO_UNROLL
  for (int64_t i = thread; i < static_cast<int64_t>(end - begin) * CHUNKS; i += C::THREADS) {
    const int row = begin + static_cast<int>(i / CHUNKS), chunk = static_cast<int>(i % CHUNKS);
    if (n_keys - 8 * chunk > 0)
      store_dbias(p, p.dbias, batch, head, row, key0 + 8 * chunk, n_keys - 8 * chunk, vec4{0, 0, 0, 0});
  }
}

/* Zeros in the rows of dbias that the loop over query blocks does not reach, for all heads of the group.
 * seen: the query blocks that it does reach, if the key block has unmasked keys. */
template <class C>
FA_DEVICE void clear_dbias(const fa_backward_params &p, const sequence &seq, int batch, int kv_head,
                           int key0, block_range seen, int thread) {
  const bool none = key0 >= seq.len_k || seen.begin >= seen.end;
  const int begin = none ? seq.len_q : seen.begin * C::BM, end = none ? seq.len_q : seen.end * C::BM;
  const int heads = p.forward.heads_per_kv;
  FA_NO_UNROLL
  for (int head = kv_head * heads; head < (kv_head + 1) * heads; ++head) {
    clear_dbias_rows<C>(p, batch, head, key0, 0, begin, thread);
    clear_dbias_rows<C>(p, batch, head, key0, end, seq.len_q, thread);
  }
}

} // namespace fa

#endif
