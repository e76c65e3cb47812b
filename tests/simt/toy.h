/* A launch of toy kernels on the executor, and what they share. Included by one source of a program. */
#ifndef FA_TESTS_SIMT_TOY_H
#define FA_TESTS_SIMT_TOY_H

#include "gpu/kernels/machine/prim.cuh"
#include "gpu/simt/launch.h"

extern "C" {
#include "gpu/simt/block.h"
}
#include "tests/support/check.h"

#include <string.h>

using namespace fa;

enum { N = 128 };
alignas(128) static struct {
  float before[64], in[4 * N], between[64], out[N], middle[64], scratch[N], after[64];
} memory;
static float *const global_in = memory.in, *const global_out = memory.out, *const scratch = memory.scratch;
static uint8_t scratch_written[N];
static const char *fault_file = "tests/test_simt";
static int fault_line;
/* Put before the statement that breaks the rules. */
#define FAULT fault_file = __FILE__, fault_line = __LINE__

static inline fa_simt_report launch(fa_simt_kernel kernel, uint64_t seed = 0, unsigned threads = N,
                                    size_t shared = 4096, fa_simt_dim grid = {1, 1, 1}, int n_threads = 1,
                                    bool overlaps = false, bool adds_in_order = false) {
  const fa_simt_range ranges[] = {
      {"in", (const char *)global_in, sizeof memory.in, false, nullptr},
      {"out", (const char *)global_out, sizeof memory.out, true, nullptr},
      {"scratch", (const char *)scratch, sizeof memory.scratch, true, scratch_written}};
  fa_simt_launch l = {};
  l.kernel = kernel;
  l.name = "toy";
  l.grid = grid;
  l.block = {threads, 1, 1};
  l.shared_bytes = shared;
  l.ranges = ranges;
  l.n_ranges = 3;
  l.schedule_seed = seed;
  l.n_threads = n_threads;
  l.overlaps = overlaps;
  l.adds_in_order = adds_in_order;
  fa_simt_report r;
  fa_error err;
  const fa_status status = fa_simt_run(&l, &r, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  return r;
}

/* Under many schedules, the kernel is reported in this state, and the text names the line of its FAULT (of
 * two unordered accesses either may come second, and is then named first). */
static inline void expect(const char *what, fa_simt_kernel kernel, fa_subject_state state,
                          const char *words) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const fa_simt_report r = launch(kernel, seed);
    char place[64];
    snprintf(place, sizeof place, "%s:%d:", fault_file, fault_line);
    if (state == FA_SUBJECT_RACE) snprintf(place, sizeof place, "%s:%d", fault_file, fault_line);
    CHECK_MSG(r.state == state, "%s, seed %d: state %d: %s", what, (int)seed, r.state, r.text);
    CHECK_MSG(strstr(r.text, words) != NULL, "%s, seed %d: \"%s\" lacks \"%s\"", what, (int)seed, r.text,
              words);
    CHECK_MSG(strstr(r.text, place) != NULL, "%s, seed %d: not at line %d: %s", what, (int)seed, fault_line,
              r.text);
    CHECK(r.file && strstr(r.file, fault_file) && r.line > 0);
  }
}

static inline int thread_id() {
  return static_cast<int>(threadIdx.x);
}
static inline float float_of(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}
static inline uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
static inline float first_float(vec4 v) {
  return float_of(v.x);
}

#endif
