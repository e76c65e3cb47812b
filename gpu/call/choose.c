#include "gpu/call/choose.h"

#include "gpu/call/check.h"
#include "gpu/kernels/params/memeff_backward.h"

/* An axis of one element needs no sum. */
int fa_memeff_dbias_sums(const fa_attention *a, const fa_gradients *g) {
  return (g->dbias_stride.batch == 0 && a->batch != 1 ? FA_MEMEFF_SUM_BATCH : 0) |
         (g->dbias_stride.head == 0 && a->heads_q != 1 ? FA_MEMEFF_SUM_HEADS : 0) |
         (g->dbias_stride.row == 0 && a->seqlen_q != 1 ? FA_MEMEFF_SUM_ROWS : 0);
}

bool fa_backward_adds_dbias(const fa_attention *a, const fa_gradients *g) {
  const int sums = fa_memeff_dbias_sums(a, g);
  return !a->deterministic && sums != 0 && (sums & FA_MEMEFF_SUM_ROWS) == 0;
}

/* The flash kernels write dbias where a sequence has rows, and nowhere else; and what sums it after them finds no delta
 * of packed sequences. */
static bool is_packed_dbias(const fa_attention *a, const fa_gradients *g) {
  return g->dbias && fa_attention_is_varlen(a) && !fa_backward_adds_dbias(a, g);
}

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
  if (g && is_packed_dbias(a, g)) return "a gradient of packed sequences' bias";
  if (a->chunk > 0 && beyond_general(a))
    return "chunks beside a bias, linear dropout or a head_dim_v of its own";
  return NULL;
}

/* The feature of a call that only the other flash kernels have. */
static bool beyond_mixed(const fa_attention *a) {
  return a->softcap > 0 || a->alibi_slopes || (a->dropout_p > 0 && a->dropout_scheme == FA_DROPOUT_TILED);
}

/* And that not even the flex kernels have. */
static const char *beyond_flex(const fa_attention *a) {
  return a->p_debug ? "p_debug" : a->mask_bits ? "mask_bits" : NULL;
}

/* The feature of a call that those other flash kernels lack. */
static const char *beyond_other(const fa_attention *a, const fa_gradients *g) {
  const char *what = beyond_flash(a, g);
  return what ? what : beyond_general(a);
}

fa_kernels fa_choose_forward(const fa_attention *a) {
  return fa_choose_backward(a, NULL);
}

fa_kernels fa_choose_backward(const fa_attention *a, const fa_gradients *g) {
  return beyond_flash(a, g) ? FA_KERNELS_MEMEFF : FA_KERNELS_FLASH;
}

bool fa_choose_flex(const fa_attention *a, const fa_gradients *g) {
  return a->flex || (beyond_mixed(a) && !beyond_flex(a) && beyond_other(a, g));
}

fa_status fa_choose_check(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  const char *what = beyond_flex(a), *other = beyond_other(a, g);
  if (what && other)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "%s: not together with %s, whose kernels do not have it", what,
                   other);
  return FA_OK;
}
