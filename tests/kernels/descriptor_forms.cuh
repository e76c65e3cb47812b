/* Every product that the kernels for sm_90a compute, through their own code, on operands that reveal which
 * element went where: one operand has a single 1 in each row (or column), the other distinct numbers, in two
 * passes because 8 bits hold no more. All other shared memory is NaN. For the executor and the GPU. */
#ifndef FA_TESTS_KERNELS_DESCRIPTOR_FORMS_CUH
#define FA_TESTS_KERNELS_DESCRIPTOR_FORMS_CUH

#include "gpu/kernels/hopper_backward/pair.cuh"
#include "gpu/kernels/hopper/forward_config.cuh"
#include "tests/kernels/descriptor_forms_list.h"

namespace fa {

struct descriptor_params {
  int one_in_a; /* the 1s are A's; else B's */
  int high;     /* the codes' upper part */
  int shift;    /* where the 1s are */
  float *wrong; /* number of threads with a wrong element */
};

/* Element (row, col) of a tile in panels of 64 columns with the 128-byte swizzle. */
FA_DEVICE uint32_t element_of_tile(uint32_t tile, int panel_bytes, int row, int col) {
  return tile + col / 64 * panel_bytes + row * 128 + ((col % 64 / 8 ^ row % 8) << 4) + col % 8 * 2;
}

/* A form: a product d[64 x N] of depth DEPTH. put_a, put_b: addresses of elements in shared memory; adjacent
 * ones are a pair of neighbouring depths, or of rows (columns) if TRANS. */
struct form_sizes {
  static constexpr int GROUP = 0;
  static constexpr bool FROM_REGISTERS = false, TRANS_A = false, TRANS_B = false;
};

/* S = Q K^T */
template <class C> struct form_forward_scores : form_sizes {
  static constexpr int N = C::BN, DEPTH = C::D, Q = 0, K = C::Q_BYTES;
  FA_DEVICE static uint32_t a(int i, int k) { return element_of_tile(Q, C::Q_PANEL, i, k); }
  FA_DEVICE static uint32_t b(int k, int j) { return element_of_tile(K, C::KV_PANEL, j, k); }
  template <class A> FA_DEVICE static void multiply(float (&d)[N / 8][4], const A &) {
    hopper_gemm_ss<C::D, C::Q_PANEL, C::KV_PANEL>(d, shared_base() + Q, shared_base() + K, typename C::T());
  }
};
/* O += P V */
template <class C> struct form_forward_values : form_sizes {
  static constexpr bool FROM_REGISTERS = true, TRANS_B = true;
  static constexpr int N = C::D, DEPTH = C::BN;
  FA_DEVICE static uint32_t a(int, int) { return 0; }
  FA_DEVICE static uint32_t b(int k, int j) { return element_of_tile(0, C::KV_PANEL, k, j); }
  template <class A> FA_DEVICE static void multiply(float (&d)[N / 8][4], const A &weights) {
    hopper_gemm_rs<C::KV_PANEL>(d, weights, shared_base(), typename C::T());
  }
};
/* S^T = K Q^T, dP^T = V dO^T of a group of the key tile */
template <class C, int GROUP_> struct form_backward_gemm_s_dp : form_sizes {
  static constexpr int N = C::BM, DEPTH = C::D, K = 0, Q = C::KV_BYTES;
  FA_DEVICE static uint32_t a(int i, int k) { return element_of_tile(K, C::KV_PANEL, 64 * GROUP_ + i, k); }
  FA_DEVICE static uint32_t b(int k, int j) { return element_of_tile(Q, C::Q_PANEL, j, k); }
  template <class A> FA_DEVICE static void multiply(float (&d)[N / 8][4], const A &) {
    hopper_gemm_s_dp<C>(d, shared_base() + K + GROUP_ * 64 * 128, shared_base() + Q);
  }
};
/* dV += P^T dO, dK += dS^T Q */
template <class C> struct form_backward_gemm_dkv : form_sizes {
  static constexpr bool FROM_REGISTERS = true, TRANS_B = true;
  static constexpr int N = C::D, DEPTH = C::BM;
  FA_DEVICE static uint32_t a(int, int) { return 0; }
  FA_DEVICE static uint32_t b(int k, int j) { return element_of_tile(0, C::Q_PANEL, k, j); }
  template <class A> FA_DEVICE static void multiply(float (&d)[N / 8][4], const A &weights) {
    hopper_gemm_dkv<C>(d, weights, shared_base());
  }
};
/* dQ = dS K, a group's columns */
template <class C, int GROUP_, int FIRST, int N_> struct form_backward_gemm_ds_k : form_sizes {
  static constexpr bool TRANS_A = true, TRANS_B = true;
  static constexpr int N = N_, DEPTH = C::BN, DS = 0, K = C::DS_BYTES;
  FA_DEVICE static uint32_t a(int i, int k) { return element_of_tile(DS, C::DS_PANEL, k, i); }
  FA_DEVICE static uint32_t b(int k, int j) { return element_of_tile(K, C::KV_PANEL, k, FIRST + j); }
  template <class A> FA_DEVICE static void multiply(float (&d)[N / 8][4], const A &) {
    hopper_gemm_ds_k<C>(d, shared_base() + DS, shared_base() + K, GROUP_);
  }
};
/* The same for the pair kernels of large head dims, over the keys of both blocks. */
template <class C, bool VALUES, int RANK, int STAGE> struct form_pair_dq : form_sizes {
  typedef hopper_pair_columns<C, VALUES> columns;
  static constexpr bool TRANS_A = true, TRANS_B = true;
  static constexpr int N = columns::N, DEPTH = 2 * C::BN;
  FA_DEVICE static uint32_t a(int i, int k) {
    return element_of_tile((k < C::BN ? C::DS_AT : C::OTHER_DS_AT) + STAGE * C::DS_BYTES, C::DS_PANEL,
                           k % C::BN, i);
  }
  FA_DEVICE static uint32_t b(int k, int j) {
    const int col = columns::first(RANK) + j, of_other = 64 * hopper_pair_panel<C>(RANK);
    return k < C::BN ? element_of_tile(C::K_AT, C::KV_PANEL, k, col)
                     : element_of_tile(C::OTHER_K_AT, C::KV_PANEL, k - C::BN, col - of_other);
  }
  template <class A> FA_DEVICE static void multiply(float (&d)[N / 8][4], const A &) {
    hopper_pair_gemm_ds_k<C, VALUES>(d, STAGE, RANK);
  }
};

enum { DESCRIPTOR_BYTES = 229376, DESCRIPTOR_THREADS = 128 };

/* Values of A and B. */
template <class F> FA_DEVICE float value_of(const descriptor_params &p, bool is_a, int outer, int k) {
  const int outers = is_a ? 64 : F::N;
  if (is_a == (p.one_in_a != 0)) return k == (outer * 5 + p.shift) % F::DEPTH ? 1.0f : 0.0f;
  const int code = k * outers + outer;
  return static_cast<float>(p.high ? code / 251 : code % 251);
}

template <class F> FA_DEVICE void put_operand(const descriptor_params &p, bool is_a, int thread) {
  const int outers = is_a ? 64 : F::N;
  const bool trans = is_a ? F::TRANS_A : F::TRANS_B; /* pairs of outer indices, otherwise of depths */
  FA_NO_UNROLL
  for (int i = thread; i < outers * F::DEPTH / 2; i += DESCRIPTOR_THREADS) {
    const int outer = trans ? i * 2 % outers : i / (F::DEPTH / 2),
              k = trans ? i * 2 / outers : i * 2 % F::DEPTH;
    const uint32_t at = is_a ? F::a(outer, k) : F::b(k, outer);
    store_shared4(shared_base() + at, pack2(value_of<F>(p, is_a, outer, k),
                                            value_of<F>(p, is_a, outer + trans, k + !trans), bf16()));
  }
}

template <class F> FA_DEVICE void check_form(const descriptor_params &p) {
  const int thread = static_cast<int>(threadIdx.x), row = thread / 32 * 16 + thread % 32 / 4,
            col = thread % 4 * 2;
  FA_NO_UNROLL
  for (int i = thread; i < DESCRIPTOR_BYTES / 16; i += DESCRIPTOR_THREADS)
    store_shared16(shared_base() + 16 * i, vec4{0x7fc07fc0u, 0x7fc07fc0u, 0x7fc07fc0u, 0x7fc07fc0u});
  sync_block();
  if (!F::FROM_REGISTERS) put_operand<F>(p, true, thread);
  put_operand<F>(p, false, thread);
  fence_async();
  sync_block();
  float d[F::N / 8][4] = {};
  uint32_t a[F::DEPTH / 16][4];
  FA_UNROLL
  for (int i = 0; i < F::DEPTH / 16; ++i) {
    FA_UNROLL
    for (int j = 0; j < 4; ++j)
      a[i][j] = F::FROM_REGISTERS
                    ? pack2(value_of<F>(p, true, row + j % 2 * 8, 16 * i + j / 2 * 8 + col),
                            value_of<F>(p, true, row + j % 2 * 8, 16 * i + j / 2 * 8 + col + 1), bf16())
                    : 0;
  }
  wgmma_fence();
  F::multiply(d, a);
  wgmma_wait<0>(d);
  bool right = true;
  FA_UNROLL
  for (int n = 0; n < F::N / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int i = row + e / 2 * 8, j = 8 * n + col + e % 2;
      const int k = ((p.one_in_a ? i : j) * 5 + p.shift) % F::DEPTH; /* the 1 of the row or column */
      right &= d[n][e] == (p.one_in_a ? value_of<F>(p, false, j, k) : value_of<F>(p, true, i, k));
    }
  }
  if (!right) atomic_add(p.wrong, 1.0f);
}

} // namespace fa

#endif
