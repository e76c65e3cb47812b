/* O as it is stored: in 8 bits times a scale where the call has one. */
#include "tests/exec/simulated/head.h"

#include <math.h>
#include <stdint.h>

float sim_o_scale(const sim_call *call) {
  const fa_plugin_tensor *t = &call->t->o_scale;
  return t->data ? sim_load(t->data, t->dtype, 0) : 1.0f;
}

/* The bits of a number of the format, and of NaN and infinity where it has them. */
static uint8_t bits_of(float y, bool e4m3) {
  const int fraction = e4m3 ? 3 : 2, least = e4m3 ? -6 : -14, bias = 1 - least;
  const uint8_t sign = signbit(y) ? 0x80 : 0;
  if (isnan(y)) return 0x7f;
  if (isinf(y)) return sign | (e4m3 ? 0x7f : 0x7c);
  if (y == 0.0f) return sign;
  int exponent = ilogbf(y) < least ? least : ilogbf(y);
  const int steps = (int)ldexpf(fabsf(y), fraction - exponent); /* below 1 << fraction: not normal */
  return (uint8_t)(sign | (((exponent + bias - 1) << fraction) + steps));
}

/* Rounded, saturating, or wrong in the way that is asked for. */
static float round_o(const sim_call *call, float x, bool e4m3) {
  const int bug = call->c->o_bug;
  const float most = e4m3 ? 448.0f : 57344.0f, normal = e4m3 ? 0x1p-6f : 0x1p-14f;
  const float beyond = e4m3 ? 464.0f : 61440.0f;
  if (bug == SIM_O_OVERFLOWS && fabsf(x) > beyond) return e4m3 ? NAN : copysignf(INFINITY, x);
  if (bug == SIM_O_STOPS_EARLY && fabsf(x) > 240.0f) return copysignf(240.0f, x);
  if (bug == SIM_O_FLUSHED && fabsf(x) < normal) return copysignf(0.0f, x);
  if (fabsf(x) > most) return copysignf(most, x);
  return sim_round(x, e4m3 ? SIM_E4M3 : SIM_E5M2, bug == SIM_O_TRUNCATED);
}

void sim_store_o(const sim_call *call, int64_t at, float x) {
  const fa_plugin_tensor *o = &call->t->o;
  const int bug = call->c->o_bug;
  const float scale = sim_o_scale(call);
  if (!call->t->o_scale.data) {
    sim_store(o->data, o->dtype, at, x);
    return;
  }
  const float by = bug == SIM_O_SCALED_TWICE ? scale * scale
                   : bug == SIM_O_UNSCALED   ? 1.0f
                   : bug == SIM_O_DIVIDED    ? 1.0f / scale
                                             : scale;
  const bool e4m3 = o->dtype == FA_PLUGIN_E4M3;
  ((uint8_t *)o->data)[at] = bits_of(round_o(call, x * by, e4m3), e4m3);
}
