/* What the backward takes in: dLSE, and dP as it was or rounded. */
#include "fuzz/probe/format.h"
#include "fuzz/probe/questions.h"

#include <math.h>

enum { KEYS = 64 };

/* dO is 0 and dLSE 1: dS = P, and dQ = scale P K. */
void probe_dlse(probe *x) {
  probe_ask a;
  if (!x->has_backward) return;
  if (ask_begin(&a, x, FA_PASS_FORWARD | FA_PASS_BACKWARD, 1, KEYS, KEYS)) {
    a.c.problem.grad_lse = true;
    if (ask_build(&a, KEYS)) {
      const int64_t row[3] = {0, 0, 0};
      fa_tensor_set(&a.in.t[FA_T_DLSE], row + (3 - a.in.t[FA_T_DLSE].rank), 64.0);
      ask_set(&a, FA_T_K, 1, 0, 0, 1.0);
      if (ask_run(&a)) {
        const double got = ask_get(&a, FA_T_DQ, 0, 0, 0) / PROBE_SCALE;
        const char *value = fabs(got - 1) < 0.02 ? "used" : fabs(got) < 0.02 ? "ignored" : "other";
        probe_say_convention(x, "dlse", FA_PROBE_CERTAIN, value, "used",
                             "dO = 0, dLSE = 64, P = 1/64: dQ / scale is %.6g (1; ignored: 0)", got);
        ask_end(&a);
        return;
      }
    }
  }
  probe_say_not_asked(x, "dlse", a.why);
  ask_end(&a);
}

/* dP of row i is 1 + i/16 ulp; delta is nearly 1 too, because O is: what is left of dP - delta is a few sixteenths of an
 * ulp, if dP was not rounded. V_1 = (1, ulp/16), the other keys' V = (1, 0): delta = 1 + i ulp / 1024. */
void probe_dp(probe *x) {
  probe_ask a;
  if (!x->has_backward || x->dtype == FA_F32) return;
  if (ask_begin(&a, x, FA_PASS_FORWARD | FA_PASS_BACKWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    const double part = ldexp(1.0, -probe_fraction_bits(FA_FORMAT_IO, x->dtype)) / 16;
    for (int64_t j = 0; j < KEYS; ++j) ask_set(&a, FA_T_V, j, 0, 0, 1.0);
    ask_set(&a, FA_T_V, 1, 0, 1, part);
    ask_set(&a, FA_T_K, 1, 0, 0, 1.0);
    for (int64_t i = 1; i < 8; ++i) {
      ask_set(&a, FA_T_DO, i, 0, 0, 1.0);
      ask_set(&a, FA_T_DO, i, 0, 1, (double)i);
    }
    if (ask_run(&a)) {
      double kept = 0, gone = 0;
      for (int64_t i = 1; i < 8; ++i) {
        const double got = ask_get(&a, FA_T_DQ, i, 0, 0) / PROBE_SCALE * KEYS / part, whole = (double)i;
        kept += fabs(got - whole * 63 / 64) / 7;
        gone += fabs(got + whole / 64) / 7;
      }
      const bool told = fmin(kept, gone) < 0.2, rounded = gone < kept;
      if (told) x->r->found.arithmetic.dp = rounded ? FA_FORMAT_IO : FA_FORMAT_F32;
      probe_say(x, "dp", told ? FA_PROBE_CERTAIN : FA_PROBE_UNTOLD,
                !told     ? ""
                : rounded ? "io"
                          : "f32",
                "dP = 1 + i/16 ulp: dS is off by %.3g sixteenths (rounded: by %.3g)", kept, gone);
      ask_end(&a);
      return;
    }
  }
  probe_say_not_asked(x, "dp", a.why);
  ask_end(&a);
}
