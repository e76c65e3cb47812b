/* KV cache calls: where a key is stored, rotary embedding, and the cache after an append. */
#include "cases/tensors/descale.h"
#include "ref/engine/descale.h"

#include <math.h>
#include <stdlib.h>

/* In elements, not bytes. */
int64_t fa_ref_cache_offset(const fa_ref_call *c, const fa_tensor *t, const fa_ref_sequence *e, int64_t hk,
                            int64_t jj) {
  int64_t page_size = c->p->kvcache.page_size, row = e->row, slot = jj;
  if (page_size > 0) {
    const fa_tensor *table = &c->in->t[FA_T_BLOCK_TABLE];
    int64_t index[FA_MAX_RANK] = {e->b, jj / page_size};
    row = (int64_t)fa_tensor_get(table, index);
    slot = jj % page_size;
  }
  return row * t->stride[0] + slot * t->stride[1] + hk * t->stride[2];
}

/* Rotates one row at a position; err receives a bound of each element's error in f32 arithmetic. */
static void rotate(const fa_ref_call *c, const double *x, int64_t position, double *out, double *error) {
  int64_t r = c->p->kvcache.rotary_dim;
  const fa_tensor *cosines = &c->in->t[FA_T_ROTARY_COS], *sines = &c->in->t[FA_T_ROTARY_SIN];
  for (int64_t k = 0; k < c->d; ++k) {
    out[k] = x[k];
    error[k] = 0;
  }
  for (int64_t k = 0; k < r / 2; ++k) {
    int64_t a = c->p->kvcache.rotary_interleaved ? 2 * k : k;
    int64_t b = c->p->kvcache.rotary_interleaved ? 2 * k + 1 : k + r / 2;
    int64_t index[FA_MAX_RANK] = {position, k};
    double cs = fa_tensor_get(cosines, index), sn = fa_tensor_get(sines, index);
    out[a] = x[a] * cs - x[b] * sn;
    out[b] = x[a] * sn + x[b] * cs;
    /* Two products and a sum, each rounded to nearest: at most 2u of the terms' magnitudes. */
    error[a] = 0x1p-23 * (fabs(x[a] * cs) + fabs(x[b] * sn)) * 1.001 + 0x1p-148;
    error[b] = 0x1p-23 * (fabs(x[a] * sn) + fabs(x[b] * cs)) * 1.001 + 0x1p-148;
  }
}

static double round_to(fa_dtype t, double x) {
  char bits[8];
  fa_store(t, bits, x);
  return fa_load(t, bits);
}

/* Rounds an exact value; *flip = largest difference to the rounding of a value within error. */
static double round_rotated(fa_dtype t, double x, double error, float *flip) {
  double near = round_to(t, x), up = round_to(t, x + error), down = round_to(t, x - error);
  *flip = (float)(fmax(fabs(up - near), fabs(down - near)) * 1.0001);
  return near;
}

typedef struct fa_rotation_buffers {
  double *raw, *turned, *error;
} fa_rotation_buffers;

static void rotate_query_rows(fa_ref_call *c, const fa_rotation_buffers *w) {
  bool moving = c->p->mask.type != FA_MASK_NONE;
  for (int64_t b = 0; b < c->p->batch; ++b)
    for (int64_t i = 0; i < c->entry[b].sq; ++i)
      for (int64_t h = 0; h < c->heads_q; ++h) {
        const fa_tensor *t = &c->in->t[FA_T_Q];
        fa_ref_load_row(t, fa_ref_q_row(c, t, &c->entry[b], h, i), t->stride[t->rank - 1], c->d, w->raw);
        rotate(c, w->raw, c->p->kvcache.len.v[b] + (moving ? i : 0), w->turned, w->error);
        int64_t at = fa_ref_q_index(c, &c->entry[b], h, i, c->d);
        for (int64_t k = 0; k < c->d; ++k)
          c->rotated.q[at + k] =
              round_rotated(c->p->dtype, w->turned[k], w->error[k], &c->rotated.dq[at + k]);
      }
}

static void rotate_new_keys(fa_ref_call *c, const fa_rotation_buffers *w) {
  const fa_tensor *t = &c->in->t[FA_T_K_NEW];
  for (int64_t b = 0; b < c->p->batch; ++b)
    for (int64_t n = 0; n < c->p->kvcache.n_new; ++n)
      for (int64_t h = 0; h < c->heads_kv; ++h) {
        int64_t index[FA_MAX_RANK] = {b, n, h, 0};
        fa_ref_load_row(t, t->data + fa_tensor_offset(t, index), t->stride[3], c->d, w->raw);
        rotate(c, w->raw, c->p->kvcache.len.v[b] + n, w->turned, w->error);
        int64_t at = ((b * c->p->kvcache.n_new + n) * c->heads_kv + h) * c->d;
        for (int64_t k = 0; k < c->d; ++k) {
          c->rotated.k[at + k] =
              round_rotated(c->p->dtype, w->turned[k], w->error[k], &c->rotated.dk[at + k]);
          c->rotated.exact_k[at + k] = w->turned[k];
          c->rotated.exact_k_err[at + k] = (float)w->error[k];
        }
      }
}

