/* Arguments of gpu/fa.h: everything that can be wrong with them and seen without the device. */
#include "gpu/fa_check.h"

#include <math.h>
#include <string.h>

/* Batch and heads are grid axes; rows and keys of an entry, and sums of two, are ints in the kernels. */
#define MAX_GRID 65535
#define MAX_LENGTH (((int64_t)1 << 29) - 1)
#define MAX_TOTAL ((int64_t)1 << 31)

bool fa_attention_is_varlen(const fa_attention *a) {
  return a->cu_seqlens_q || a->cu_seqlens_k;
}

bool fa_attention_is_empty(const fa_attention *a) {
  return a->batch == 0 || a->seqlen_q == 0 || (fa_attention_is_varlen(a) && a->total_q == 0);
}

/* ---- the problem ---- */

static fa_status check_range(const char *name, int64_t x, int64_t lo, int64_t hi, fa_error *err) {
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
  } sizes[] = {{"batch", a->batch, 0, MAX_GRID},         {"heads_q", a->heads_q, 1, MAX_GRID},
               {"heads_kv", a->heads_kv, 1, MAX_GRID},   {"seqlen_q", a->seqlen_q, 0, MAX_LENGTH},
               {"seqlen_k", a->seqlen_k, 0, MAX_LENGTH}, {"total_q", a->total_q, 0, MAX_TOTAL},
               {"total_k", a->total_k, 0, MAX_TOTAL},    {"head_dim", a->head_dim, 1, 256}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const fa_status status = check_range(sizes[i].name, sizes[i].x, sizes[i].lo, sizes[i].hi, err);
    if (status != FA_OK) return status;
  }
  if (a->head_dim % 8 != 0)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "head_dim = %lld: the kernels take multiples of 8",
                   (long long)a->head_dim);
  if (a->heads_q % a->heads_kv != 0)
    return fa_fail(err, FA_ERR_INPUT, "heads_q = %lld is no multiple of heads_kv = %lld",
                   (long long)a->heads_q, (long long)a->heads_kv);
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
  if (a->window_left < -1)
    return fa_fail(err, FA_ERR_INPUT, "window_left = %lld: -1 (no bound) or more", (long long)a->window_left);
  if (a->window_right < -1)
    return fa_fail(err, FA_ERR_INPUT, "window_right = %lld: -1 (no bound) or more",
                   (long long)a->window_right);
  if (isnan(a->empty_lse)) return fa_fail(err, FA_ERR_INPUT, "empty_lse is NaN");
  return FA_OK;
}

fa_status fa_attention_check_problem(const fa_attention *a, fa_error *err) {
  if (!a) return fa_fail(err, FA_ERR_INPUT, "the fa_attention is NULL");
  if (a->dtype != FA_F16 && a->dtype != FA_BF16)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "dtype %s: the kernels take f16 and bf16",
                   (unsigned)a->dtype < FA_N_DTYPES ? fa_dtype_name(a->dtype) : "out of range");
  fa_status status = check_sizes(a, err);
  if (status == FA_OK) status = check_numbers(a, err);
  return status;
}

/* ---- tensors ---- */

/* The axes of a tensor must not reach into each other: from the innermost outwards, each stride steps over
 * all that lies below it. Says no to a few interleaved layouts in which no two elements coincide either. */
static bool elements_are_apart(int64_t elements, const int64_t extent[3], const int64_t stride[3]) {
  bool used[3] = {false, false, false};
  __int128 reach = elements; /* elements from the first to past the last one */
  for (int n = 0; n < 3; ++n) {
    int next = -1;
    for (int i = 0; i < 3; ++i)
      if (!used[i] && (next < 0 || stride[i] < stride[next])) next = i;
    used[next] = true;
    if (extent[next] <= 1) continue;
    if (stride[next] < reach) return false;
    reach += (__int128)stride[next] * (extent[next] - 1);
  }
  return true;
}

fa_status fa_extent_check(const fa_extent *x, fa_error *err) {
  const int64_t extent[3] = {x->batch ? x->batch : 1, x->rows, x->heads};
  const int64_t stride[3] = {x->batch ? x->stride.batch : 0, x->stride.row, x->stride.head};
  static const char *const axis[3] = {"batch", "row", "head"};
  if (extent[0] == 0 || extent[1] == 0 || extent[2] == 0) return FA_OK;
  if (!x->data) return fa_fail(err, FA_ERR_INPUT, "%s is NULL", x->name);
  if ((uintptr_t)x->data % (uintptr_t)x->element_bytes != 0)
    return fa_fail(err, FA_ERR_INPUT, "%s = %p: not aligned to its elements of %d bytes", x->name, x->data,
                   x->element_bytes);
  __int128 reach = x->elements;
  for (int i = 0; i < 3; ++i) {
    if (stride[i] < 0)
      return fa_fail(err, FA_ERR_INPUT, "%s: %s stride %lld: negative strides are not supported", x->name,
                     axis[i], (long long)stride[i]);
    reach += (__int128)stride[i] * (extent[i] - 1);
  }
  if (reach > (__int128)1 << 48)
    return fa_fail(err, FA_ERR_INPUT, "%s: its strides reach over 2^48 elements", x->name);
  if (x->output && !elements_are_apart(x->elements, extent, stride))
    return fa_fail(
        err, FA_ERR_INPUT,
        "%s is written, but with strides (%lld, %lld, %lld) of batch, row and head its elements overlap",
        x->name, (long long)stride[0], (long long)stride[1], (long long)stride[2]);
  return FA_OK;
}

