/* Findings against a declaration. */
#include "fuzz/probe/format.h"
#include "fuzz/probe/text.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const fa_arithmetic *a, const char *field, char *value, size_t size) {
  const char *key;
  for (int i = 0; fa_arithmetic_get(a, i, &key, value, size); ++i)
    if (strcmp(key, field) == 0) return value;
  return NULL;
}

static int bits_of(const char *format, fa_dtype dtype) {
  for (int f = 0; f < FA_N_FORMATS; ++f)
    if (strcmp(fa_format_name(f), format) == 0) return probe_fraction_bits((fa_format)f, dtype);
  return -1;
}

/* More promised than found. Of accumulators, a unit that truncates in larger blocks with more bits is the better one:
 * only the kind is compared. */
static bool promises_more(const char *field, const char *declared, const char *found, fa_dtype dtype) {
  static const char *const sums[] = {"bf16", "f16", "narrow", "mma", "f32"};
  if (strncmp(field, "accumulator", 11) == 0) {
    int at = 0, is = 0;
    for (int i = 0; i < 5; ++i)
      at = strcmp(sums[i], declared) == 0 ? i : at, is = strcmp(sums[i], found) == 0 ? i : is;
    return at > is;
  }
  if (strcmp(field, "delta") == 0) return strcmp(found, "stored_o") == 0;
  if (strcmp(field, "p_kept") == 0) return strcmp(declared, "true") == 0;
  const char *const unless_said[] = {"gqa_partials_rounded", "dropout_rounded", "ds_scaled"};
  for (size_t i = 0; i < sizeof unless_said / sizeof *unless_said; ++i)
    if (strcmp(field, unless_said[i]) == 0) return strcmp(declared, "false") == 0;
  const int all = strncmp(field, "operand_", 8) == 0 ? probe_fraction_bits(FA_FORMAT_IO, dtype) : 99;
  const int declared_bits = bits_of(declared, dtype), kept = bits_of(found, dtype);
  const int promised =
      declared_bits < all ? declared_bits : all; /* an operand has no more than its element */
  return promised >= 0 && kept >= 0 && promised > kept;
}

static void compare_field(fa_finding *f, const fa_probe_report *r, const fa_declaration *declared) {
  char value[64], found[64];
  if (f->confidence < FA_PROBE_LIKELY || f->convention) return;
  if (!text_of(&declared->arithmetic, f->field, value, sizeof value) ||
      !text_of(&r->found.arithmetic, f->field, found, sizeof found) || strcmp(value, found) == 0)
    return;
  if (strcmp(f->field, "block_n") == 0 || strcmp(f->field, "eps_exp") == 0) return;
  snprintf(f->expected, sizeof f->expected, "%s", value);
  f->contradicts = promises_more(f->field, value, found, r->dtype);
}

static void compare_contract(fa_finding *f, const fa_probe_report *r, const fa_declaration *d) {
  const fa_contract *said = &d->contract, *found = &r->found.contract;
  const struct {
    const char *field;
    unsigned bit;
    bool differs;
    const char *said;
  } all[] = {
      {"lse.base", FA_CONTRACT_LSE_BASE, said->lse_base_2 != found->lse_base_2, said->lse_base_2 ? "2" : "e"},
      {"lse.scaled", FA_CONTRACT_LSE_UNSCALED, said->lse_unscaled != found->lse_unscaled,
       said->lse_unscaled ? "false" : "true"},
      {"lse.empty", FA_CONTRACT_LSE_OF_EMPTY,
       said->lse_of_empty != found->lse_of_empty && said->lse_of_empty != FA_LSE_EMPTY_ANY,
       fa_lse_of_empty_name(said->lse_of_empty)},
      {"empty_o", FA_CONTRACT_O_OF_EMPTY,
       said->o_of_empty != found->o_of_empty && said->o_of_empty != FA_O_EMPTY_ANY,
       fa_o_of_empty_name(said->o_of_empty)},
      {"lse.alibi", FA_CONTRACT_LSE_ALIBI, said->lse_alibi != found->lse_alibi,
       fa_lse_alibi_name(said->lse_alibi)},
      {"outputs", FA_CONTRACT_OUTPUTS, (said->outputs & ~found->outputs) != 0, "more"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    if (strcmp(all[i].field, f->field) != 0 || !(d->contract_given & r->found.contract_given & all[i].bit))
      continue;
    snprintf(f->expected, sizeof f->expected, "%s", all[i].said);
    f->contradicts = all[i].differs;
  }
}

int fa_probe_contradictions(fa_probe_report *r, const fa_declaration *declared) {
  int n = 0;
  for (int i = 0; i < r->n; ++i) {
    if (declared && declared->arithmetic_given) compare_field(&r->v[i], r, declared);
    if (declared) compare_contract(&r->v[i], r, declared);
    n += r->v[i].contradicts;
  }
  return n;
}
