/* The key "topk". */
#include "cases/codec/keys.h"

READER(read_k) {
  return fa_read_int(r, v, 1, FA_MAX_TOPK, &P.topk.k);
}
READER(read_none) {
  return fa_read_number(r, v, 0, 1, &P.topk.none);
}
READER(read_none_at) {
  const char *words[FA_TOPK_N_PLACES];
  int word = 0;
  for (int i = 0; i < FA_TOPK_N_PLACES; ++i) words[i] = fa_topk_place_name((fa_topk_place)i);
  TRY(fa_read_word(r, v, words, FA_TOPK_N_PLACES, &word));
  P.topk.none_at = (fa_topk_place)word;
  return FA_OK;
}
READER(read_repeated) {
  return fa_read_number(r, v, 0, 1, &P.topk.repeated);
}
READER(read_empty_rows) {
  return fa_read_number(r, v, 0, 1, &P.topk.empty_rows);
}
READER(read_beyond) {
  return fa_read_bool(r, v, &P.topk.beyond);
}
READER(read_len) {
  return fa_read_ints(r, v, 0, FA_MAX_TOPK, 1, &P.topk.len);
}
READER(read_seed) {
  return fa_read_u64(r, v, &P.topk.seed);
}
static const fa_case_key topk_keys[] = {{"k", read_k},
                                        {"none", read_none},
                                        {"none_at", read_none_at},
                                        {"repeated", read_repeated},
                                        {"empty_rows", read_empty_rows},
                                        {"beyond", read_beyond},
                                        {"len", read_len},
                                        {"seed", read_seed},
                                        {0}};
fa_status fa_read_topk(fa_case_reader *r, const cJSON *v) {
  P.topk.present = true;
  P.topk.k = 64;
  return fa_read_object(r, v, topk_keys);
}
