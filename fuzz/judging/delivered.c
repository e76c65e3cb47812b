#include "fuzz/judging/delivered.h"

#include "fuzz/judging/judge.h"

#include <stdio.h>
#include <string.h>

void fa_declaration_of(const fa_backend *b, void *self, const fa_problem *p, fa_declaration *out) {
  memset(out, 0, sizeof *out);
  fa_contract_init(&out->contract);
  if (b->declare) b->declare(self, p, out);
}

fa_tensor_bits fa_outputs_of(const fa_tensors *t, unsigned passes) {
  fa_tensor_bits set = fa_tensors_written_by(passes);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (!t->t[id].data) set &= ~(FA_TENSOR_BIT(id));
  return set;
}

fa_tensor_bits fa_outputs_left_out(const fa_tensors *before, const fa_tensors *after, unsigned passes,
                                   const fa_outcome *outcome) {
  const fa_tensor_bits there = fa_outputs_of(before, passes);
  return there & (outcome->left_out | ~fa_outputs_of(after, passes));
}

void fa_outputs_drop(fa_tensors *t, fa_tensor_bits outputs) {
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (outputs >> id & 1) t->t[id].data = NULL; /* its memory belongs to the set's buffers */
}

void fa_result_not_delivered(fa_result *r, fa_tensor_bits outputs) {
  char names[256] = "";
  size_t used = 0;
  for (int id = 0; id < FA_T_COUNT && used < sizeof names; ++id)
    if (outputs >> id & 1)
      used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                               fa_tensor_id_name((fa_tensor_id)id));
  r->not_delivered |= outputs;
  if (outputs) fa_result_note(r, "not delivered, not judged: %s", names);
}
