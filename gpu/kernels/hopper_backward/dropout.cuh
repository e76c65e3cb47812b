/* Tiled dropout of transposed scores. Producer warps, two that have nothing else to do and where these are
 * too few a third, compute which pairs (row, key) of a step are kept, and give each consumer thread one word
 * with a bit for each of its 32 pairs.
 *
 * The random bytes of 16 rows x 32 keys belong to the lanes of a warp as it would hold these scores
 * untransposed (dropout.cuh): byte 2r' + e' of lane l's word n' is row l/4 + 8r', key 8n' + l%4*2 + e'.
 * Transposed, keys run over the lanes and rows over the registers: lane L of the warp that holds keys 16q..
 * of the 32 has key 16q + 8r + L/4 and row 8n + L%4*2 + e of the step. So lane l's bytes are for lanes L =
 * (l%4*2 + e') * 4 + l/8 of the two warps q = n'/2, with e = l/4%2, r = n'%2, r' = n%2: half of the bits of a
 * word; lane l ^ 4 has the other half.
 *
 * Bit 16e + 8 (n%2) + 7 - 2 (n/2) - r of a thread's word says whether the pair in [n][2r + e] of its accumulators is kept:
 * so lanes l and l ^ 4 have whole bytes of it, and the two pairs of a register of P are the same bit of two bytes. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_DROPOUT_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_DROPOUT_CUH

#include "gpu/kernels/hopper/linear.cuh"
#include "gpu/kernels/parts/dropout.cuh"
#include "gpu/kernels/hopper_backward/scores.cuh"

namespace fa {

FA_DEVICE constexpr int hopper_drop_bit(int n, int r, int e) {
  return 16 * e + 8 * (n % 2) + 7 - 2 * (n / 2) - r;
}

enum : uint32_t { HOPPER_TOPS = 0x80808080u }; /* the upper bit of each byte */

/* The upper bit of each byte says whether that of x is at most that of limits, which has the same byte four times; the other
 * bits say nothing. */
FA_DEVICE uint32_t bytes_within(uint32_t x, uint32_t limits) {
  const uint32_t low = (limits | HOPPER_TOPS) - (x & ~HOPPER_TOPS); /* the comparison of the lower seven bits */
  return (limits & ~x) | (~(x ^ limits) & low);
}

/* For 64 rows and 32 keys: the bits for each of the two warps q that hold them; bit 8 (2 r' + e') + 7 - 2 i - r
 * of 16 rows i. row16, key32: the index of the first 16 rows and of the 32 keys, in the sequence. AT_ONCE:
 * counters whose rounds are interleaved. ROUNDS, UNROLLED: how many rounds, and how many iterations of
 * AT_ONCE counters, are unrolled; each takes registers. */
template <int AT_ONCE, int ROUNDS, int UNROLLED>
FA_DEVICE void hopper_drop_bits(uint32_t (&bits)[2], const fa_attention_params &f, dropout_head head, int row16,
                                int key32) {
  const uint32_t limits = (f.dropout_limit & 0xff) * 0x01010101u;
  bits[0] = bits[1] = 0;
  FA_UNROLL_BY(UNROLLED)
  for (int first = 0; first < 4; first += AT_ONCE) {
    const uint64_t seed = dropout_seed_of(f); /* again: there is no register to keep it in */
    uint32_t words[AT_ONCE][4], k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    FA_UNROLL
    for (int i = 0; i < AT_ONCE; ++i) {
      words[i][0] = head.lo;
      words[i][1] = head.hi;
      words[i][2] = static_cast<uint32_t>(row16 + first + i);
      words[i][3] = static_cast<uint32_t>(key32);
    }
    FA_UNROLL_BY(ROUNDS)
    for (int round = 0; round < 7; ++round) {
      FA_UNROLL
      for (int i = 0; i < AT_ONCE; ++i)
        philox_round(words[i][0], words[i][1], words[i][2], words[i][3], k0, k1);
      k0 += PHILOX_STEP_0;
      k1 += PHILOX_STEP_1;
    }
    FA_UNROLL
    for (int i = 0; i < AT_ONCE; ++i) {
      FA_UNROLL
      for (int q = 0; q < 2; ++q) {
        const uint32_t kept = (bytes_within(words[i][2 * q], limits) & HOPPER_TOPS) |
                              (bytes_within(words[i][2 * q + 1], limits) >> 1 & HOPPER_TOPS >> 1);
        bits[q] |= kept >> 2 * (first + i);
      }
    }
  }
}

/* Stores the words of the two warps. to: address of the first warp's words. */
FA_DEVICE void hopper_drop_store(uint32_t to, const uint32_t (&bits)[2], int lane) {
  const int odd = lane / 4 % 2;
  const uint32_t mine = odd ? bits[1] : bits[0]; /* and the other lane gets the bits that are its own */
  const uint32_t from = float_bits(shfl_xor(as_float(odd ? bits[0] : bits[1]), 4));
  FA_UNROLL
  for (int e = 0; e < 2; ++e)
    store_shared4(to + (32 * odd + (lane % 4 * 2 + e) * 4 + lane / 8) * 4,
                  pick_bytes(odd ? from : mine, odd ? mine : from, e ? 0x7531 : 0x6420));
}

