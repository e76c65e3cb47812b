#include "gpu/call/choose.h"

#include "gpu/call/check.h"

/* The feature of a call that needs a biased or mixed flash kernel. */
static const char *beyond_general(const fa_attention *a) {
  if (fa_attention_head_dim_v(a) != a->head_dim) return "a head_dim_v that is not head_dim";
  if (a->bias) return "a bias";
  if (a->dropout_p > 0 && a->dropout_scheme == FA_DROPOUT_LINEAR) return "linear dropout";
  return NULL;
}

/* The feature of a call that only memeff kernels have, in words; NULL: none. */
static const char *beyond_flash(const fa_attention *a, const fa_gradients *g) {
  const int64_t head_dim_v = fa_attention_head_dim_v(a);
  if (a->dtype == FA_F32) return "dtype f32";
  if (a->head_dim > 256 || head_dim_v > 256) return "a head_dim above 256";
  if (a->head_dim % 8 != 0 || head_dim_v % 8 != 0) return "a head_dim that is no multiple of 8";
  if (g && g->delta) return "a given delta";
  if (a->chunk > 0 && beyond_general(a))
    return "chunks beside a bias, linear dropout or a head_dim_v of its own";
  return NULL;
}

/* The feature of a call that only the other flash kernels have. */
static const char *beyond_mixed(const fa_attention *a) {
  if (a->softcap > 0) return "softcap";
  if (a->alibi_slopes) return "alibi_slopes";
  if (a->dropout_p > 0 && a->dropout_scheme == FA_DROPOUT_TILED) return "tiled dropout";
  if (a->p_debug) return "p_debug";
  if (a->mask_bits) return "mask_bits";
  return NULL;
}

fa_kernels fa_choose_forward(const fa_attention *a) {
  return fa_choose_backward(a, NULL);
}

fa_kernels fa_choose_backward(const fa_attention *a, const fa_gradients *g) {
  return beyond_flash(a, g) ? FA_KERNELS_MEMEFF : FA_KERNELS_FLASH;
}

fa_status fa_choose_check(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  const char *flash = beyond_mixed(a), *other = beyond_flash(a, g);
  if (!other) other = beyond_general(a);
  if (other && flash)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "%s: not together with %s, whose kernels do not have it", flash,
                   other);
  return FA_OK;
}
