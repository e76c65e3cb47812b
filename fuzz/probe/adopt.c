#include "fuzz/probe/adopt.h"

#include "fuzz/probe/apart.h"
#include "fuzz/probe/run.h"
#include "fuzz/probe/text.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the declaration lacks, as kinds of questions. */
static unsigned missing_of(const fa_declaration *d) {
  const unsigned lse = FA_CONTRACT_LSE_BASE | FA_CONTRACT_LSE_UNSCALED | FA_CONTRACT_LSE_OF_EMPTY;
  const bool has_lse = !(d->contract_given & FA_CONTRACT_OUTPUTS) || d->contract.outputs >> FA_T_LSE & 1;
  const unsigned need = FA_CONTRACT_O_OF_EMPTY | (has_lse ? lse : 0);
  return (d->arithmetic_given ? 0 : FA_PROBE_ARITHMETIC | FA_PROBE_BASIS) |
         ((d->contract_given & need) == need ? 0 : FA_PROBE_CONTRACT);
}

static int differences(const fa_arithmetic *a, const fa_arithmetic *b) {
  char x[64], y[64];
  const char *key;
  int n = 0;
  for (int i = 0; fa_arithmetic_get(a, i, &key, x, sizeof x); ++i)
    n += !fa_arithmetic_get(b, i, &key, y, sizeof y) || strcmp(x, y) != 0;
  return n;
}

const char *fa_probe_nearest_set(const fa_arithmetic *a, fa_dtype dtype) {
  const char *best = "";
  int least = 1000;
  for (int i = 0; fa_arithmetic_name(i); ++i) {
    fa_arithmetic set;
    if (!fa_arithmetic_named(fa_arithmetic_name(i), dtype, &set)) continue;
    const int n = differences(a, &set);
    if (n < least) least = n, best = fa_arithmetic_name(i);
  }
  return best;
}

static void say(const fa_choice *choice, const fa_probe_report *r, unsigned kinds) {
  const fa_arithmetic *a = &r->found.arithmetic;
  const fa_contract *c = &r->found.contract;
  fprintf(stderr, "probed: %s, %s: ", choice->spec, fa_dtype_name(r->dtype));
  if (kinds & FA_PROBE_ARITHMETIC)
    fprintf(stderr, "P %s, operands %s, sums %s, delta %s, most like %s; ", fa_format_name(a->p),
            fa_format_name(a->operand[FA_PRODUCT_PV]), fa_accumulator_name(a->accumulator[FA_PRODUCT_PV]),
            fa_delta_source_name(a->delta), fa_probe_nearest_set(a, r->dtype));
  const bool nan =
      (c->outputs >> FA_T_LSE & 1 && c->lse_of_empty == FA_LSE_EMPTY_NAN) || c->o_of_empty == FA_O_EMPTY_NAN;
  fprintf(stderr, "LSE %s%s, empty rows %s and O %s%s\n",
          !(c->outputs >> FA_T_LSE & 1) ? "none"
          : c->lse_base_2               ? "base 2"
                                        : "base e",
          c->lse_unscaled ? " unscaled" : "", fa_lse_of_empty_name(c->lse_of_empty),
          fa_o_of_empty_name(c->o_of_empty), nan ? " (NaN is wrong unless it is declared)" : "");
}

/* The first answer by which it does not compute what cases mean; NULL: there is none. */
static const fa_finding *wrong_of(const fa_probe_report *r) {
  for (int i = 0; i < r->n; ++i)
    if (r->v[i].convention && r->v[i].contradicts) return &r->v[i];
  return NULL;
}

/* A key that is lost looks like a coarse sum, so nothing is believed of the arithmetic of a subject that computes
 * something else; and NaN is right only where the subject itself says so. */
static void adopt(fa_choice *choice, const fa_probe_report *r, unsigned kinds, bool quiet) {
  const fa_finding *wrong = kinds & FA_PROBE_ARITHMETIC ? wrong_of(r) : NULL;
  fa_declaration *found = &choice->found[r->dtype];
  *found = r->found;
  if (found->contract.lse_of_empty == FA_LSE_EMPTY_NAN)
    found->contract_given &= ~(unsigned)FA_CONTRACT_LSE_OF_EMPTY;
  if (found->contract.o_of_empty == FA_O_EMPTY_NAN)
    found->contract_given &= ~(unsigned)FA_CONTRACT_O_OF_EMPTY;
  if (wrong) found->arithmetic_given = false;
  choice->probed |= 1u << r->dtype;
  if (quiet) return;
  say(choice, r, wrong ? kinds & ~(unsigned)FA_PROBE_ARITHMETIC : kinds);
  if (wrong)
    fprintf(stderr,
            "probed: %s, %s: %s: %s, where cases ask for %s: its arithmetic cannot be told so, and it is "
            "judged by what "
            "is assumed of unknown kernels\n",
            choice->spec, fa_dtype_name(r->dtype), wrong->field, wrong->value, wrong->expected);
}

static void add_to_report(fa_report *report, const fa_choice *choice, const fa_probe_reports *r) {
  cJSON *list = cJSON_GetObjectItem(report->root, "probed");
  cJSON *hello = fa_probe_hello(r->of, FA_PROBE_DTYPES);
  if (!list) list = cJSON_AddArrayToObject(report->root, "probed");
  cJSON_AddStringToObject(hello, "backend", choice->spec);
  cJSON_AddItemToArray(list, hello);
}

fa_status fa_choice_probe(fa_choice *choice, unsigned dtypes, double timeout_s, bool quiet, bool progress,
                          fa_report *report, fa_error *err) {
  unsigned kinds[FA_PROBE_DTYPES] = {0}, any = 0;
  fa_error why = {""};
  if (!choice->said.declares || !choice->said.adopts) return FA_OK;
  for (int t = 0; t < FA_PROBE_DTYPES; ++t)
    any |= kinds[t] = dtypes >> t & 1 ? missing_of(&choice->said.of[t]) : 0;
  if (!any) return FA_OK;
  fa_probe_reports *r = malloc(sizeof *r);
  if (!r) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  if (fa_probe_apart(choice, kinds, timeout_s, progress, r, &why) != FA_OK)
    fprintf(stderr,
            "fa-verify: %s could not be probed, and is judged by what is assumed of unknown kernels: %s\n",
            choice->spec, why.text);
  else
    for (int t = 0; t < FA_PROBE_DTYPES; ++t)
      if (r->of[t].usable) adopt(choice, &r->of[t], kinds[t], quiet);
  if (report && report->root && choice->probed) add_to_report(report, choice, r);
  free(r);
  return FA_OK;
}