/* The bits of a call that has no dropout, in a kernel that asks for it. */
template <class C> FA_DEVICE bool hopper_keeps_all(uint32_t (&bits)[2], const fa_attention_params &f) {
  if (!C::SEVERAL || drops_any(f)) return false;
  bits[0] = bits[1] = 0xffffffffu;
  return true;
}

/* hopper_drop_bits, then hopper_drop_store. */
template <class C>
FA_DEVICE void hopper_drop_keys(uint32_t to, const fa_attention_params &f, dropout_head head, int row16,
                                int key32, int lane) {
  uint32_t bits[2];
  if (!hopper_keeps_all<C>(bits, f))
    hopper_drop_bits<2, C::DROP_UNROLLED ? 7 : 1, C::DROP_UNROLLED ? 2 : 1>(bits, f, head, row16, key32);
  hopper_drop_store(to, bits, lane);
}

template <bool DOUBLES> struct hopper_linear_x { typedef uint32_t type; };
template <> struct hopper_linear_x<true> { typedef uint64_t type; };

/* What linear dropout keeps of 64 rows and 32 keys, of which a lane works out four keys, lane/4, of the rows 8 n + lane%4 * 2 + e: in
 * pieces[j] the bits of key j of them, as the words of consumers have them for r = 0. four: the number of the first row's call;
 * apart: what the next row's is more. Here it has the same upper word as the others, and rows begin with a four. KEPT: there are
 * registers for the keys of the rounds, and for doubles. */
template <bool KEPT>
FA_DEVICE void hopper_linear_pieces(uint32_t (&pieces)[4], const hopper_linear_keys &keys, uint64_t four,
                                    uint32_t apart, uint32_t limit) {
  const hopper_linear_upper upper = hopper_linear_load_upper(keys, static_cast<uint32_t>(four >> 32));
  FA_NO_UNROLL
  for (int row = 48; row >= 0; row -= 16) { /* the bits of the last ones move as others come */
    FA_UNROLL
    for (int j = 0; j < 4; ++j) pieces[j] >>= 2;
    uint32_t lower[4];
    FA_UNROLL
    for (int i = 0; i < 4; ++i) /* of row 8 n + e, i = 2 n + e */
      lower[i] = static_cast<uint32_t>(four) + static_cast<uint32_t>(row + i / 2 * 8 + i % 2) * apart;
    const hopper_linear_calls<typename hopper_linear_x<KEPT>::type, 4> calls(
        lower, KEPT ? keys : hopper_linear_recomputed(keys), upper);
    FA_UNROLL
    for (int i = 0; i < 16; ++i)
      or_if_at_least(pieces[i % 4], 1u << hopper_drop_bit(i / 8, 0, i / 4 % 2), calls.word(i / 4, i % 4), limit);
  }
}
/* The same of any numbers. */
FA_DEVICE void hopper_linear_any_pieces(uint32_t (&pieces)[4], const hopper_linear_keys &keys, uint64_t four,
                                        uint32_t apart, uint32_t phase, uint32_t limit) {
  FA_NO_UNROLL
  for (int i = 0; i < 16; ++i) { /* row 8 n + e, i = 2 n + e */
    const int n = i / 2, e = i % 2;
    uint32_t words[4];
    hopper_linear_any(words, keys, four + static_cast<uint64_t>(8 * n + e) * apart, phase);
    FA_UNROLL
    for (int j = 0; j < 4; ++j)
      or_if_at_least(pieces[j], 1u << (16 * e + 8 * (n % 2) + 7 - n / 2 * 2), words[j], limit);
  }
}

/* The words of the two warps that hold them. A consumer's keys are 8 apart, so that two lanes have half of a word each. row0,
 * key0: the first ones. to: as in hopper_drop_store. */
template <bool KEPT>
FA_DEVICE void hopper_drop_linear_keys(uint32_t to, const fa_attention_params &f, int batch, int head,
                                       int row0, int key0, int lane) {
  const int four = lane / 4, column = lane % 4;
  const uint32_t apart = static_cast<uint32_t>(f.seqlen_k) / 4;
  const uint64_t number = (linear_head(f, batch, head) >> 2) +
                          static_cast<uint64_t>(row0 + 2 * column) * apart +
                          static_cast<uint64_t>(key0 / 4 + four);
  const uint32_t phase = hopper_linear_phase(f);
  const hopper_linear_keys keys = hopper_linear_load_keys(f); /* again: there are no registers to keep them in */
  uint32_t pieces[4] = {0, 0, 0, 0};
  if (any_lane(phase != 0 || (number + 63ull * apart) >> 32 != number >> 32))
    hopper_linear_any_pieces(pieces, keys, number, apart, phase, f.dropout_limit);
  else
    hopper_linear_pieces<KEPT>(pieces, keys, number, apart, f.dropout_limit);
  const bool second = four / 2 % 2; /* r = 1 */
  FA_UNROLL
  for (int i = 0; i < 2; ++i) {
    const uint32_t own = second ? pieces[2 + i] : pieces[i], others = second ? pieces[i] : pieces[2 + i];
    const uint32_t from = float_bits(shfl_xor(as_float(others), 8)); /* of the same keys, r = 0 or 1 */
    const int key = four % 2 * 4 + (second ? 2 : 0) + i;
    store_shared4(to + (four / 4 * 32 + key * 4 + column) * 4, second ? from | own >> 1 : own | from >> 1);
  }
}

