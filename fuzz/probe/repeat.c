/* Runs against each other, and how a group's gradients are added up. */
#include "fuzz/probe/format.h"
#include "fuzz/probe/questions.h"

#include "cases/data/build.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KEYS = 64, LENGTH = 256 };

/* Two heads share a KV head. dV of the first is 1 + ulp/4, of the second -1: rounded each for itself, nothing is left. */
void probe_group(probe *x) {
  probe_ask a;
  if (!x->has_backward || x->dtype == FA_F32) return;
  if (ask_begin(&a, x, FA_PASS_FORWARD | FA_PASS_BACKWARD, 2, KEYS, KEYS)) {
    a.c.problem.heads_kv = 1;
    if (ask_build(&a, KEYS)) {
      const double quarter = 0.25 * ldexp(1.0, -probe_fraction_bits(FA_FORMAT_IO, x->dtype));
      ask_set(&a, FA_T_DO, 0, 0, 0, 64.0);
      ask_set(&a, FA_T_DO, 1, 0, 0, 64.0 * quarter);
      ask_set(&a, FA_T_DO, 0, 1, 0, -64.0);
      if (ask_run(&a)) {
        const double left = ask_get(&a, FA_T_DV, 0, 0, 0) / quarter;
        const bool told = fabs(left) < 0.05 || fabs(left - 1) < 0.05, rounded = fabs(left) < 0.05;
        if (told) x->r->found.arithmetic.gqa_partials_rounded = rounded;
        probe_say(x, "gqa_partials_rounded", told ? FA_PROBE_CERTAIN : FA_PROBE_UNTOLD,
                  !told     ? ""
                  : rounded ? "true"
                            : "false",
                  "dV of two heads, 1 + ulp/4 and -1: %.3g quarters of an ulp are left (1; rounded each: 0)",
                  left);
        ask_end(&a);
        return;
      }
    }
  }
  probe_say_not_asked(x, "gqa_partials_rounded", a.why);
  ask_end(&a);
}

static bool is_equal(const fa_tensor *s, const fa_tensor *t) {
  int64_t index[FA_MAX_RANK];
  for (int64_t i = 0; s->data && i < fa_tensor_count(s); ++i) {
    fa_tensor_unravel(s, i, index);
    const int64_t at = fa_tensor_offset(s, index);
    if (memcmp(s->data + at, t->data + at, fa_dtype_size(s->dtype)) != 0) return false;
  }
  return true;
}

static void note_difference(probe *x, fa_tensor_id id) {
  fa_arithmetic *f = &x->r->found.arithmetic;
  f->dq_atomic |= id == FA_T_DQ;
  f->dkv_atomic |= id == FA_T_DK || id == FA_T_DV;
}

/* Ordinary data, several times. */
void probe_repeat(probe *x) {
  enum { RUNS = 3 };
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
  probe_ask a;
  char differ[64] = "";
  fa_tensors first;
  fa_error err;
  const unsigned passes = FA_PASS_FORWARD | (x->has_backward ? FA_PASS_BACKWARD : 0);
  memset(&first, 0, sizeof first);
  x->r->found.arithmetic.dq_atomic = x->r->found.arithmetic.dkv_atomic = false;
  if (ask_begin(&a, x, passes, 2, LENGTH, LENGTH)) {
    fa_case_set_fill(&a.c, FA_FILL_NORMAL);
    if (ask_build(&a, KEYS) && ask_run(&a) && fa_tensors_clone(&first, &a.out, &err) == FA_OK) {
      for (int run = 1; run < RUNS && ask_run(&a); ++run)
        for (int i = 0; i < 5; ++i) {
          if (is_equal(&first.t[ids[i]], &a.out.t[ids[i]]) || strstr(differ, fa_tensor_id_name(ids[i])))
            continue;
          note_difference(x, ids[i]);
          strcat(differ, differ[0] ? " " : "");
          strcat(differ, fa_tensor_id_name(ids[i]));
        }
      probe_say(x, "repeats", differ[0] ? FA_PROBE_CERTAIN : FA_PROBE_LIKELY, differ[0] ? differ : "equal",
                "%d runs over 2 x 256 x 256: %s%s", RUNS, differ[0] ? "these differ: " : "the same bits",
                differ);
      fa_tensors_free(&first);
      ask_end(&a);
      return;
    }
  }
  probe_say_not_asked(x, "repeats", a.why);
  fa_tensors_free(&first);
  ask_end(&a);
}
