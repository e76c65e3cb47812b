/* The key "quantized". */
#include "cases/codec/keys.h"

READER(read_dtype) {
  static const char *const words[] = {"e4m3", "e5m2", "i8", "e2m1"};
  static const fa_dtype types[] = {FA_E4M3, FA_E5M2, FA_I8, FA_E2M1};
  int word = 0;
  TRY(fa_read_word(r, v, words, 4, &word));
  P.quantized.dtype = types[word];
  return FA_OK;
}
READER(read_queries) {
  r->has_quantized_queries = true;
  return fa_read_bool(r, v, &P.quantized.queries);
}
READER(read_descale) {
  const char *words[FA_N_DESCALES];
  int word = 0;
  for (int i = 0; i < FA_N_DESCALES; ++i) words[i] = fa_descale_per_name((fa_descale_per)i);
  TRY(fa_read_word(r, v, words, FA_N_DESCALES, &word));
  P.quantized.per = (fa_descale_per)word;
  return FA_OK;
}
READER(read_values) {
  const char *words[FA_N_DESCALE_VALUES];
  int word = 0;
  for (int i = 0; i < FA_N_DESCALE_VALUES; ++i) words[i] = fa_descale_values_name((fa_descale_values)i);
  TRY(fa_read_word(r, v, words, FA_N_DESCALE_VALUES, &word));
  P.quantized.values = (fa_descale_values)word;
  return FA_OK;
}
READER(read_quantize_new) {
  return fa_read_bool(r, v, &P.quantized.quantizes_new);
}
READER(read_amax) {
  return fa_read_bool(r, v, &P.quantized.amax);
}
READER(read_o) {
  static const char *const words[] = {"io", "e4m3", "e5m2"};
  static const fa_dtype types[] = {0, FA_E4M3, FA_E5M2};
  int word = 0;
  TRY(fa_read_word(r, v, words, 3, &word));
  P.quantized.o = types[word];
  return FA_OK;
}
READER(read_o_scale) {
  return fa_read_number(r, v, 0x1p-100, 0x1p100, &P.quantized.o_scale);
}
static const fa_case_key quantized_keys[] = {
    {"dtype", read_dtype},   {"queries", read_queries},           {"descale", read_descale},
    {"values", read_values}, {"quantize_new", read_quantize_new}, {"amax", read_amax},
    {"o", read_o},           {"o_scale", read_o_scale},           {0}};
fa_status fa_read_quantized(fa_case_reader *r, const cJSON *v) {
  P.quantized = (fa_quantized){.present = true, .dtype = FA_E4M3};
  return fa_read_object(r, v, quantized_keys);
}

void fa_read_quantized_finish(fa_case_reader *r) {
  if (!P.quantized.present || r->has_quantized_queries) return;
  P.quantized.queries = P.family != FA_KVCACHE && P.quantized.dtype != FA_I8 && P.quantized.dtype != FA_E2M1;
}