/* The place of a step's words. */
template <class C> FA_DEVICE pipeline_state<C::DROP_STAGES> hopper_drop_place(pipeline_state<C::STAGES> pipe) {
  return {pipe.n};
}

/* A warp's share of a step: every DROP_WARPS-th 32 keys, counted on from step to step, of which each has four times 32: step n
 * has those from number 4 n on, and a warp those whose number is its index modulo DROP_WARPS, the first of them index + 2 n.
 * Everything is recomputed here, since a producer has few registers. */
template <class C>
FA_DEVICE void hopper_drop_step(const fa_backward_params &p, pipeline_state<C::STAGES> pipe, int key_block,
                                int head, int block, int thread) {
  typedef hopper_backward_all_barriers<C> bar;
  const auto place = hopper_drop_place<C>(pipe);
  mbarrier_wait(bar::drop_empty(place.stage()), place.phase() ^ 1);
  static_assert(C::BN == 4 * 32, "the shares are as long as one another");
  const unsigned first = (thread / 32 - (4 - C::DROP_WARPS) + 2 * pipe.n) % C::DROP_WARPS;
  FA_NO_UNROLL
  for (int i = static_cast<int>(first); i < C::BN / 32; i += C::DROP_WARPS) {
    const uint32_t to = shared_base() + C::DROP_AT + place.stage() * C::DROP_BYTES + i * 256;
    if constexpr (C::LINEAR)
      hopper_drop_linear_keys<C::DROP_UNROLLED>(
          to, p.forward, opaque(static_cast<int>(blockIdx.z)), opaque(head), opaque(block) * C::BM,
          key_block * C::BN + 32 * i, opaque(thread) & 31); /* a register less */
    else
      hopper_drop_keys<C>(
          to, p.forward, dropout_of(p.forward, opaque(static_cast<int>(blockIdx.z)), opaque(head), opaque(thread) % 32),
          opaque(block) * (C::BM / 16), key_block * (C::BN / 32) + i, opaque(thread) % 32);
  }
  mbarrier_arrive(bar::drop_full(place.stage()));
}

/* Run by the last HOPPER_DROP_WARPS warps; with LOADER_DROPS the one before them takes part step by step (produce.cuh), or with
 * LOADS_ALONE as they do. */
template <class C> FA_DEVICE void hopper_backward_drop(const fa_backward_params &p, int thread) {
  const fa_attention_params &f = p.forward;
  const hopper_key_blocks<C> keys;
  pipeline_state<C::STAGES> pipe;
  if (!keys.is_there(p)) return;
  FA_NO_UNROLL
  for (int n = 0; n < f.heads_per_kv; ++n) {
    FA_NO_UNROLL
    for (int block = hopper_load_key_tile<C>(p, keys.block(p)).blocks.begin;
         block < hopper_load_key_tile<C>(p, opaque(keys.block(p))).blocks.end; ++block) {
      hopper_drop_step<C>(p, pipe, keys.block(p), hopper_first_head<C>(p) + opaque(n),
                          block, opaque(thread));
      pipe.next();
    }
  }
}

/* A consumer's word, whose place the caller gives back. thread: among the 256 consumer threads. */
template <class C> FA_DEVICE uint32_t hopper_load_drop_bits(pipeline_state<C::STAGES> pipe, int thread) {
  typedef hopper_backward_all_barriers<C> bar;
  const auto place = hopper_drop_place<C>(pipe);
  mbarrier_wait(bar::drop_full(place.stage()), place.phase());
  return load_shared4(shared_base() + C::DROP_AT + place.stage() * C::DROP_BYTES + thread * 4);
}

template <class C> FA_DEVICE void hopper_drop_p(uint32_t (&p_frag)[C::BM / 16][4], uint32_t kept) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) /* the bit is shifted to the top of its bytes */
      p_frag[n / 2][n % 2 * 2 + r] &= spread_tops(kept << (7 - hopper_drop_bit(n, r, 0) % 8), n % 2, 2 + n % 2);
  }
}

/* dp -> dS, like hopper_compute_ds. */
template <class C>
FA_DEVICE void hopper_drop_ds(float (&dp)[C::BM / 8][4], const float (&p)[C::BM / 8][4], uint32_t rows,
                                     float dropout_scale, uint32_t kept) {
  hopper_update_pairs<C>(dp, rows, [&](float &x, float delta, int n, int r, int e) {
    const float g = fmaf(x, dropout_scale, -delta);
    x = p[n][2 * r + e] * (kept >> hopper_drop_bit(n, r, e) & 1 ? g : -delta);
  });
}

} // namespace fa

#endif