fa_status fa_ref_rotate_all(fa_ref_call *c, fa_error *err) {
  if (!c->p->kvcache.present || c->p->kvcache.rotary_dim == 0) return FA_OK;
  fa_status status = FA_OK;
  size_t n_q = (size_t)(c->p->batch * c->p->seqlen_q * c->heads_q * c->d) + 1;
  size_t n_k = (size_t)(c->p->batch * c->p->kvcache.n_new * c->heads_kv * c->d) + 1;
  fa_ref_rotated *r = &c->rotated;
  double *work = malloc((size_t)c->d * 3 * sizeof *work);
  r->q = malloc(n_q * sizeof *r->q);
  r->dq = malloc(n_q * sizeof *r->dq);
  r->k = malloc(n_k * sizeof *r->k);
  r->dk = malloc(n_k * sizeof *r->dk);
  r->exact_k = malloc(n_k * sizeof *r->exact_k);
  r->exact_k_err = malloc(n_k * sizeof *r->exact_k_err);
  if (!work || !r->q || !r->dq || !r->k || !r->dk || !r->exact_k || !r->exact_k_err) {
    status = fa_fail(err, FA_ERR_MEMORY, "reference: out of memory for rotated rows");
    goto out;
  }
  fa_rotation_buffers w = {work, work + c->d, work + 2 * c->d};
  rotate_query_rows(c, &w);
  if (c->p->kvcache.n_new > 0) rotate_new_keys(c, &w);
out:
  free(work);
  return status;
}

static void cache_copy(const fa_tensor *t, fa_want *w) {
  const int last = t->rank - 1;
  int64_t index[FA_MAX_RANK];
  for (int64_t n = 0; n < w->n; n += t->shape[last]) {
    fa_tensor_unravel(t, n, index);
    fa_ref_load_row(t, t->data + fa_tensor_offset(t, index), t->stride[last], t->shape[last], &w->value[n]);
  }
}

/* Position of a sequence's slot jj in the row-major want of the cache. */
static int64_t want_slot(const fa_ref_call *c, const fa_want *w, const fa_ref_sequence *e, int64_t hk,
                         int64_t jj) {
  fa_tensor dense = {
      .stride = {w->shape[1] * w->shape[2] * w->shape[3], w->shape[2] * w->shape[3], w->shape[3], 1}};
  return fa_ref_cache_offset(c, &dense, e, hk, jj);
}

/* A new row of 16 bits as the call stores it in 8; the doubt is 0 in data that cases make. */
static void quantise_new(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t h,
                         int64_t n, int64_t width, fa_want *w, int64_t at) {
  const double descale = fa_ref_descale_of_key(c, id, e, h, n);
  const fa_dtype dtype = c->p->quantized.dtype;
  for (int64_t k = 0; k < width; ++k) {
    const double x = w->value[at + k];
    w->value[at + k] = fa_quantised(dtype, x / descale);
    if (w->accum) w->accum[at + k] = (float)fa_quantised_doubt(dtype, x, descale);
  }
}

fa_status fa_ref_cache_after(fa_ref_call *c, fa_error *err) {
  const fa_kvcache *kv = &c->p->kvcache;
  for (int which = 0; which < 2; ++which) {
    fa_tensor_id id = which ? FA_T_V : FA_T_K, fresh = which ? FA_T_V_NEW : FA_T_K_NEW;
    const fa_tensor *t = &c->in->t[id];
    fa_want *w = &c->out->t[id];
    fa_status status = fa_want_init(w, t->dtype, t->rank, t->shape, c->profile != NULL, err);
    if (status) return status;
    w->exact = c->p->quantized.present;
    cache_copy(t, w);
    for (int64_t b = 0; b < c->p->batch && kv->n_new > 0; ++b)
      for (int64_t n = 0; n < kv->n_new; ++n)
        for (int64_t h = 0; h < c->heads_kv; ++h) {
          int64_t at = want_slot(c, w, &c->entry[b], h, kv->len.v[b] + n);
          int64_t from = ((b * kv->n_new + n) * c->heads_kv + h) * c->d;
          for (int64_t k = 0; k < t->shape[3]; ++k) {
            int64_t index[FA_MAX_RANK] = {b, n, h, k};
            bool turned = which == 0 && c->rotated.exact_k;
            w->value[at + k] = turned ? c->rotated.exact_k[from + k] : fa_tensor_get(&c->in->t[fresh], index);
            if (turned && w->accum) w->accum[at + k] = c->rotated.exact_k_err[from + k];
          }
          if (c->p->quantized.quantizes_new)
            quantise_new(c, id, &c->entry[b], h, kv->len.v[b] + n, t->shape[3], w, at);
        }
  }
  return FA_OK;
}
