#include "fuzz/timing/defences.h"

#include "fuzz/options/choices.h"

#include <string.h>

static const char *const names[FA_N_DEFENCES] = {FA_BENCH_DEFENCES};

const char *fa_defence_name(fa_defence d) {
  return names[d];
}

bool fa_defence_leave_out(fa_defence_set *set, const char *name) {
  for (int d = 0; d < FA_N_DEFENCES; ++d) {
    if (strcmp(names[d], name) != 0) continue;
    *set &= ~(1u << d);
    return true;
  }
  return false;
}
