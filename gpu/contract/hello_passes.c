/* Asking a hello about a problem. */
#include "cases/tensors/table.h"
#include "gpu/contract/features.h"
#include "gpu/contract/hello.h"
#include "gpu/contract/lse.h"

#include <stdio.h>

/* The first thing that the problem asks for and the hello lacks; NULL: nothing. */
static const char *lacking(const fa_hello *h, const fa_problem *p) {
  if (!(h->families >> p->family & 1)) return fa_family_name(p->family);
  if (!(h->dtypes >> p->dtype & 1)) return fa_dtype_name(p->dtype);
  for (int i = 0; fa_feature_at(i); ++i)
    if (!(h->features >> i & 1) && fa_feature_at(i)->is_in(p)) return fa_feature_name(i);
  return NULL;
}

/* The same for the forward alone: what only gradients need does not keep it from being judged. */
static const char *lacking_forward(const fa_hello *h, const fa_problem *p) {
  fa_problem forward = *p; /* borrows what p owns */
  forward.backward = forward.grad_lse = forward.deterministic = false;
  return lacking(h, &forward);
}

unsigned fa_hello_passes(const fa_hello *h, const fa_problem *p, char *why, size_t size) {
  const char *lacks = lacking_forward(h, p), *lacks_backward = lacking(h, p);
  const bool backward = (h->passes & FA_PASS_BACKWARD) && !lacks_backward;
  if (lacks_backward) snprintf(why, size, "it has no %s", lacks ? lacks : lacks_backward);
  if (lacks || !fa_limits_allow(h->limit, p, why, size)) return FA_PASS_NONE;
  if (!(h->passes & FA_PASS_BACKWARD)) snprintf(why, size, "it has no backward pass");
  return backward && !p->kvcache.present ? h->passes : h->passes & FA_PASS_FORWARD;
}

void fa_hello_declare(const fa_hello *h, const fa_problem *p, fa_declaration *out) {
  *out = h->declaration[p ? p->dtype : FA_F32];
  if (p && p->family == FA_MERGE) { /* its case says the base, and there are neither scores nor values */
    out->contract.lse_base_2 = out->contract.lse_unscaled = false;
    out->contract.o_of_empty = FA_O_EMPTY_ZERO;
  }
  if (p && p->scale == 0 && out->contract.lse_unscaled) out->contract.outputs &= ~FA_TENSOR_BIT(FA_T_LSE);
}

fa_profile fa_declaration_profile(const fa_declaration *d, const fa_problem *p) {
  const fa_quantized *q = &p->quantized;
  fa_profile profile = fa_arithmetic_profile(&d->arithmetic, fa_problem_operand_dtype(p));
  if (q->present)
    fa_arithmetic_add_descales(&d->arithmetic, p->dtype, q->queries, fa_problem_has_descales_of_keys(p),
                               &profile);
  profile.u_lse = fa_contract_lse_roundoff(&d->contract);
  return profile;
}

void fa_declaration_adopt(fa_declaration *d, const fa_declaration *found) {
  const unsigned take = found->contract_given & ~d->contract_given;
  fa_contract *to = &d->contract;
  const fa_contract *from = &found->contract;
  if (take & FA_CONTRACT_OUTPUTS) to->outputs = from->outputs;
  if (take & FA_CONTRACT_LSE_BASE) to->lse_base_2 = from->lse_base_2;
  if (take & FA_CONTRACT_LSE_UNSCALED) to->lse_unscaled = from->lse_unscaled;
  if (take & FA_CONTRACT_LSE_LAYOUT) to->lse_layout = from->lse_layout;
  if (take & FA_CONTRACT_LSE_DTYPE) to->lse_dtype = from->lse_dtype;
  if (take & FA_CONTRACT_LSE_OF_EMPTY) to->lse_of_empty = from->lse_of_empty;
  if (take & FA_CONTRACT_O_OF_EMPTY) to->o_of_empty = from->o_of_empty;
  if (take & FA_CONTRACT_LSE_ALIBI) to->lse_alibi = from->lse_alibi;
  d->contract_given |= take;
  if (d->arithmetic_given || !found->arithmetic_given) return;
  d->arithmetic = found->arithmetic;
  d->arithmetic_given = true;
}

void fa_hello_adopt(fa_hello *h, fa_dtype dtype, const fa_declaration *found) {
  if ((int)dtype < FA_HELLO_DTYPES) fa_declaration_adopt(&h->declaration[dtype], found);
}
