#include "fuzz/untrusted/rules.h"

#include "cases/base/sha256.h"
#include "cases/tensors/table.h"
#include "fuzz/untrusted/narrow.h"

#include <stdio.h>
#include <string.h>

#define CASES_A_PROCESS 6 /* on the average */

bool fa_rules_have(const fa_rules *rules, fa_layer layer) {
  return rules ? fa_layer_in(rules->layers, layer) : fa_layers[layer].kind == FA_LAYER_ALWAYS;
}

/* ---- the contract ---- */

static void hash_text(const char *text, char hex[65]) {
  fa_sha256 sha;
  fa_sha256_init(&sha);
  fa_sha256_add(&sha, text, strlen(text));
  fa_sha256_hex(&sha, hex);
}

static fa_status pin(fa_rules *r, const char *name, fa_error *err) {
  r->arithmetic = name ? name : FA_PINNED_ARITHMETIC;
  if (!fa_arithmetic_may_be_pinned(r->arithmetic))
    return fa_fail(
        err, FA_ERR_INPUT,
        "--arithmetic %s: no set that a candidate can be held to (docs/reference/arithmetic.md has "
        "them; recorded and recorded-memeff are for runs of unknown kernels)",
        r->arithmetic);
  for (int t = 0; t < FA_HELLO_DTYPES; ++t) {
    const fa_declaration *d = &r->hello.declaration[t];
    fa_arithmetic_named(r->arithmetic, (fa_dtype)t, &r->pinned[t]);
    r->judged_by[t] = r->pinned[t];
    if (d->arithmetic_given && r->hello.dtypes >> t & 1)
      r->judged_by[t] = fa_arithmetic_narrow(&r->pinned[t], &d->arithmetic, (fa_dtype)t, r->ignored[t],
                                             sizeof r->ignored[t]);
  }
  return FA_OK;
}

/* What is left to judge without these is no attention. */
static fa_status check_outputs(const fa_rules *r, fa_error *err) {
  static const fa_tensor_id gradients[] = {FA_T_DQ, FA_T_DK, FA_T_DV};
  const fa_hello *h = &r->hello;
  fa_tensor_bits needed = FA_TENSOR_BIT(FA_T_O);
  for (int i = 0; i < 3 && h->passes & FA_PASS_BACKWARD; ++i) needed |= FA_TENSOR_BIT(gradients[i]);
  if (!fa_rules_have(r, FA_LAYER_CONTRACT)) return FA_OK;
  if (!(h->passes & FA_PASS_FORWARD))
    return fa_fail(err, FA_ERR_INPUT, "--untrusted: its contract has no forward pass");
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (needed >> id & 1 & ~(h->declaration[0].contract.outputs >> id))
      return fa_fail(err, FA_ERR_INPUT, "--untrusted: its contract promises no %s",
                     fa_tensor_id_name((fa_tensor_id)id));
  return FA_OK;
}

fa_status fa_rules_init(fa_rules *r, fa_layer_set layers, const char *contract, const char *arithmetic,
                        fa_error *err) {
  memset(r, 0, sizeof *r);
  r->layers = layers;
  if (strlen(contract) >= sizeof r->contract || !contract[0])
    return fa_fail(err, FA_ERR_INPUT,
                   "--untrusted: its hello is no contract: longer than %d characters, or none at all",
                   FA_CONTRACT_TEXT - 1);
  snprintf(r->contract, sizeof r->contract, "%s", contract);
  hash_text(contract, r->contract_sha256);
  fa_status status = fa_hello_read_text(contract, "hello", &r->hello, err);
  if (status == FA_OK) status = check_outputs(r, err);
  return status == FA_OK ? pin(r, arithmetic, err) : status;
}

fa_status fa_rules_hold(const fa_rules *rules, const fa_backend *backend, void *self, fa_error *err) {
  if (!rules || !fa_rules_have(rules, FA_LAYER_CONTRACT) || !backend->hold) return FA_OK;
  return backend->hold(self, rules->contract, err);
}

unsigned fa_rules_promised(const fa_rules *r, const fa_problem *p, char *why, size_t size) {
  return fa_hello_passes(&r->hello, p, why, size);
}

void fa_rules_profile(const fa_rules *r, const fa_problem *p, fa_profile *out) {
  fa_declaration d;
  fa_hello_declare(&r->hello, p, &d);
  d.arithmetic = r->judged_by[p->dtype];
  fa_arithmetic_fit(&d.arithmetic, p);
  *out = fa_declaration_profile(&d, p);
}

/* ---- the secret ---- */

fa_status fa_rules_begin(fa_rules *r, const char *given, const char *cases_sha256, fa_error *err) {
  const fa_status status = given ? fa_secret_read(&r->secret, given, err) : fa_secret_draw(&r->secret, err);
  if (status != FA_OK) return status;
  snprintf(r->cases_sha256, sizeof r->cases_sha256, "%s", cases_sha256);
  fa_secret_commit(&r->secret, r->cases_sha256, r->contract_sha256, r->commitment);
  return FA_OK;
}

void fa_rules_redraw(const fa_rules *r, int64_t number, fa_case *c) {
  if (!fa_rules_have(r, FA_LAYER_SEEDS)) return;
  c->data_seed = fa_secret_number(&r->secret, "data", (uint64_t)number, c->data_seed);
  fa_dropout *dropout = &c->problem.dropout;
  if (dropout->p > 0)
    dropout->seed = fa_secret_number(&r->secret, "dropout", (uint64_t)number, dropout->seed);
}

bool fa_rules_renew_after(const fa_rules *r, int64_t number) {
  if (!fa_rules_have(r, FA_LAYER_FRESH) || !r) return false;
  if (r->n_items > 0 && r->n_items <= CASES_A_PROCESS) return true;
  if (r->n_items > 0 &&
      (int64_t)(fa_secret_number(&r->secret, "renew once", 0, 0) % (uint64_t)r->n_items) == number)
    return true;
  return fa_secret_number(&r->secret, "renew", (uint64_t)number, 0) % CASES_A_PROCESS == 0;
}
