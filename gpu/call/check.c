/* Checks of sizes, numbers and lengths in gpu/fa.h. */
#include "gpu/call/check.h"

#include "gpu/call/choose.h"
#include "gpu/expr/program.h"

#include <math.h>

/* Batch and heads are grid axes; the rows and keys of a sequence, and sums of two of them, are ints in the
 * kernels. */
#define MAX_GRID 65535
#define MAX_LENGTH (((int64_t)1 << 29) - 1)
#define MAX_TOTAL ((int64_t)1 << 31)
#define MAX_HEAD_DIM 65536
/* The memeff kernels number their blocks over rows and columns on one axis, in units of 128 and 64. */
#define MAX_BLOCKS (((int64_t)1 << 31) - 1)

bool fa_attention_is_varlen(const fa_attention *a) {
  return a->cu_seqlens_q || a->cu_seqlens_k;
}

bool fa_attention_has_lse_batch(const fa_attention *a) {
  return !fa_attention_is_varlen(a) || a->lse_padded;
}
bool fa_attention_is_empty(const fa_attention *a) {
  return a->batch == 0 || a->seqlen_q == 0 || (fa_attention_is_varlen(a) && a->total_q == 0);
}

int64_t fa_attention_head_dim_v(const fa_attention *a) {
  return a->head_dim_v ? a->head_dim_v : a->head_dim;
}

int fa_attention_element_bytes(const fa_attention *a) {
  return a->dtype == FA_F32 ? 4 : 2;
}

int fa_attention_operand_bytes(const fa_attention *a) {
  return a->e4m3 ? 1 : fa_attention_element_bytes(a);
}

/* ---- the problem ---- */

fa_status fa_range_check(const char *name, int64_t x, int64_t lo, int64_t hi, fa_error *err) {
  if (x < lo)
    return fa_fail(err, FA_ERR_INPUT, "%s = %lld: at least %lld", name, (long long)x, (long long)lo);
  if (x > hi)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "%s = %lld: the kernels take at most %lld", name, (long long)x,
                   (long long)hi);
  return FA_OK;
}

static fa_status check_sizes(const fa_attention *a, fa_error *err) {
  const struct {
    const char *name;
    int64_t x, lo, hi;
  } sizes[] = {{"batch", a->batch, 0, MAX_GRID},
               {"heads_q", a->heads_q, 1, MAX_GRID},
               {"heads_kv", a->heads_kv, 1, MAX_GRID},
               {"seqlen_q", a->seqlen_q, 0, MAX_LENGTH},
               {"seqlen_k", a->seqlen_k, 0, MAX_LENGTH},
               {"total_q", a->total_q, 0, MAX_TOTAL},
               {"total_k", a->total_k, 0, MAX_TOTAL},
               {"head_dim", a->head_dim, 1, MAX_HEAD_DIM},
               {"head_dim_v", a->head_dim_v, 0, MAX_HEAD_DIM}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const fa_status status = fa_range_check(sizes[i].name, sizes[i].x, sizes[i].lo, sizes[i].hi, err);
    if (status != FA_OK) return status;
  }
  if (a->heads_q % a->heads_kv != 0)
    return fa_fail(err, FA_ERR_INPUT, "heads_q = %lld is no multiple of heads_kv = %lld",
                   (long long)a->heads_q, (long long)a->heads_kv);
  const int64_t longest = a->seqlen_q > a->seqlen_k ? a->seqlen_q : a->seqlen_k;
  const int64_t head_dim_v = fa_attention_head_dim_v(a);
  const int64_t widest = a->head_dim > head_dim_v ? a->head_dim : head_dim_v;
  if ((longest + 127) / 128 * ((widest + 63) / 64) > MAX_BLOCKS)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "%lld rows or keys of %lld elements are more than a grid holds",
                   (long long)longest, (long long)widest);
  return FA_OK;
}

