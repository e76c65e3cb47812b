/* The key "mask_bits". */
#include "cases/codec/keys.h"

READER(read_density) {
  r->has_bits_density = true;
  P.mask_bits.source = FA_BITS_DENSITY;
  return fa_read_number(r, v, 0, 1, &P.mask_bits.density);
}
READER(read_tree) {
  const char *words[FA_N_BITS_SOURCES - 1];
  int word = 0;
  for (int i = 1; i < FA_N_BITS_SOURCES; ++i) words[i - 1] = fa_bits_source_name((fa_bits_source)i);
  r->has_bits_tree = true;
  TRY(fa_read_word(r, v, words, FA_N_BITS_SOURCES - 1, &word));
  P.mask_bits.source = (fa_bits_source)(word + 1);
  return FA_OK;
}
READER(read_empty_rows) {
  return fa_read_number(r, v, 0, 1, &P.mask_bits.empty_rows);
}
READER(read_hide_diagonal) {
  return fa_read_bool(r, v, &P.mask_bits.hide_diagonal);
}
READER(read_seed) {
  return fa_read_u64(r, v, &P.mask_bits.seed);
}
static const fa_case_key bits_keys[] = {{"density", read_density},
                                        {"tree", read_tree},
                                        {"empty_rows", read_empty_rows},
                                        {"hide_diagonal", read_hide_diagonal},
                                        {"seed", read_seed},
                                        {0}};
fa_status fa_read_mask_bits(fa_case_reader *r, const cJSON *v) {
  P.mask_bits.present = true;
  return fa_read_object(r, v, bits_keys);
}
