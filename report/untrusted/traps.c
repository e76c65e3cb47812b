#include "report/untrusted/traps.h"

#include <cjson/cJSON.h>
#include <string.h>

static const char *const names[FA_N_TRAPS] = {
    [FA_TRAP_DATA] = "data",       [FA_TRAP_KEYS] = "keys",       [FA_TRAP_ELEMENT] = "element",
    [FA_TRAP_SCALE] = "scale",     [FA_TRAP_DROPOUT] = "dropout", [FA_TRAP_LENGTHS] = "lengths",
    [FA_TRAP_PROCESS] = "process", [FA_TRAP_SEEDS] = "seeds"};

const char *fa_trap_name(fa_trap t) {
  return t >= 0 && t < FA_N_TRAPS ? names[t] : "?";
}

void fa_traps_add(cJSON *entry, unsigned traps) {
  cJSON *list = traps ? cJSON_AddArrayToObject(entry, "traps") : NULL;
  for (int t = 0; list && t < FA_N_TRAPS; ++t)
    if (traps >> t & 1) cJSON_AddItemToArray(list, cJSON_CreateString(names[t]));
}

unsigned fa_traps_read(const cJSON *entry) {
  const cJSON *word;
  unsigned traps = 0;
  cJSON_ArrayForEach(word, cJSON_GetObjectItemCaseSensitive(
                               entry, "traps")) for (int t = 0; cJSON_IsString(word) && t < FA_N_TRAPS;
                                                     ++t) if (strcmp(word->valuestring, names[t]) == 0)
      traps |= 1u << t;
  return traps;
}
