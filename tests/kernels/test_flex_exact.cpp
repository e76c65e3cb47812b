/* Order-independent sums of floats, on the host executor: against the processor's addition of two numbers,
 * and against a sum kept bit by bit; and the registers in front of them. Elements of buffers, and blocks of a map, beyond
 * 2^32. */
extern "C" {
#include "cases/base/rng.h"
#include "gpu/simt/launch.h"
#include "tests/support/check.h"
}
#include "gpu/kernels/mods/blocks.cuh"
#include "gpu/kernels/mods/gradient.cuh"

#include <string.h>
#include <sys/mman.h>

using namespace fa;

enum { N = 1 << 12, WORDS = FA_FLEX_EXACT_WORDS, THREADS = FA_FLEX_EXACT_THREADS };

/* ---- launches ---- */

static struct memory {
  alignas(16) float x[N];
  int64_t element[N];
  float out[N];
  uint64_t exact[N * WORDS];
} m;

struct add_params {
  int64_t n;
  const fa_flex_args *flex;
};

static void launch_on(const fa_simt_range &range, fa_simt_kernel kernel, const void *params, unsigned blocks,
                      unsigned y, uint64_t seed) {
  fa_simt_launch l = {};
  l.kernel = kernel;
  l.params = params;
  l.name = "flex_exact";
  l.grid = {blocks, y, 1};
  l.block = {THREADS, 1, 1};
  l.ranges = &range;
  l.n_ranges = 1;
  l.schedule_seed = seed;
  l.n_threads = 2;
  fa_simt_report report;
  fa_error err = {""};
  CHECK_MSG(fa_simt_run(&l, &report, &err) == FA_OK && report.state == FA_SUBJECT_OK, "%s %s", err.text,
            report.text);
}
static void launch(fa_simt_kernel kernel, const void *params, unsigned blocks, unsigned y, uint64_t seed) {
  launch_on({"memory", reinterpret_cast<const char *>(&m), sizeof m, true, nullptr}, kernel, params, blocks,
            y, seed);
}

static void clear_kernel(const void *p) {
  flex_exact_clear(*static_cast<const fa_flex_exact_params *>(p));
}
static void round_kernel(const void *p) {
  flex_exact_round(*static_cast<const fa_flex_exact_params *>(p));
}
static void add_kernel(const void *params) {
  const add_params &p = *static_cast<const add_params *>(params);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (i < p.n) exact_add(m.exact + load_global(m.element + i) * WORDS, load_global(m.x + i));
}

static fa_flex_exact_params params_of(int64_t n) {
  fa_flex_exact_params p = {};
  p.out[3] = m.out; /* one of several buffers */
  p.exact[3] = m.exact;
  p.n[3] = n;
  return p;
}

/* out[e] = the sum of x[i] with element[i] == e, for i < n and e < n_elements. */
static void sum_up(int64_t n, int64_t n_elements, uint64_t seed) {
  const fa_flex_exact_params p = params_of(n_elements);
  const add_params a = {n, nullptr};
  memset(m.exact, 0xff, sizeof m.exact);
  memset(m.out, 0xff, sizeof m.out);
  const unsigned blocks =
      static_cast<unsigned>((n_elements + FA_FLEX_EXACT_ELEMENTS - 1) / FA_FLEX_EXACT_ELEMENTS);
  launch(clear_kernel, &p, blocks, FA_FLEX_CAPTURED, seed);
  launch(add_kernel, &a, static_cast<unsigned>((n + THREADS - 1) / THREADS), 1, seed);
  launch(round_kernel, &p, blocks, FA_FLEX_CAPTURED, seed);
  if (n_elements < N)
    CHECK(float_bits(m.out[n_elements]) == 0xffffffffu && m.exact[n_elements * WORDS] == ~0ull);
}

/* ---- what is expected ---- */

/* NaN equals NaN; only a sum of nothing but -0 is -0. */
static bool same(float got, float want) {
  if (want != want) return got != got;
  return float_bits(got) == (want == 0 ? 0 : float_bits(want));
}

/* A number by its bits: bit[k] counts 2^(k - 149). */
enum { BITS = 400 };
struct slow_sum {
  int64_t bit[BITS];
  int nan, plus, minus;
};

static void slow_add(slow_sum *s, float x) {
  if (x != x) {
    s->nan = 1;
  } else if (x - x != 0) {
    (x > 0 ? s->plus : s->minus) = 1;
  } else {
    int exponent;
    const int64_t whole =
        static_cast<int64_t>(ldexpf(frexpf(fabsf(x), &exponent), 24)); /* times 2^(exponent - 24) */
    for (int k = 0; k < 24; ++k)
      if (whole >> k & 1) s->bit[k + exponent - 24 + 149] += x < 0 ? -1 : 1; /* below 2^-149 no bit is set */
  }
}

