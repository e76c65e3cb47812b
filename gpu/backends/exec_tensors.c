#include "gpu/backends/exec_tensors.h"

#include "cases/tensors/guard.h"
#include "gpu/contract/blocks.h"
#include "gpu/contract/lse.h"

#include <string.h>

static void add(fa_exec_tensors *x, fa_exec_group group, const char *name, const fa_tensors *set,
                fa_tensor_id id, fa_exec_access access) {
  FA_ASSERT(x->n < FA_EXEC_MAX_TENSORS);
  x->at[x->n++] = (fa_exec_tensor){.name = name,
                                   .file_name = group == FA_EXEC_TENSORS ? name : fa_tensor_id_name(id),
                                   .group = group,
                                   .access = access,
                                   .tensor = &set->t[id],
                                   .buffer = &set->buffer[set->owner[id]]};
}

/* ---- the child's own LSE ---- */

/* The word that the call's LSE is full of before the run: a poison, whichever. */
static uint32_t first_word(const fa_buffer *b) {
  uint32_t word = FA_PATTERN_WORD(FA_PATTERN_POISON_A);
  const fa_span s = fa_buffer_n_spans(b) > 0 ? fa_buffer_span(b, 0) : (fa_span){0, 0};
  if (s.end - s.begin >= sizeof word) memcpy(&word, fa_buffer_payload(b) + s.begin, sizeof word);
  return word;
}

static fa_status add_lse(fa_exec_tensors *x, const fa_problem *p, const fa_tensors *t,
                         const fa_contract *contract, fa_error *err) {
  fa_tensor theirs;
  if (fa_contract_lse_is_ours(contract)) {
    add(x, FA_EXEC_TENSORS, fa_tensor_id_name(FA_T_LSE), t, FA_T_LSE, FA_EXEC_WRITE);
    return FA_OK;
  }
  fa_contract_lse_describe(p, contract, &theirs);
  const fa_status status =
      fa_tensors_add(&x->own, FA_T_LSE, theirs.dtype, theirs.rank, theirs.shape, NULL, 0, err);
  if (status != FA_OK) return status;
  fa_buffer_fill_word(&x->own.buffer[FA_T_LSE], first_word(&t->buffer[t->owner[FA_T_LSE]]));
  add(x, FA_EXEC_TENSORS, fa_tensor_id_name(FA_T_LSE), &x->own, FA_T_LSE, FA_EXEC_WRITE);
  return FA_OK;
}

/* ---- all ---- */

static fa_status add_lists(fa_exec_tensors *x, const fa_tensors *t, fa_error *err) {
  static const struct {
    fa_tensor_id counts, indices;
    const char *name[2];
  } lists[] = {{FA_T_KV_NUM_BLOCKS, FA_T_KV_INDICES, {"q_num_blocks", "q_indices"}},
               {FA_T_FULL_KV_NUM_BLOCKS, FA_T_FULL_KV_INDICES, {"full_q_num_blocks", "full_q_indices"}}};
  for (int i = 0; i < 2; ++i) {
    if (!t->t[lists[i].indices].data) continue;
    const fa_status status = fa_contract_turn_lists(t, lists[i].counts, lists[i].indices, &x->own, err);
    if (status != FA_OK) return status;
    add(x, FA_EXEC_TENSORS, lists[i].name[0], &x->own, lists[i].counts, FA_EXEC_READ);
    add(x, FA_EXEC_TENSORS, lists[i].name[1], &x->own, lists[i].indices, FA_EXEC_READ);
  }
  return FA_OK;
}

static bool is_between(int id, fa_tensor_id first, fa_tensor_id last) {
  return id >= (int)first && id <= (int)last;
}

static void add_plain(fa_exec_tensors *x, const fa_problem *p, const fa_tensors *t, int id,
                      fa_exec_access access) {
  if (is_between(id, FA_T_BUFFER_0, FA_T_BUFFER_LAST))
    add(x, FA_EXEC_BUFFERS, p->captures[id - FA_T_BUFFER_0].name, t, (fa_tensor_id)id, access);
  else if (is_between(id, FA_T_DBUFFER_0, FA_T_DBUFFER_LAST))
    add(x, FA_EXEC_DBUFFERS, p->captures[id - FA_T_DBUFFER_0].name, t, (fa_tensor_id)id, access);
  else
    add(x, FA_EXEC_TENSORS, fa_tensor_id_name((fa_tensor_id)id), t, (fa_tensor_id)id, access);
}

fa_status fa_exec_tensors_make(const fa_problem *p, const fa_tensors *t, const fa_contract *contract,
                               unsigned passes, bool own_lists, fa_exec_tensors *out, fa_error *err) {
  const fa_tensor_bits written = fa_tensors_written_by(passes) & contract->outputs;
  fa_status status = FA_OK;
  memset(out, 0, sizeof *out);
  for (int id = 0; status == FA_OK && id < FA_T_COUNT; ++id) {
    const bool output = fa_tensor_id_is_output((fa_tensor_id)id);
    if (!t->t[id].data || (output && !(written >> id & 1))) continue;
    if (id == FA_T_LSE)
      status = add_lse(out, p, t, contract, err);
    else
      add_plain(out, p, t, id,
                output                                      ? FA_EXEC_WRITE
                : fa_tensor_is_updated(p, (fa_tensor_id)id) ? FA_EXEC_UPDATE
                                                            : FA_EXEC_READ);
  }
  if (status == FA_OK && own_lists) status = add_lists(out, t, err);
  if (status != FA_OK) fa_exec_tensors_free(out);
  return status;
}

void fa_exec_tensors_free(fa_exec_tensors *x) {
  fa_tensors_free(&x->own);
  x->n = 0;
}

fa_status fa_exec_tensors_take(const fa_exec_tensors *x, const fa_problem *p, const fa_contract *contract,
                               fa_tensors *t, fa_error *err) {
  if (!x->own.t[FA_T_LSE].data) return FA_OK;
  return fa_contract_take_lse(p, contract, t, &x->own.t[FA_T_LSE], &t->t[FA_T_LSE], err);
}