static fa_status check_numbers(const fa_attention *a, fa_error *err) {
  if (isnan(a->scale))
    return fa_fail(err, FA_ERR_INPUT, "scale is not set (or NaN); 1 / sqrt(head_dim) is usual");
  if (isinf(a->scale)) return fa_fail(err, FA_ERR_INPUT, "scale is infinite");
  const double scale = fabs(a->scale);
  if (scale != 0 && (scale < 1e-30 || scale > 1e30))
    return fa_fail(err, FA_ERR_UNSUPPORTED, "scale = %g: outside the kernels' float range", a->scale);
  if (!(a->softcap >= 0) || isinf(a->softcap))
    return fa_fail(err, FA_ERR_INPUT, "softcap = %g: a finite number >= 0 is needed (0 = off)", a->softcap);
  if (a->softcap != 0 && (a->softcap < 1e-30 || a->softcap > 1e30))
    return fa_fail(err, FA_ERR_UNSUPPORTED, "softcap = %g: outside the kernels' float range", a->softcap);
  if (!(a->dropout_p >= 0 && a->dropout_p < 1))
    return fa_fail(err, FA_ERR_INPUT, "dropout_p = %g: 0 <= p < 1 is needed", a->dropout_p);
  if ((float)a->dropout_p >= 1)
    return fa_fail(err, FA_ERR_INPUT, "dropout_p = %.17g: it is 1 in float32", a->dropout_p);
  if (a->dropout_scheme != FA_DROPOUT_TILED && a->dropout_scheme != FA_DROPOUT_LINEAR)
    return fa_fail(err, FA_ERR_INPUT, "dropout_scheme = %d: FA_DROPOUT_TILED or FA_DROPOUT_LINEAR",
                   (int)a->dropout_scheme);
  if (a->window_left < -1)
    return fa_fail(err, FA_ERR_INPUT, "window_left = %lld: -1 (no bound) or more", (long long)a->window_left);
  if (a->window_right < -1)
    return fa_fail(err, FA_ERR_INPUT, "window_right = %lld: -1 (no bound) or more",
                   (long long)a->window_right);
  if (a->chunk < 0 || a->chunk > INT32_MAX)
    return fa_fail(err, FA_ERR_INPUT, "chunk = %lld: 0 (none) .. %d", (long long)a->chunk, INT32_MAX);
  if (a->chunk > 0 && a->window_right != 0)
    return fa_fail(err, FA_ERR_INPUT, "chunk = %lld: needs window_right = 0, not %lld", (long long)a->chunk,
                   (long long)a->window_right);
  if (isnan(a->empty_lse)) return fa_fail(err, FA_ERR_INPUT, "empty_lse is NaN");
  return FA_OK;
}

fa_status fa_attention_check_numbers(const fa_attention *a, fa_error *err) {
  if (!a) return fa_fail(err, FA_ERR_INPUT, "the fa_attention is NULL");
  if (a->dtype != FA_F16 && a->dtype != FA_BF16 && a->dtype != FA_F32)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "dtype %s: the kernels take f16, bf16 and f32",
                   (unsigned)a->dtype < FA_N_DTYPES ? fa_dtype_name(a->dtype) : "out of range");
  const fa_status status = check_sizes(a, err);
  return status == FA_OK ? check_numbers(a, err) : status;
}

fa_status fa_attention_check_problem(const fa_attention *a, fa_error *err) {
  const fa_status status = fa_attention_check_numbers(a, err);
  if (status != FA_OK) return status;
  if (a->e4m3) return fa_eight_check(a, err);
  if (fa_amax_check(a, false, err) != FA_OK) return FA_ERR_UNSUPPORTED;
  return a->flex ? fa_flex_check_problem(a, err) : fa_choose_check(a, NULL, err);
}

/* ---- contents ---- */

fa_status fa_cu_seqlens_check(const char *name, const int32_t *cu, int64_t batch, int64_t longest,
                              int64_t total, fa_error *err) {
  if (cu[0] != 0) return fa_fail(err, FA_ERR_INPUT, "%s[0] = %d: 0 is needed", name, cu[0]);
  for (int64_t b = 0; b < batch; ++b) {
    if (cu[b + 1] < cu[b])
      return fa_fail(err, FA_ERR_INPUT, "%s[%lld] = %d comes after %d: the numbers must not fall", name,
                     (long long)b + 1, cu[b + 1], cu[b]);
    if (cu[b + 1] - cu[b] > longest)
      return fa_fail(err, FA_ERR_INPUT, "%s: entry %lld has %d tokens, more than the longest, %lld", name,
                     (long long)b, cu[b + 1] - cu[b], (long long)longest);
  }
  if (cu[batch] != total)
    return fa_fail(err, FA_ERR_INPUT, "%s ends at %d, but there are %lld tokens", name, cu[batch],
                   (long long)total);
  return FA_OK;
}

fa_status fa_attention_check_lengths(const fa_attention *a, const int32_t *cu_seqlens_q,
                                     const int32_t *cu_seqlens_k, const int32_t *seqused_k,
                                     const int32_t *leftpad_k, fa_error *err) {
  fa_status status = FA_OK;
  if (cu_seqlens_q)
    status = fa_cu_seqlens_check("cu_seqlens_q", cu_seqlens_q, a->batch, a->seqlen_q, a->total_q, err);
  if (status == FA_OK && cu_seqlens_k)
    status = fa_cu_seqlens_check("cu_seqlens_k", cu_seqlens_k, a->batch, a->seqlen_k, a->total_k, err);
  for (int64_t b = 0; status == FA_OK && b < a->batch; ++b) {
    int64_t keys = cu_seqlens_k ? cu_seqlens_k[b + 1] - cu_seqlens_k[b] : a->seqlen_k;
    if (seqused_k && (seqused_k[b] < 0 || seqused_k[b] > keys))
      status = fa_fail(err, FA_ERR_INPUT, "seqused_k[%lld] = %d: 0 .. %lld, the keys of the entry",
                       (long long)b, seqused_k[b], (long long)keys);
    if (seqused_k) keys = seqused_k[b];
    if (status == FA_OK && leftpad_k && (leftpad_k[b] < 0 || leftpad_k[b] > keys))
      status = fa_fail(err, FA_ERR_INPUT, "leftpad_k[%lld] = %d: 0 .. %lld, the keys of the entry",
                       (long long)b, leftpad_k[b], (long long)keys);
  }
  return status;
}