static fa_status check_ints(const char *name, const int32_t *p, fa_error *err) {
  if ((uintptr_t)p % 4 != 0)
    return fa_fail(err, FA_ERR_INPUT, "%s = %p: not aligned to 4 bytes", name, (const void *)p);
  return FA_OK;
}

static fa_status check_arrays(const fa_attention *a, fa_error *err) {
  if (!a->cu_seqlens_q != !a->cu_seqlens_k)
    return fa_fail(err, FA_ERR_INPUT, "%s is NULL, but %s is given: both or neither",
                   a->cu_seqlens_q ? "cu_seqlens_k" : "cu_seqlens_q",
                   a->cu_seqlens_q ? "cu_seqlens_q" : "cu_seqlens_k");
  fa_status status = check_ints("cu_seqlens_q", a->cu_seqlens_q, err);
  if (status == FA_OK) status = check_ints("cu_seqlens_k", a->cu_seqlens_k, err);
  if (status == FA_OK) status = check_ints("seqused_k", a->seqused_k, err);
  if (status == FA_OK) status = check_ints("leftpad_k", a->leftpad_k, err);
  if (status != FA_OK) return status;
  if ((uintptr_t)a->p_debug % 16 != 0)
    return fa_fail(err, FA_ERR_INPUT, "p_debug = %p: not aligned to 16 bytes", a->p_debug);
  if ((uintptr_t)a->alibi_slopes % 4 != 0)
    return fa_fail(err, FA_ERR_INPUT, "alibi_slopes = %p: not aligned to 4 bytes",
                   (const void *)a->alibi_slopes);
  if (a->alibi_slopes && a->alibi_batch_stride < 0)
    return fa_fail(err, FA_ERR_INPUT, "alibi_batch_stride = %lld: negative strides are not supported",
                   (long long)a->alibi_batch_stride);
  if (!fa_attention_is_varlen(a)) return FA_OK;
  if (a->seqlen_q > a->total_q)
    return fa_fail(err, FA_ERR_INPUT,
                   "seqlen_q = %lld, the longest entry, is more than all total_q = %lld tokens",
                   (long long)a->seqlen_q, (long long)a->total_q);
  if (a->seqlen_k > a->total_k)
    return fa_fail(err, FA_ERR_INPUT,
                   "seqlen_k = %lld, the longest entry, is more than all total_k = %lld tokens",
                   (long long)a->seqlen_k, (long long)a->total_k);
  return FA_OK;
}

fa_status fa_attention_check_tensors(const fa_attention *a, fa_error *err) {
  fa_status status = check_arrays(a, err);
  if (status != FA_OK || fa_attention_is_empty(a)) return status;
  const bool varlen = fa_attention_is_varlen(a);
  const int64_t batch = varlen ? 0 : a->batch, rows = varlen ? a->total_q : a->seqlen_q;
  const int64_t keys = varlen ? a->total_k : a->seqlen_k;
  const fa_extent all[] = {
      {"q", a->q, a->q_stride, batch, rows, a->heads_q, a->head_dim, 2, false},
      {"k", a->k, a->k_stride, batch, keys, a->heads_kv, a->head_dim, 2, false},
      {"v", a->v, a->v_stride, batch, keys, a->heads_kv, a->head_dim, 2, false},
      {"o", a->o, a->o_stride, batch, rows, a->heads_q, a->head_dim, 2, true},
      {"lse", a->lse, a->lse_stride, batch, rows, a->heads_q, 1, 4, true},
  };
  for (size_t i = 0; status == FA_OK && i < sizeof all / sizeof *all; ++i)
    status = fa_extent_check(&all[i], err);
  return status;
}

/* ---- contents ---- */

static fa_status check_cu_seqlens(const char *name, const int32_t *cu, int64_t batch, int64_t longest,
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
    status = check_cu_seqlens("cu_seqlens_q", cu_seqlens_q, a->batch, a->seqlen_q, a->total_q, err);
  if (status == FA_OK && cu_seqlens_k)
    status = check_cu_seqlens("cu_seqlens_k", cu_seqlens_k, a->batch, a->seqlen_k, a->total_k, err);
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
