#include "report/result.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  bool failure;
} states[FA_N_STATES] = {
    [FA_UNTESTED] = {"UNTESTED", true},
    [FA_PASS] = {"PASS", false},
    [FA_FAIL] = {"FAIL", true},
    [FA_CRASH] = {"CRASH", true},
    [FA_HANG] = {"HANG", true},
    [FA_OOB] = {"OOB", true},
    [FA_INPUT_MODIFIED] = {"INPUT_MODIFIED", true},
    [FA_NONDETERMINISTIC] = {"NONDETERMINISTIC", true},
    [FA_RACE] = {"RACE", true},
    [FA_DEADLOCK] = {"DEADLOCK", true},
    [FA_VACUOUS] = {"VACUOUS", true},
    [FA_NOT_REJECTED] = {"NOT_REJECTED", true},
    [FA_SKIP] = {"SKIP", false},
    [FA_ERROR] = {"ERROR", false},
};

const char *fa_state_name(fa_state s) {
  FA_ASSERT(s >= 0 && s < FA_N_STATES);
  return states[s].name;
}

bool fa_state_from_name(const char *name, fa_state *out) {
  for (int s = 0; s < FA_N_STATES; ++s) {
    if (strcmp(states[s].name, name) == 0) {
      *out = (fa_state)s;
      return true;
    }
  }
  return false;
}

bool fa_state_is_failure(fa_state s) {
  FA_ASSERT(s >= 0 && s < FA_N_STATES);
  return states[s].failure;
}

bool fa_result_proves_nothing(const fa_result *r) {
  return r->state == FA_SKIP && strcmp(r->reason, FA_REASON_VACUOUS) == 0;
}

void fa_result_init(fa_result *r) {
  memset(r, 0, sizeof *r);
}

void fa_result_drop_maps(fa_result *r) {
  for (int i = 0; i < FA_T_COUNT; ++i) {
    free(r->map[i]);
    r->map[i] = NULL;
  }
}

void fa_result_free(fa_result *r) {
  free(r->name);
  free(r->case_line);
  fa_result_drop_maps(r);
  fa_result_init(r);
}