static float slow_round(const slow_sum *s) {
  if (s->nan || (s->plus && s->minus)) return NAN;
  if (s->plus || s->minus) return s->plus ? INFINITY : -INFINITY;
  int64_t sign = 1;
  bool bit[BITS];
  for (int tried = 0; tried < 2; ++tried) {
    int64_t carry = 0;
    for (int k = 0; k < BITS; ++k) {
      carry += sign * s->bit[k];
      bit[k] = carry & 1;
      carry = (carry - bit[k]) / 2;
    }
    if (carry == 0) break;
    sign = -1;
  }
  int first = BITS - 1;
  while (first > 0 && !bit[first]) --first;
  const int last = first > 23 ? first - 23 : 0; /* of the bits that are kept */
  double value = 0;
  for (int k = first; k >= last; --k) value = 2 * value + bit[k];
  bool rest = false;
  for (int k = 0; k + 1 < last; ++k) rest |= bit[k];
  if (last > 0 && bit[last - 1] && (rest || bit[last])) value += 1;
  return static_cast<float>(static_cast<double>(sign) * ldexp(value, last - 149)); /* exact, or infinite */
}

/* ---- tests ---- */

static fa_rng rng;
static uint32_t random_bits() {
  return static_cast<uint32_t>(fa_rng_next(&rng));
}
/* Exponents of all sizes, usually mantissas with few bits, every class. */
static float random_float() {
  uint32_t bits = random_bits();
  const uint32_t kind = random_bits() % 16;
  if (kind < 6) bits &= 0xff800000u | (1u << random_bits() % 23);
  if (kind < 3) bits |= 0x7fffffu & ~((1u << random_bits() % 23) - 1);
  if (kind == 7) bits &= 0x807fffffu; /* subnormal */
  if (kind == 8) bits &= 0x80000000u;
  return as_float(bits);
}

/* Two numbers: the processor rounds their sum correctly. Also one number, and a third that cancels one of
 * two. */
static void test_pairs() {
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < N; i += 4) {
      const float a = random_float(),
                  near = as_float(float_bits(a) + random_bits() % (1u << random_bits() % 30));
      const float b = round % 3 == 0 ? random_float() : round % 3 == 1 ? -near : near, c = random_float();
      m.x[i] = a;
      m.x[i + 1] = round % 5 ? b : 0.0f;
      m.x[i + 2] = round % 2 && c - c == 0 ? c : 0.0f;
      m.x[i + 3] = -m.x[i + 2];
    }
    for (int i = 0; i < N; ++i) m.element[i] = i / 4;
    sum_up(N, N / 4, 0);
    int bad = 0;
    for (int i = 0; i < N; i += 4) bad += !same(m.out[i / 4], m.x[i] + m.x[i + 1]);
    CHECK_MSG(bad == 0, "%d pairs in round %d", bad, round);
  }
}

/* Every exponent with both signs, alone. */
static void test_single() {
  for (uint32_t i = 0; i < N; ++i) {
    m.x[i] = as_float(i << 23 | ((i >> 9) * 0x249249u & 0x7fffffu));
    m.element[i] = i;
  }
  sum_up(N, N, 0);
  int bad = 0;
  for (int i = 0; i < N; ++i) bad += !same(m.out[i], m.x[i]);
  CHECK_MSG(bad == 0, "%d numbers", bad);
}

static void shuffle() {
  for (int i = N - 1; i > 0; --i) {
    const int j = static_cast<int>(random_bits() % static_cast<uint32_t>(i + 1));
    const float x = m.x[i];
    const int64_t e = m.element[i];
    m.x[i] = m.x[j];
    m.element[i] = m.element[j];
    m.x[j] = x;
    m.element[j] = e;
  }
}

/* Many numbers added to few elements, in any order of work and of numbers. Element 0 has cancelling ones, 1
 * and 2 infinities, 3 a NaN. */
