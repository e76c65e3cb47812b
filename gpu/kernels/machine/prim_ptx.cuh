/* The device body of prim.cuh: inline PTX for sm_80 and later. */
#ifndef FA_GPU_KERNELS_MACHINE_PRIM_PTX_CUH
#define FA_GPU_KERNELS_MACHINE_PRIM_PTX_CUH

#define FA_DEVICE __device__ __forceinline__
#define FA_CALLED __device__ __noinline__
#define FA_UNROLL _Pragma("unroll")
#define FA_UNROLL_2 _Pragma("unroll 2")
#define FA_PRAGMA(x) _Pragma(#x)
#define FA_UNROLL_BY(n) FA_PRAGMA(unroll(n))
#define FA_NO_UNROLL _Pragma("unroll 1")

namespace fa {

extern __shared__ __align__(1024) char dynamic_shared[];

FA_DEVICE uint32_t shared_base() {
  return static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared));
}

FA_DEVICE int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

FA_DEVICE void sync_block() {
  __syncthreads();
}
FA_DEVICE void sync_warp() {
  __syncwarp();
}
FA_DEVICE float shfl_xor(float x, int lane_mask) {
  return __shfl_xor_sync(0xffffffffu, x, lane_mask);
}
FA_DEVICE float of_lane(float x, int lane) {
  return __shfl_sync(0xffffffffu, x, lane);
}

FA_DEVICE vec4 load_shared16(uint32_t shared) {
  vec4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(shared)
               : "memory");
  return v;
}
FA_DEVICE vec2 load_shared8(uint32_t shared) {
  vec2 v;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(shared) : "memory");
  return v;
}
FA_DEVICE uint32_t load_shared4(uint32_t shared) {
  uint32_t v;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(shared) : "memory");
  return v;
}
FA_DEVICE void store_shared16(uint32_t shared, vec4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}
FA_DEVICE void store_shared4(uint32_t shared, uint32_t v) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(v) : "memory");
}

template <class T> FA_DEVICE T load_global(const T *p) {
  return __ldg(p);
}
template <class T> FA_DEVICE void store_global(T *p, T v) {
  *p = v;
}
template <> FA_DEVICE void store_global<vec4>(vec4 *p, vec4 v) {
  *reinterpret_cast<uint4 *>(p) = make_uint4(v.x, v.y, v.z, v.w);
}

FA_DEVICE void cp_async16(uint32_t shared, const void *global, bool in_range) {
  const int bytes_read = in_range ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared),
               "l"(__cvta_generic_to_global(global)), "r"(bytes_read)
               : "memory");
}
FA_DEVICE void cp_async16_of_line(uint32_t shared, const void *global, bool in_range) {
  const int bytes_read = in_range ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared),
               "l"(__cvta_generic_to_global(global)), "r"(bytes_read)
               : "memory");
}
FA_DEVICE void cp_async4(uint32_t shared, const void *global, bool in_range) {
  const int bytes_read = in_range ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared),
               "l"(__cvta_generic_to_global(global)), "r"(bytes_read)
               : "memory");
}
FA_DEVICE void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> FA_DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

