#include "gpu/call/check_merge.h"

#include "gpu/call/check.h"

static bool is_float(fa_dtype t) {
  return t == FA_F16 || t == FA_BF16 || t == FA_F32;
}

fa_status fa_states_check_problem(const fa_states *s, fa_error *err) {
  if (!s) return fa_fail(err, FA_ERR_INPUT, "the states are NULL");
  if (!is_float(s->dtype) || !is_float(s->parts_dtype))
    return fa_fail(err, FA_ERR_INPUT, "dtype and parts_dtype must be FA_F16, FA_BF16 or FA_F32");
  fa_status status = fa_range_check("parts", s->parts, 1, 1024, err);
  if (status == FA_OK) status = fa_range_check("batch", s->batch, 0, (int64_t)1 << 30, err);
  if (status == FA_OK) status = fa_range_check("heads", s->heads, 1, (int64_t)1 << 16, err);
  if (status == FA_OK) status = fa_range_check("rows", s->rows, 0, (int64_t)1 << 30, err);
  if (status == FA_OK) status = fa_range_check("head_dim", s->head_dim, 1, (int64_t)1 << 16, err);
  if (status != FA_OK) return status;
  if ((__int128)s->batch * s->heads * s->rows > (__int128)1 << 32)
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "%lld rows of %lld heads in %lld sequences are more than a grid holds", (long long)s->rows,
                   (long long)s->heads, (long long)s->batch);
  return FA_OK;
}

bool fa_states_are_empty(const fa_states *s) {
  return s->batch == 0 || s->rows == 0;
}

/* All parts of it, as if there were one; and that parts do not lie in each other. */
static fa_status check_parts(fa_extent x, const fa_states *s, int64_t part_stride, fa_error *err) {
  const fa_status status = fa_extent_check(&x, err);
  if (status != FA_OK || fa_states_are_empty(s) || s->parts == 1) return status;
  const __int128 reach = (__int128)x.stride.batch * (s->batch - 1) + (__int128)x.stride.row * (s->rows - 1) +
                         (__int128)x.stride.head * (s->heads - 1) + x.elements;
  if (part_stride < 0 || (__int128)part_stride * s->parts > (__int128)1 << 48)
    return fa_fail(err, FA_ERR_INPUT, "%s: part stride %lld is negative, or reaches over 2^48 elements",
                   x.name, (long long)part_stride);
  if (x.output && part_stride < reach)
    return fa_fail(err, FA_ERR_INPUT, "%s is written, but its part stride %lld is less than a part", x.name,
                   (long long)part_stride);
  return FA_OK;
}

static int bytes_of(fa_dtype t) {
  return (int)fa_dtype_size(t);
}

static fa_extent wide(const char *name, const void *data, fa_strides stride, const fa_states *s, fa_dtype t,
                      bool output) {
  return (fa_extent){name, data, stride, s->batch, s->rows, s->heads, s->head_dim, bytes_of(t), output};
}
static fa_extent narrow(const char *name, const void *data, fa_strides stride, const fa_states *s,
                        bool output) {
  return (fa_extent){name, data, stride, s->batch, s->rows, s->heads, 1, bytes_of(FA_F32), output};
}

static fa_status check_gradients(const fa_states *s, const fa_states_gradients *g, fa_error *err) {
  const fa_extent d_o = wide("d_o", g->d_o, g->do_stride, s, s->dtype, false),
                  d_lse = narrow("d_lse", g->d_lse, g->dlse_stride, s, false);
  fa_status status = fa_extent_check(&d_o, err);
  if (status == FA_OK && g->d_lse) status = fa_extent_check(&d_lse, err);
  if (status == FA_OK)
    status = check_parts(wide("do_parts", g->do_parts, g->do_parts_stride, s, s->parts_dtype, true), s,
                         g->do_parts_step, err);
  if (status == FA_OK)
    status = check_parts(narrow("dlse_parts", g->dlse_parts, g->dlse_parts_stride, s, true), s,
                         g->dlse_parts_step, err);
  return status;
}

fa_status fa_states_check_tensors(const fa_states *s, const fa_states_gradients *g, fa_error *err) {
  const fa_extent o = wide("o", s->o, s->o_stride, s, s->dtype, !g),
                  lse = narrow("lse", s->lse, s->lse_stride, s, !g);
  if (fa_states_are_empty(s)) return FA_OK;
  fa_status status = check_parts(wide("o_parts", s->o_parts, s->o_parts_stride, s, s->parts_dtype, false), s,
                                 s->o_parts_step, err);
  if (status == FA_OK)
    status = check_parts(narrow("lse_parts", s->lse_parts, s->lse_parts_stride, s, false), s,
                         s->lse_parts_step, err);
  if (status == FA_OK) status = fa_extent_check(&o, err);
  if (status == FA_OK) status = fa_extent_check(&lse, err);
  return status == FA_OK && g ? check_gradients(s, g, err) : status;
}
