/* Conventions of subjects: defaults and names. */
#include "cases/vocabulary/contract.h"

#include <stddef.h>

void fa_contract_init(fa_contract *c) {
  *c = (fa_contract){.outputs = ~(fa_tensor_bits)0, .lse_dtype = FA_F32};
}

static const char *name_of(const char *const *names, int n, int i) {
  return i >= 0 && i < n ? names[i] : NULL;
}

const char *fa_lse_layout_name(int i) {
  static const char *const names[] = {"as_call", "padded", "tokens_heads"};
  return name_of(names, FA_N_LSE_LAYOUTS, i);
}

const char *fa_lse_of_empty_name(int i) {
  static const char *const names[] = {"as_case", "+inf", "-inf", "0", "nan", "any"};
  return name_of(names, FA_N_LSE_OF_EMPTY, i);
}

const char *fa_o_of_empty_name(int i) {
  static const char *const names[] = {"0", "mean_v", "nan", "any"};
  return name_of(names, FA_N_O_OF_EMPTY, i);
}

const char *fa_lse_alibi_name(int i) {
  static const char *const names[] = {"distance", "column"};
  return name_of(names, FA_N_LSE_ALIBI, i);
}