static void test_many() {
  enum { ELEMENTS = 24 };
  for (int round = 0; round < 20; ++round) {
    float first[ELEMENTS];
    for (int i = 0; i < N; ++i) {
      float x = random_float();
      while (x - x != 0) x = random_float();
      if (round % 2)
        x = ldexpf(x, static_cast<int>(random_bits() % 40) - 150); /* about as small as floats can be */
      m.element[i] = random_bits() % ELEMENTS;
      m.x[i] = x;
      if (m.element[i] == 0 && i > 0) { /* the previous number, except for its last bit */
        m.element[i - 1] = 0;
        m.x[i - 1] = as_float(float_bits(-x) ^ (random_bits() & 1));
      }
    }
    const float odd[][2] = {{1, INFINITY}, {2, INFINITY},  {2, -INFINITY},
                            {3, NAN},      {4, -INFINITY}, {3, INFINITY}};
    for (int k = 0; k < 6; ++k) {
      m.element[100 * k] = static_cast<int64_t>(odd[k][0]);
      m.x[100 * k] = odd[k][1];
    }
    static slow_sum want[ELEMENTS];
    memset(want, 0, sizeof want);
    for (int i = 0; i < N; ++i) slow_add(&want[m.element[i]], m.x[i]);
    for (int order = 0; order < 3; ++order) {
      sum_up(N, ELEMENTS, static_cast<uint64_t>(order));
      for (int e = 0; e < ELEMENTS; ++e) {
        CHECK_MSG(same(m.out[e], slow_round(&want[e])), "round %d element %d: %a, not %a", round, e, m.out[e],
                  slow_round(&want[e]));
        if (order > 0) CHECK(float_bits(first[e]) == float_bits(m.out[e]));
        first[e] = m.out[e];
      }
      shuffle();
    }
  }
}

/* Limbs as full as the largest number of additions can make them. */
static void test_full() {
  const fa_flex_exact_params p = params_of(N);
  const int64_t most = FA_FLEX_EXACT_ADDITIONS * 0xffffff;
  static slow_sum want[N];
  memset(m.exact, 0, sizeof m.exact);
  for (int e = 0; e < N; ++e)
    for (int k = 0; k < FLEX_LIMBS; ++k) {
      const uint32_t kind = random_bits() % 4;
      const int64_t limb = kind == 0   ? 0
                           : kind == 1 ? most
                           : kind == 2 ? -most
                                       : static_cast<int64_t>(random_bits()) - (1ll << 31);
      if (k > e % FLEX_LIMBS) continue;
      m.exact[e * WORDS + k] = static_cast<uint64_t>(limb);
      want[e].bit[FLEX_LIMB_BITS * k] = limb;
    }
  launch(round_kernel, &p, N / FA_FLEX_EXACT_ELEMENTS, FA_FLEX_CAPTURED, 0);
  int bad = 0, infinite = 0;
  for (int e = 0; e < N; ++e) {
    bad += !same(m.out[e], slow_round(&want[e]));
    infinite += m.out[e] - m.out[e] != 0;
  }
  CHECK_MSG(bad == 0 && infinite > 100 && infinite < N / 2, "%d, infinite %d", bad, infinite);
}

/* The comparison must notice one float that lost its last bit. */
static void test_sees_a_bit() {
  slow_sum s = {};
  slow_add(&s, 1.0f);
  slow_add(&s, 0x1p-24f);
  CHECK(same(1.0f, slow_round(&s)));
  slow_add(&s, 0x1p-149f);
  CHECK(same(1.0f + 0x1p-23f, slow_round(&s)) && !same(1.0f, slow_round(&s)));
}

/* ---- registers in front ---- */

enum { READS = 11, PAIRS = 40, BUFFER = 500 }; /* more reads than have registers */

static int64_t element_of(int thread, int pair, int read) {
  switch (read) {
  case 0:
    return 7; /* one for all */
  case 1:
    return thread / 8; /* shared by some lanes */
  case 2:
    return thread + pair; /* another for every pair */
  case 3:
    return pair / 10; /* runs */
  case 4:
    return thread % 2 ? pair % 2 : thread; /* back and forth */
  default:
    return (thread * 5 + pair * read) % BUFFER;
  }
}
/* Integers, so that sums do not depend on the order. */
static float share_of(int thread, int pair, int read) {
  return static_cast<float>((thread * 7 + pair * 3 + read) % 9 - 4);
}

static void register_kernel(const void *params) {
  const fa_flex_args &x = *static_cast<const add_params *>(params)->flex;
  const int thread = static_cast<int>(threadIdx.x);
  flex_gradients<flex_mods> gradients;
  for (int pair = 0; pair < PAIRS; ++pair) {
    if ((thread + pair) % 5 == 0) continue; /* masked */
    const auto add = gradients.adder(x, 2.0f);
    for (int read = 0; read < READS; ++read)
      add(read % 2, element_of(thread, pair, read), share_of(thread, pair, read));
  }
  gradients.flush(x, thread % 32);
}

static float no_slope(void *, float, const fa_flex_pair *, fa_flex_read *) {
  return 0;
}

