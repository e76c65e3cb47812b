#include "cases/vocabulary/quantized.h"

const char *fa_descale_per_name(fa_descale_per per) {
  static const char *const names[FA_N_DESCALES] = {"tensor", "head", "token", "page", "tile"};
  return (unsigned)per < FA_N_DESCALES ? names[per] : "?";
}

bool fa_quantizes_o(const fa_quantized *q) {
  return q->o != 0;
}

const char *fa_descale_values_name(fa_descale_values values) {
  static const char *const names[FA_N_DESCALE_VALUES] = {"any", "powers", "one"};
  return (unsigned)values < FA_N_DESCALE_VALUES ? names[values] : "?";
}
