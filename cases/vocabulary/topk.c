#include "cases/vocabulary/topk.h"

const char *fa_topk_place_name(fa_topk_place place) {
  static const char *const names[FA_TOPK_N_PLACES] = {"end", "front", "anywhere"};
  return (unsigned)place < FA_TOPK_N_PLACES ? names[place] : "?";
}