static void test_registers() {
  const fa_flex_functions functions = {nullptr, nullptr, nullptr, no_slope, READS};
  float want[2][BUFFER] = {};
  for (int thread = 0; thread < THREADS; ++thread)
    for (int pair = 0; pair < PAIRS; ++pair)
      for (int read = 0; read < READS; ++read)
        if ((thread + pair) % 5)
          want[read % 2][element_of(thread, pair, read)] += 2 * share_of(thread, pair, read);
  for (int exact = 0; exact < 2; ++exact) {
    fa_flex_args x = {};
    x.functions = &functions;
    fa_flex_exact_params p = {};
    memset(m.out, 0xff, sizeof m.out);
    for (int k = 0; k < 2; ++k) {
      p.out[k] = p.dbuffer[k] = x.dbuffer[k] = m.out + k * BUFFER;
      p.exact[k] = x.exact[k] = exact && k ? m.exact : nullptr; /* one of each kind */
      p.n[k] = BUFFER;
    }
    const add_params a = {0, &x};
    launch(clear_kernel, &p, 2, FA_FLEX_CAPTURED, 0);
    launch(register_kernel, &a, 1, 1, 5);
    launch(round_kernel, &p, 2, FA_FLEX_CAPTURED, 0);
    int bad = 0;
    for (int k = 0; k < 2; ++k)
      for (int e = 0; e < BUFFER; ++e) bad += m.out[k * BUFFER + e] != want[k][e];
    CHECK_MSG(bad == 0, "exact %d: %d elements", exact, bad);
  }
}

/* ---- numbers beyond 32 bits ---- */

/* Zeros: address space, of which memory is what is touched. */
static char *reserve(size_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(p != MAP_FAILED);
  return static_cast<char *>(p);
}

/* Two elements of which the second's upper half, moved by one bit too few, makes it the first. */
static const int64_t far_element[2] = {(1ll << 31) + 5, (1ll << 32) + 5};

static void far_elements_kernel(const void *params) {
  const fa_flex_args &x = *static_cast<const add_params *>(params)->flex;
  const int thread = static_cast<int>(threadIdx.x);
  flex_gradients<flex_mods> gradients;
  gradients.adder(x, 1.0f)(0, far_element[thread % 2], 1.0f);
  gradients.flush(x, thread % 32);
}

static void test_far_elements() {
  const fa_flex_functions functions = {nullptr, nullptr, nullptr, no_slope, 1};
  const size_t bytes = static_cast<size_t>(far_element[1] + 1) * sizeof(float);
  char *buffer = reserve(bytes);
  fa_flex_args x = {};
  x.functions = &functions;
  x.dbuffer[0] = reinterpret_cast<float *>(buffer);
  const add_params a = {0, &x};
  launch_on({"buffer", buffer, bytes, true, nullptr}, far_elements_kernel, &a, 1, 1, 0);
  for (int64_t e : far_element)
    CHECK_MSG(x.dbuffer[0][e] == THREADS / 2, "element %lld: %g", static_cast<long long>(e),
              static_cast<double>(x.dbuffer[0][e]));
  munmap(buffer, bytes);
}

/* A map of 2^20 blocks a row: that of the pair is beyond 2^32. */
enum { FAR_ROW = (1 << 12) + 1, FAR_KEY = 3, FAR_BLOCKS = 1 << 20 };
static bool far_visible;

static void far_block_kernel(const void *params) {
  const fa_flex_args &x = *static_cast<const add_params *>(params)->flex;
  if (threadIdx.x == 0)
    far_visible =
        flex_visible<flex_mods>(x, FA_FLEX_MIXED, flex_pair{0, 0, FAR_ROW, FAR_KEY, FAR_ROW + 1, FAR_BLOCKS});
}

static void test_far_block() {
  const size_t at = static_cast<size_t>(FAR_ROW) * FAR_BLOCKS + FAR_KEY, bytes = at + 1;
  char *map = reserve(bytes);
  map[at] = FA_FLEX_FULL;
  fa_flex_args x = {};
  x.map = reinterpret_cast<const uint8_t *>(map);
  x.q_block = x.kv_block = 1;
  x.n_q_blocks = FAR_ROW + 1;
  x.n_kv_blocks = FAR_BLOCKS;
  const add_params a = {0, &x};
  launch_on({"map", map, bytes, false, nullptr}, far_block_kernel, &a, 1, 1, 0);
  CHECK(far_visible);
  munmap(map, bytes);
}

int main() {
  rng = fa_rng_make(20, 11);
  test_sees_a_bit();
  test_single();
  test_pairs();
  test_many();
  test_full();
  test_registers();
  test_far_elements();
  test_far_block();
  return check_done();
}
