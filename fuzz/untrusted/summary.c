#include "fuzz/untrusted/summary.h"

#include "fuzz/coverage/words.h"
#include "fuzz/untrusted/mode.h"

#include <cjson/cJSON.h>

enum { LAYERS_TEXT = 400 };

void fa_rules_count(fa_rules_counts *c, const fa_result *r, bool hidden) {
  ++c->cases;
  c->hidden += hidden;
  for (int t = 0; t < FA_N_TRAPS; ++t) c->trapped[t] += r->traps >> t & 1;
  fa_claims_note(&c->claims, r);
}

/* ---- as text ---- */

void fa_rules_print_begin(const fa_rules *r, FILE *out) {
  char in_force[LAYERS_TEXT], left_out[LAYERS_TEXT];
  fa_layers_text(r->layers, in_force, sizeof in_force);
  fa_layers_text(FA_ALL_LAYERS & ~r->layers, left_out, sizeof left_out);
  fprintf(out, "untrusted: commitment %s\n", r->commitment);
  fprintf(out, "untrusted: contract %s, judged as %s\n", r->contract_sha256, r->arithmetic);
  fprintf(out, "untrusted: layers in force: %s\n", in_force[0] ? in_force : "none");
  if (left_out[0])
    fprintf(out, "untrusted: LAYERS LEFT OUT: %s; what they keep off is not kept off\n", left_out);
  for (int t = 0; t < FA_HELLO_DTYPES && fa_rules_have(r, FA_LAYER_PROFILE); ++t)
    if (r->ignored[t][0])
      fprintf(out, "untrusted: %s: claims that would widen its bounds are ignored: %s\n",
              fa_dtype_name((fa_dtype)t), r->ignored[t]);
  fflush(out);
}

static void print_traps(const fa_rules_counts *c, FILE *out) {
  int64_t all = 0;
  for (int t = 0; t < FA_N_TRAPS; ++t) all += c->trapped[t];
  fprintf(out, "untrusted: %lld cases, %lld of them hidden; %lld traps", (long long)c->cases,
          (long long)c->hidden, (long long)all);
  const char *before = ": ";
  for (int t = 0; t < FA_N_TRAPS; ++t) {
    if (!c->trapped[t]) continue;
    fprintf(out, "%s%s %lld", before, fa_trap_name((fa_trap)t), (long long)c->trapped[t]);
    before = ", ";
  }
  fputc('\n', out);
}

void fa_rules_print_end(const fa_rules *r, const fa_rules_counts *c, FILE *out) {
  char words[FA_WORDS_TEXT], gaps[400];
  print_traps(c, out);
  fa_claims_gaps_text(r, gaps, sizeof gaps);
  if (gaps[0]) fprintf(out, "untrusted: NOT JUDGED: %s\n", gaps);
  fa_words_text(fa_claims_untested(&c->claims), words, sizeof words);
  if (words[0]) fprintf(out, "untrusted: CLAIMED, AND TESTED BY NO CASE: %s\n", words);
  fprintf(out, "untrusted: secret %s\n", r->secret.hex);
}

/* ---- in the report ---- */

static void add_words(cJSON *o, const char *key, fa_word_bits words) {
  cJSON *list = cJSON_AddArrayToObject(o, key);
  for (int i = 0; fa_word_at(i); ++i)
    if (words >> i & 1) cJSON_AddItemToArray(list, cJSON_CreateString(fa_word_at(i)));
}

void fa_rules_add_to_report(const fa_rules *r, const fa_rules_counts *c, cJSON *root) {
  char gaps[400];
  cJSON *o = cJSON_GetObjectItemCaseSensitive(root, "untrusted"), *contract = cJSON_Parse(r->contract);
  if (!o) o = cJSON_AddObjectToObject(root, "untrusted");
  if (contract) cJSON_AddItemToObject(o, "contract", contract);
  cJSON_AddStringToObject(o, "contract_sha256", r->contract_sha256);
  cJSON_AddStringToObject(o, "cases_sha256", r->cases_sha256);
  cJSON_AddStringToObject(o, "commitment", r->commitment);
  cJSON_AddStringToObject(o, "secret", r->secret.hex);
  fa_rules_add_mode(r, o);
  cJSON_AddNumberToObject(o, "cases", (double)c->cases);
  cJSON_AddNumberToObject(o, "hidden", (double)c->hidden);
  cJSON *traps = cJSON_AddObjectToObject(o, "traps");
  for (int t = 0; t < FA_N_TRAPS; ++t)
    cJSON_AddNumberToObject(traps, fa_trap_name((fa_trap)t), (double)c->trapped[t]);
  cJSON *claims = cJSON_AddObjectToObject(o, "claims");
  add_words(claims, "tested", c->claims.claimed & c->claims.tested);
  add_words(claims, "untested", fa_claims_untested(&c->claims));
  add_words(claims, "not_made", fa_claims_not_made(&c->claims));
  fa_claims_gaps_text(r, gaps, sizeof gaps);
  cJSON_AddStringToObject(claims, "not_judged", gaps);
  cJSON_AddNumberToObject(claims, "cases_outside", (double)c->claims.not_claimed);
}
