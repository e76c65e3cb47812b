#include "ref/engine/descale.h"

#include "cases/tensors/descale.h"

static void multiply(double *row, int64_t n, double by) {
  for (int64_t d = 0; d < n && by != 1; ++d) row[d] *= by;
}

double fa_ref_descale_of_query(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i) {
  const int64_t full[3] = {e->b, i, h}, packed[2] = {e->q_first + i, h};
  if (!c->p->quantized.queries) return 1;
  return fa_descale_of_row(c->p, c->in, FA_T_Q, e->b, h, fa_problem_is_varlen(c->p) ? packed : full);
}

double fa_ref_descale_of_key(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk,
                             int64_t jj) {
  if (!c->p->quantized.present) return 1;
  const int64_t page_size = c->p->kvcache.page_size, packed[2] = {jj, hk};
  int64_t full[3] = {e->row, jj, hk};
  if (page_size > 0) {
    const int64_t entry[2] = {e->b, jj / page_size};
    full[0] = (int64_t)fa_tensor_get(&c->in->t[FA_T_BLOCK_TABLE], entry);
    full[1] = jj % page_size;
  }
  return fa_descale_of_row(c->p, c->in, id, e->b, hk, fa_problem_has_packed_keys(c->p) ? packed : full);
}

void fa_ref_quantise_key(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk,
                         int64_t jj, int64_t n, double *row) {
  if (!c->p->quantized.quantizes_new) return;
  const double descale = fa_ref_descale_of_key(c, id, e, hk, jj);
  for (int64_t d = 0; d < n; ++d) row[d] = fa_quantised(c->p->quantized.dtype, row[d] / descale);
}

void fa_ref_descale_query(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t n,
                          double *row) {
  multiply(row, n, fa_ref_descale_of_query(c, e, h, i));
}

void fa_ref_descale_key(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk,
                        int64_t jj, int64_t n, double *row) {
  multiply(row, n, fa_ref_descale_of_key(c, id, e, hk, jj));
}