FA_DEVICE void ldmatrix_x4(uint32_t (&r)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}
FA_DEVICE void ldmatrix_x4_trans(uint32_t (&r)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

FA_DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t *b, f16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
FA_DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t *b, bf16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

FA_DEVICE float multiply(float a, float b) {
  return __fmul_rn(a, b);
}
FA_DEVICE float divide(float a, float b) {
  return __fdiv_rn(a, b);
}
FA_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
FA_DEVICE float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
FA_DEVICE float natural_log(float x) {
  return logf(x);
}
FA_DEVICE float infinity() {
  return __int_as_float(0x7f800000);
}

FA_DEVICE uint32_t pack2(float lo, float hi, f16) {
  uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
FA_DEVICE uint32_t pack2(float lo, float hi, bf16) {
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}

/* From sm_89 on. */
FA_DEVICE uint32_t pack4(float a, float b, float c, float d, e4m3) {
  uint32_t r;
  asm("{ .reg .b16 lo, hi; cvt.rn.satfinite.e4m3x2.f32 lo, %2, %1; cvt.rn.satfinite.e4m3x2.f32 hi, %4, %3; "
      "mov.b32 %0, {lo, hi}; }"
      : "=r"(r)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return r;
}
FA_DEVICE uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t which) {
  return __byte_perm(a, b, which);
}
FA_DEVICE uint32_t spread_tops(uint32_t x, int lo, int hi) {
  uint32_t mask; /* numbers from 8 on: the byte's sign, eight times */
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(mask) : "r"(x), "r"((0x8 | lo) * 0x11 | (0x8 | hi) * 0x1100));
  return mask;
}

template <> FA_DEVICE vec4 load_global<vec4>(const vec4 *p) {
  const uint4 v = __ldg(reinterpret_cast<const uint4 *>(p));
  return vec4{v.x, v.y, v.z, v.w};
}

FA_DEVICE float as_float(uint32_t bits) {
  return __uint_as_float(bits);
}

/* e4m3's bits are an f16's but for the exponent, which is 8 less. */
FA_DEVICE uint32_t widen2(uint32_t bytes, e4m3, f16) {
  uint32_t r;
#if __CUDA_ARCH__ >= 890
  asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.rn.f16x2.e4m3x2 %0, lo; }" : "=r"(r) : "r"(bytes));
#else
  const uint32_t upper = pick_bytes(bytes, 0, 0x1404), magnitude = upper & 0x7f007f00u;
  asm("mul.f16x2 %0, %1, %2;" : "=r"(r) : "r"((upper & 0x80008000u) | magnitude >> 1), "r"(0x5c005c00u));
  if ((magnitude & 0x7f00u) == 0x7f00u) r |= 0x7fffu;
  if (magnitude >> 16 == 0x7f00u) r |= 0x7fff0000u;
#endif
  return r;
}
FA_DEVICE uint32_t widen2(uint32_t bytes, e5m2, f16) {
  return pick_bytes(bytes, 0, 0x1404); /* they are the upper half of an f16 */
}
/* x + 128 are the lowest bits of 1024 + x + 128. */
FA_DEVICE uint32_t widen2(uint32_t bytes, i8, f16) {
  uint32_t r;
  const uint32_t shifted = pick_bytes(bytes ^ 0x8080u, 0x64646464u, 0x4140);
  asm("sub.f16x2 %0, %1, %2;" : "=r"(r) : "r"(shifted), "r"(0x64806480u));
  return r;
}
FA_DEVICE float low_half(uint32_t x, f16);
FA_DEVICE float high_half(uint32_t x, f16);
/* So few digits are in the upper half of an f32. */
template <class E> FA_DEVICE uint32_t widen2(uint32_t bytes, E from, bf16) {
  const uint32_t r = widen2(bytes, from, f16());
  return pick_bytes(__float_as_uint(low_half(r, f16())), __float_as_uint(high_half(r, f16())), 0x7632);
}

/* Before sm_90 the kernels of a stream never overlap. */
FA_DEVICE void next_kernel_may_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
FA_DEVICE void wait_for_kernels_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/* Neither ld.global.nc nor a load through L1: both may return stale data. */
template <class T> FA_DEVICE T load_written(const T *p);
template <> FA_DEVICE float load_written<float>(const float *p) {
  float x;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(x) : "l"(__cvta_generic_to_global(p)) : "memory");
  return x;
}
template <> FA_DEVICE vec4 load_written<vec4>(const vec4 *p) {
  vec4 v;
  asm volatile("ld.global.cg.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return v;
}
FA_DEVICE float low_half(uint32_t x, f16) {
  float y;
  asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.f32.f16 %0, lo; }" : "=f"(y) : "r"(x));
  return y;
}
FA_DEVICE float high_half(uint32_t x, f16) {
  float y;
  asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.f32.f16 %0, hi; }" : "=f"(y) : "r"(x));
  return y;
}
FA_DEVICE float low_half(uint32_t x, bf16) {
  return as_float(x << 16);
}
FA_DEVICE float high_half(uint32_t x, bf16) {
  return as_float(x & 0xffff0000u);
}

FA_DEVICE uint32_t multiply2(uint32_t x, uint32_t y, f16) {
  uint32_t r;
  asm("mul.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
  return r;
}

FA_DEVICE void atomic_add(float *p, float x) {
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "f"(x) : "memory");
}
FA_DEVICE void atomic_add(uint64_t *p, uint64_t n) {
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "l"(n) : "memory");
}
FA_DEVICE void atomic_max(float *p, float x) {
  asm volatile("red.global.max.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(__float_as_uint(x))
               : "memory");
}
FA_DEVICE void atomic_add4(float *p, const float (&v)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "f"(v[0]),
               "f"(v[1]), "f"(v[2]), "f"(v[3])
               : "memory");
#else
  for (int i = 0; i < 4; ++i) atomic_add(p + i, v[i]);
#endif
}

FA_DEVICE void atomic_add2(float *p, const float (&v)[2]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "f"(v[0]), "f"(v[1])
               : "memory");
#else
  for (int i = 0; i < 2; ++i) atomic_add(p + i, v[i]);
#endif
}

/* Read as f16, the bytes are subnormals, which compare like integers. */
FA_DEVICE uint32_t bytes_at_most(uint32_t word, int pair, uint32_t limit) {
  uint32_t r;
  asm("set.le.u32.f16x2 %0, %1, %2;"
      : "=r"(r)
      : "r"(__byte_perm(word, 0, pair ? 0x4342 : 0x4140)), "r"(limit));
  return r;
}

FA_DEVICE uint32_t float_bits(float x) {
  return __float_as_uint(x);
}
FA_DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} // namespace fa

#endif
