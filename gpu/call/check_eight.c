/* What calls with q, k and v of 8 bits may ask for. */
#include "gpu/call/check.h"

/* A feature that their kernels have not, in words; NULL: none. */
static const char *beyond_eight(const fa_attention *a) {
  const int64_t head_dim_v = fa_attention_head_dim_v(a);
  const struct {
    bool wanted;
    const char *what;
  } all[] = {{a->dtype == FA_F32, "dtype f32"},
             {a->head_dim > 256 || head_dim_v > 256, "a head_dim above 256"},
             {a->head_dim % 16 != 0 || head_dim_v % 16 != 0, "a head_dim that is no multiple of 16"},
             {a->scale <= 0, "a scale that is not positive"},
             {a->chunk > 0, "chunks"},
             {a->mask_bits != NULL, "mask_bits"},
             {a->bias != NULL, "a bias"},
             {a->dropout_p > 0, "dropout"},
             {a->softcap > 0 && a->alibi_slopes, "softcap and ALiBi at once"},
             {a->alibi_slopes && a->mask_top_left, "ALiBi with a mask aligned top-left"},
             {a->p_debug != NULL, "p_debug"},
             {a->flex != NULL, "expressions or block lists"},
             {a->splits > 1, "splits"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (all[i].wanted) return all[i].what;
  return NULL;
}

fa_status fa_eight_check(const fa_attention *a, fa_error *err) {
  const char *what = beyond_eight(a);
  if (what) return fa_fail(err, FA_ERR_UNSUPPORTED, "e4m3: not together with %s", what);
  if (a->descale_batch_stride < 0 || a->descale_head_stride < 0)
    return fa_fail(err, FA_ERR_INPUT, "descale strides (%lld, %lld): negative strides are not supported",
                   (long long)a->descale_batch_stride, (long long)a->descale_head_stride);
  const struct {
    const char *name;
    const float *p;
  } all[] = {{"q_descale", a->q_descale}, {"k_descale", a->k_descale}, {"v_descale", a->v_descale}};
  fa_status status = FA_OK;
  for (size_t i = 0; status == FA_OK && i < sizeof all / sizeof *all; ++i)
    status = fa_alignment_check(all[i].name, all[i].p, 4, err);
  return status == FA_OK ? fa_amax_check(a, true, err) : status;
}

fa_status fa_amax_check(const fa_attention *a, bool has_kernels, fa_error *err) {
  if (!a->amax_p && !a->amax_o) return FA_OK;
  if (!has_kernels)
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "amax_p and amax_o: only of e4m3, and over caches of 8 and 4 bits");
  if (!a->amax_p || !a->amax_o)
    return fa_fail(err, FA_ERR_INPUT, "%s is NULL, but not %s", a->amax_p ? "amax_o" : "amax_p",
                   a->amax_p ? "amax_p" : "amax_o");
  const fa_status status = fa_alignment_check("amax_p", a->amax_p, 4, err);
  return status == FA_OK ? fa_alignment_check("amax_o", a->amax_o, 4, err) : status;
}

fa_status fa_eight_refuse(const fa_attention *a, const char *what, fa_error *err) {
  return a->e4m3 ? fa_fail(err, FA_ERR_UNSUPPORTED, "e4m3: %s", what) : FA_OK;
}
