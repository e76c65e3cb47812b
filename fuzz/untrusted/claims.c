#include "fuzz/untrusted/claims.h"

#include "cases/tensors/table.h"
#include "fuzz/coverage/words.h"
#include "gpu/contract/features.h"
#include "report/require.h"

#include <stdio.h>
#include <string.h>

/* A word of a vocabulary of a hello, as a bit of fa_word_at. */
static fa_word_bits bit_of(const char *word) {
  for (int i = 0; fa_word_at(i); ++i)
    if (strcmp(fa_word_at(i), word) == 0) return (fa_word_bits)1 << i;
  return 0;
}

static fa_word_bits all_claims(const fa_hello *h) {
  fa_word_bits words = 0;
  for (int f = 0; f < FA_N_FAMILIES; ++f)
    if (h->families >> f & 1) words |= bit_of(fa_family_name((fa_family)f));
  for (int t = 0; t < FA_HELLO_DTYPES; ++t)
    if (h->dtypes >> t & 1) words |= bit_of(fa_dtype_name((fa_dtype)t));
  for (int i = 0; fa_feature_at(i); ++i)
    if (h->features >> i & 1) words |= bit_of(fa_feature_name(i));
  return words;
}

static fa_word_bits words_of_gradients(void) {
  fa_word_bits words = 0;
  for (int i = 0; fa_word_at(i); ++i)
    if (fa_require_needs_backward(fa_word_at(i))) words |= (fa_word_bits)1 << i;
  return words;
}

void fa_claims_of(const fa_rules *r, fa_claims *out) {
  *out = (fa_claims){.claimed = all_claims(&r->hello) | bit_of("backward")};
  if (!(r->hello.passes & FA_PASS_BACKWARD)) out->claimed &= ~words_of_gradients();
}

static bool has_word(const char *text, const char *word) {
  const size_t n = strlen(word);
  for (const char *at = text; (at = strstr(at, word)); at += n)
    if ((at == text || at[-1] == ' ') && (at[n] == 0 || at[n] == ' ')) return true;
  return false;
}

void fa_claims_note(fa_claims *c, const fa_result *r) {
  const bool judged = r->state == FA_PASS || fa_state_is_failure(r->state);
  c->not_claimed += r->state == FA_SKIP && strncmp(r->reason, "not claimed", strlen("not claimed")) == 0;
  for (int i = 0; judged && fa_word_at(i); ++i) {
    if (!has_word(r->features, fa_word_at(i))) continue;
    if (r->passes & FA_PASS_BACKWARD || !fa_require_needs_backward(fa_word_at(i)))
      c->tested |= (fa_word_bits)1 << i;
  }
}

fa_word_bits fa_claims_untested(const fa_claims *c) {
  return c->claimed & ~c->tested;
}

fa_word_bits fa_claims_not_made(const fa_claims *c) {
  fa_hello everything;
  fa_hello_init(&everything, FA_HELLO_VERSION);
  return (all_claims(&everything) | bit_of("backward")) & ~c->claimed;
}

/* ---- outputs and conventions ---- */

static void add_gap(char *out, size_t size, const char *before, const char *text) {
  const size_t n = strlen(out);
  snprintf(out + n, size - n, "%s%s%s", n ? "; " : "", before, text);
}

void fa_claims_gaps_text(const fa_rules *r, char *out, size_t size) {
  const fa_contract *c = &r->hello.declaration[0].contract;
  static const fa_tensor_id optional[] = {FA_T_LSE, FA_T_DBIAS, FA_T_P_DEBUG, FA_T_DBUFFER_0};
  out[0] = 0;
  for (size_t i = 0; i < sizeof optional / sizeof *optional; ++i)
    if (!(c->outputs >> optional[i] & 1)) add_gap(out, size, "no ", fa_tensor_id_name(optional[i]));
  if (c->o_of_empty == FA_O_EMPTY_ANY) add_gap(out, size, "", "o of rows without keys may be anything");
  if (c->lse_of_empty == FA_LSE_EMPTY_ANY) add_gap(out, size, "", "lse of rows without keys may be anything");
  if (c->o_of_empty != FA_O_EMPTY_ZERO)
    add_gap(out, size, "", "gradients of cases with rows without keys are not judged");
  if (c->lse_dtype != FA_F32 && c->lse_dtype != FA_F64)
    add_gap(out, size, "lse is only as exact as ", fa_dtype_name(c->lse_dtype));
}
