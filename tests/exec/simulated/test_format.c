/* The simulated kernel's conversions against the project's, over all patterns of 16 bits and many floats, and its
 * coarser formats by their definitions. */
#include "cases/base/dtype.h"
#include "gpu/plugin.h"
#include "tests/exec/simulated/format.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static void check_patterns(int plain, fa_dtype dtype) {
  for (uint32_t u = 0; u < 65536; ++u) {
    const uint16_t h = (uint16_t)u;
    uint16_t back = 0;
    const float x = sim_load(&h, plain, 0);
    const double want = fa_load(dtype, &h);
    CHECK(isnan(want) ? isnan(x) : (double)x == want && !signbit(want) == !signbit(x));
    if (isnan(x)) continue;
    sim_store(&back, plain, 0, x);
    CHECK(back == h);
  }
}

/* Steps through the floats, and sits on the ties. */
static void check_rounding(int plain, fa_dtype dtype) {
  for (uint64_t u = 0; u < UINT64_C(1) << 32; u += 40009) {
    for (int tie = 0; tie < 2; ++tie) {
      uint32_t b = (uint32_t)u;
      if (tie) b = (b & ~UINT32_C(0x1fff)) | (plain == FA_PLUGIN_BF16 ? 0x8000 : 0x1000);
      float x;
      uint16_t got = 0, want = 0;
      memcpy(&x, &b, sizeof x);
      if (isnan(x)) continue;
      sim_store(&got, plain, 0, x);
      fa_store(dtype, &want, x);
      CHECK(got == want);
    }
  }
}

static void check_coarse(void) {
  CHECK(sim_round(1.0f + 0x1p-11f, SIM_TF32, false) == 1.0f); /* a tie goes to even */
  CHECK(sim_round(1.0f + 0x3p-11f, SIM_TF32, false) == 1.0f + 0x1p-9f);
  CHECK(sim_round(1.0f + 0x1.8p-11f, SIM_TF32, false) == 1.0f + 0x1p-10f);
  CHECK(sim_round(1.0f + 0x1.8p-11f, SIM_TF32, true) == 1.0f);
  CHECK(sim_round(-1.0f - 0x1.fp-8f, SIM_BF16, true) == -1.0f);
  CHECK(sim_round(300.0f, SIM_E4M3, false) == 288.0f);
  CHECK(sim_round(1e9f, SIM_E4M3, false) == 448.0f);
  CHECK(sim_round(0x1.8p-10f, SIM_E4M3, false) == 0x1p-9f); /* the least number is 2^-9 */
  CHECK(sim_round(0x1p-10f, SIM_E4M3, false) == 0.0f);
  CHECK(sim_round(1.125f, SIM_E5M2, false) == 1.0f);
  CHECK(sim_round(70000.0f, SIM_F16, false) == INFINITY);
  CHECK(sim_round(0x1.8p-25f, SIM_F16, true) == 0.0f);
  float x[3] = {127.0f, 1.4f, -0.6f};
  sim_round_int8(x, 3, 3);
  CHECK(x[0] == 127.0f && x[1] == 1.0f && x[2] == -1.0f);
}

int main(void) {
  check_patterns(FA_PLUGIN_F16, FA_F16);
  check_patterns(FA_PLUGIN_BF16, FA_BF16);
  check_rounding(FA_PLUGIN_F16, FA_F16);
  check_rounding(FA_PLUGIN_BF16, FA_BF16);
  check_coarse();
  return check_done();
}
