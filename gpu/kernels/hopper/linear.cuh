/* Linear dropout (parts/dropout_linear.cuh) in the kernels for sm_90a. The host lends them calls whose rows have keys in
 * fours, so that all rows begin at the same place of a four, which is the first unless the offset says otherwise; and in
 * p.dropout_limit the least random word that keeps its pair, since a comparison of words takes less work than one of floats. */
#ifndef FA_GPU_KERNELS_HOPPER_LINEAR_CUH
#define FA_GPU_KERNELS_HOPPER_LINEAR_CUH

#include "gpu/kernels/machine/prim_sm90.cuh"
#include "gpu/kernels/parts/dropout_linear.cuh"

namespace fa {

/* The keys of the ten rounds, which all calls share. */
struct hopper_linear_keys {
  uint32_t of[10][2];
};
FA_DEVICE hopper_linear_keys hopper_linear_keys_of(uint32_t k0, uint32_t k1) {
  hopper_linear_keys keys;
  FA_UNROLL
  for (uint32_t round = 0; round < 10; ++round) {
    keys.of[round][0] = k0 + round * PHILOX_STEP_0;
    keys.of[round][1] = k1 + round * PHILOX_STEP_1;
  }
  return keys;
}
FA_DEVICE hopper_linear_keys hopper_linear_load_keys(const fa_attention_params &p) {
  const uint64_t seed = dropout_seed_of(p);
  return hopper_linear_keys_of(in_uniform_register(static_cast<uint32_t>(seed)),
                               in_uniform_register(static_cast<uint32_t>(seed >> 32)));
}
/* The same, each in a register of the warp from here on: else a loop would work all of them out again. */
FA_DEVICE hopper_linear_keys hopper_linear_held(hopper_linear_keys keys) {
  FA_UNROLL
  for (int round = 0; round < 10; ++round) {
    FA_UNROLL
    for (int i = 0; i < 2; ++i) keys.of[round][i] = in_uniform_register(keys.of[round][i]);
  }
  return keys;
}
/* The same, worked out where they are used rather than kept. */
FA_DEVICE hopper_linear_keys hopper_linear_recomputed(const hopper_linear_keys &keys) {
  return hopper_linear_keys_of(static_cast<uint32_t>(opaque(static_cast<int>(keys.of[0][0]))),
                               static_cast<uint32_t>(opaque(static_cast<int>(keys.of[0][1]))));
}

/* Of calls whose numbers (a four's index) have the same upper word: that and two zeros are most of what the first rounds mix, so
 * one product of the first round is zero and one of the second the same for all of them. Of the latter: its upper word with the
 * round's key, for z, and its lower one, for w. */
struct hopper_linear_upper {
  uint32_t z, w;
};
FA_DEVICE hopper_linear_upper hopper_linear_load_upper(const hopper_linear_keys &keys, uint32_t upper) {
  const uint64_t a = multiply_wide(upper ^ keys.of[0][0], PHILOX_FACTOR_X);
  return {static_cast<uint32_t>(a >> 32) ^ keys.of[1][1], static_cast<uint32_t>(a)};
}

/* x and z of a call are words or doubles that have these for their lower words. A wide multiplication keeps the softmax from
 * multiplying for 4 clocks, a multiplication of doubles and a narrow one for 2; but they take more registers. */
template <class X> FA_DEVICE X hopper_linear_number(uint32_t word) {
  if constexpr (sizeof(X) == 8) return word_as_double(word);
  return word;
}
FA_DEVICE void hopper_linear_round(uint32_t &x, uint32_t &y, uint32_t &z, uint32_t &w, uint32_t k0, uint32_t k1) {
  philox_mix(x, y, z, w, multiply_wide(x, PHILOX_FACTOR_X), multiply_wide(z, PHILOX_FACTOR_Z), k0, k1);
}
FA_DEVICE void hopper_linear_round(uint64_t &x, uint32_t &y, uint64_t &z, uint32_t &w, uint32_t k0, uint32_t k1) {
  const uint64_t a = multiply_double<PHILOX_FACTOR_X>(x), b = multiply_double<PHILOX_FACTOR_Z>(z);
  const uint32_t low_a = static_cast<uint32_t>(x) * PHILOX_FACTOR_X,
                 low_b = static_cast<uint32_t>(z) * PHILOX_FACTOR_Z;
  x = b ^ (y ^ k0);
  z = a ^ (w ^ k1);
  y = low_b;
  w = low_a;
}

/* N calls, whose rounds are interleaved. */
template <class X, int N> struct hopper_linear_calls {
  X x[N], z[N];
  uint32_t y[N], w[N];

  /* lower: of the calls' numbers. */
  FA_DEVICE hopper_linear_calls(const uint32_t (&lower)[N], const hopper_linear_keys &keys,
                                hopper_linear_upper upper) {
    FA_UNROLL
    for (int i = 0; i < N; ++i) { /* two rounds */
      const uint64_t a = multiply_wide(lower[i], PHILOX_FACTOR_X),
                     b = multiply_wide(static_cast<uint32_t>(a >> 32) ^ keys.of[0][1], PHILOX_FACTOR_Z);
      x[i] = hopper_linear_number<X>(static_cast<uint32_t>(b >> 32) ^ keys.of[1][0]);
      y[i] = static_cast<uint32_t>(b);
      z[i] = hopper_linear_number<X>(static_cast<uint32_t>(a) ^ upper.z);
      w[i] = upper.w;
    }
    FA_UNROLL
    for (int round = 2; round < 10; ++round) {
      FA_UNROLL
      for (int i = 0; i < N; ++i)
        hopper_linear_round(x[i], y[i], z[i], w[i], keys.of[round][0], keys.of[round][1]);
    }
  }

  FA_DEVICE uint32_t word(int i, int j) const {
    return j % 2 ? (j == 1 ? y[i] : w[i]) : static_cast<uint32_t>(j == 0 ? x[i] : z[i]);
  }
};

/* The random words of four indices that begin `at` places behind a call's first. */
FA_DEVICE void hopper_linear_any(uint32_t (&words)[4], const hopper_linear_keys &keys, uint64_t four,
                                 uint32_t at) {
  const uint64_t seed = static_cast<uint64_t>(keys.of[0][1]) << 32 | keys.of[0][0];
  uint32_t next[4];
  philox<10, 1>(words, seed, static_cast<uint32_t>(four), static_cast<uint32_t>(four >> 32), 0, 0);
  ++four;
  philox<10, 1>(next, seed, static_cast<uint32_t>(four), static_cast<uint32_t>(four >> 32), 0, 0);
  FA_NO_UNROLL
  for (; at > 0; --at) {
    FA_UNROLL
    for (int k = 0; k < 3; ++k) words[k] = words[k + 1];
    words[3] = next[0];
    FA_UNROLL
    for (int k = 0; k < 3; ++k) next[k] = next[k + 1];
  }
}

/* Where all rows of a call begin within a four. */
FA_DEVICE uint32_t hopper_linear_phase(const fa_attention_params &p) {
  return static_cast<uint32_t>(dropout_offset_of(p)) & 3;
}

/* What a lane keeps for a row of keys. four: the number of its first call; its calls are of the even or the odd fours of one of its
 * two rows, since four lanes that have the same two rows share their calls. */
struct hopper_linear_row {
  hopper_linear_keys keys;
  uint32_t phase; /* as hopper_linear_phase has it, in a register of the warp */
  uint64_t four;
};
/* row: the lane's first. */
FA_DEVICE hopper_linear_row hopper_linear_begin(const fa_attention_params &p, int batch, int head, int row,
                                                int lane) {
  const uint64_t first = linear_head(p, batch, head) +
                         static_cast<uint64_t>(row + (lane & 2) * 4) * static_cast<uint64_t>(p.seqlen_k);
  return {hopper_linear_held(hopper_linear_load_keys(p)), in_uniform_register(hopper_linear_phase(p)),
          (first >> 2) + static_cast<uint64_t>(lane & 1)};
}

/* Of N fours, each eight keys behind the one before, what is kept: bit N - 1 - n + 16 e of pairs[i] is that of key 8 n + 2 i + e.
 * four: the first call's number. */
template <int N>
FA_DEVICE void hopper_linear_pairs(uint32_t (&pairs)[2], const hopper_linear_keys &keys, uint64_t four,
                                   uint32_t limit) {
  const hopper_linear_upper upper = hopper_linear_load_upper(keys, static_cast<uint32_t>(four >> 32));
  FA_NO_UNROLL
  for (int n = 0; n < N; n += 4) {
    uint32_t lower[4];
    FA_UNROLL
    for (int i = 0; i < 4; ++i) lower[i] = static_cast<uint32_t>(four) + static_cast<uint32_t>(2 * (n + i));
    const hopper_linear_calls<uint64_t, 4> calls(lower, keys, upper);
    FA_UNROLL
    for (int i = 0; i < 2; ++i) pairs[i] <<= 4;
    FA_UNROLL
    for (int i = 0; i < 16; ++i)
      or_if_at_least(pairs[i % 4 / 2], 1u << (3 - i / 4 + 16 * (i % 2)), calls.word(i / 4, i % 4), limit);
  }
}
/* The same where rows do not begin with a four, or numbers have several upper words. */
template <int N>
FA_DEVICE void hopper_linear_any_pairs(uint32_t (&pairs)[2], const hopper_linear_keys &keys, uint64_t four,
                                       uint32_t phase, uint32_t limit) {
  FA_NO_UNROLL
  for (int n = 0; n < N; ++n) {
    uint32_t words[4];
    hopper_linear_any(words, keys, four + static_cast<uint64_t>(2 * n), phase);
    FA_UNROLL
    for (int k = 0; k < 4; ++k)
      or_if_at_least(pairs[k / 2], 1u << (N - 1 - n + 16 * (k % 2)), words[k], limit);
  }
}

/* Which pairs of a warp's 16 rows x 8 N8 keys are kept, in the layout of a tile's accumulators: bit N8 - 1 - n + 16 e of kept[r] is
 * that of row l/4 + 8 r and key 8 n + l%4 * 2 + e. key0: the tile's first. */
template <int N8>
FA_DEVICE void hopper_linear_kept(uint32_t (&kept)[2], const fa_attention_params &p,
                                  const hopper_linear_row &row, int key0, int lane) {
  const uint64_t four = row.four + static_cast<uint64_t>(key0 / 4);
  uint32_t pairs[2] = {0, 0};
  if (any_lane(row.phase != 0 || static_cast<uint32_t>(four) > 0xffffffffu - 2 * N8))
    hopper_linear_any_pairs<N8>(pairs, row.keys, four, row.phase, p.dropout_limit);
  else
    hopper_linear_pairs<N8>(pairs, row.keys, four, p.dropout_limit);
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int from = (lane & ~3) + 2 * r + lane % 4 / 2;
    const uint32_t even = word_of_lane(pairs[0], from), odd = word_of_lane(pairs[1], from);
    kept[r] = lane & 1 ? odd : even;
  }
}

/* All bits of a half that is kept, of tile n of a row of 16. */
FA_DEVICE uint32_t hopper_linear_halves(uint32_t kept, int n) {
  return n < 8 ? spread_tops(kept << n % 8, 1, 3) : spread_tops(kept << n % 8, 0, 2);
}

} // namespace fa

#endif
