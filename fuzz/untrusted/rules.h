/* What is fixed about a run of a candidate that nobody trusts, before its first case: the layers in force, its contract,
 * the secret. Made once, before workers are forked; they all read the same. */
#ifndef FA_FUZZ_UNTRUSTED_RULES_H
#define FA_FUZZ_UNTRUSTED_RULES_H

#include "cases/recipe/case.h"
#include "fuzz/untrusted/secret.h"
#include "gpu/backend.h"
#include "gpu/contract/canonical.h"
#include "gpu/contract/hello.h"
#include "gpu/wall/layers.h"

typedef struct fa_rules {
  fa_layer_set layers;             /* in force */
  char contract[FA_CONTRACT_TEXT]; /* the first hello, canonical */
  char contract_sha256[65];
  fa_hello hello;                           /* the same, read */
  const char *arithmetic;                   /* the pinned set's name */
  fa_arithmetic pinned[FA_HELLO_DTYPES];    /* by fa_dtype, */
  fa_arithmetic judged_by[FA_HELLO_DTYPES]; /* and with what the contract narrows */
  char ignored[FA_HELLO_DTYPES][400];       /* claims that would have made bounds wider; "" = none */
  fa_secret secret;
  char cases_sha256[65], commitment[65];
  int64_t n_items; /* of the run; 0: it is endless */
} fa_rules;

/* True if the layer is in force. rules NULL: the run trusts its candidate. */
bool fa_rules_have(const fa_rules *rules, fa_layer layer);

/* contract: as the candidate said it when it was chosen. arithmetic: NULL = the default. FA_ERR_INPUT: the contract
 * cannot be held to, or the arithmetic cannot be pinned. Leaves the secret to fa_rules_begin. */
fa_status fa_rules_init(fa_rules *r, fa_layer_set layers, const char *contract, const char *arithmetic,
                        fa_error *err);
/* Draws the secret, or takes the one that is given, and commits to it. cases_sha256: of all that was named to be run.
 * given: NULL = draw one. */
fa_status fa_rules_begin(fa_rules *r, const char *given, const char *cases_sha256, fa_error *err);

/* Holds a subject that was opened to the contract, if it is to be held to it. rules NULL: it is trusted. */
fa_status fa_rules_hold(const fa_rules *rules, const fa_backend *backend, void *self, fa_error *err);

/* ---- what the judge asks ---- */

/* Passes of the problem that the contract has: what it says itself, whatever the candidate answers later. */
unsigned fa_rules_promised(const fa_rules *r, const fa_problem *p, char *why, size_t size);
/* The constants of the bounds that the candidate is judged by. */
void fa_rules_profile(const fa_rules *r, const fa_problem *p, fa_profile *out);
/* Gives item number's case data that nobody knew before, and dropout bits. */
void fa_rules_redraw(const fa_rules *r, int64_t number, fa_case *c);
/* True if the candidate's process ends after this item: one in a few, and one at least of every run. */
bool fa_rules_renew_after(const fa_rules *r, int64_t number);

#endif
