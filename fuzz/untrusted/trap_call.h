/* A call that stands between two runs of a case, and looks like one of them: whoever answers from memory answers
 * wrongly. Which kind it is, and what is changed, the secret says. */
#ifndef FA_FUZZ_UNTRUSTED_TRAP_CALL_H
#define FA_FUZZ_UNTRUSTED_TRAP_CALL_H

#include "fuzz/untrusted/rules.h"
#include "report/untrusted/traps.h"

typedef struct fa_trap_call {
  fa_trap kind;
  fa_case c;
  fa_tensors in; /* as fa_case_build leaves them: outputs on poison A */
} fa_trap_call;

/* How many of them a case gets: all kinds in a short run, one or two else. */
int fa_trap_calls(const fa_rules *r, const fa_problem *p);
/* The which-th trap around item number's case, whose tensors are `in`. passes: of the case's runs; the contract has
 * them for the trap too. */
fa_status fa_trap_call_make(const fa_rules *r, int64_t number, uint64_t which, const fa_case *c,
                            const fa_tensors *in, unsigned passes, fa_trap_call *out, fa_error *err);
void fa_trap_call_free(fa_trap_call *t);

/* True if both have the same outputs bit for bit, and have any: those of these passes. */
bool fa_outputs_are_same(const fa_tensors *a, const fa_tensors *b, unsigned passes);

#endif
