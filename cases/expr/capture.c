#include "cases/expr/capture.h"

bool fa_dtype_is_capture(fa_dtype t) {
  return t == FA_F32 || t == FA_F16 || t == FA_BF16 || t == FA_I32 || t == FA_I64 || t == FA_BOOL;
}

void fa_capture_strides(const fa_capture *c, int64_t stride[FA_MAX_CAPTURE_RANK]) {
  int64_t dense = 1;
  for (int i = c->rank - 1; i >= 0; --i) {
    stride[i] = c->n_strides ? c->stride[i] : dense;
    dense *= c->shape[i];
  }
}

int64_t fa_capture_span(const fa_capture *c) {
  int64_t stride[FA_MAX_CAPTURE_RANK], span = 1, step;
  fa_capture_strides(c, stride);
  for (int i = 0; i < c->rank; ++i)
    if (__builtin_mul_overflow(c->shape[i] - 1, stride[i], &step) ||
        __builtin_add_overflow(span, step, &span))
      return INT64_MAX;
  return span;
}

/* An axis steps over all that the axes of smaller strides cover. */
bool fa_capture_is_distinct(const fa_capture *c) {
  int64_t stride[FA_MAX_CAPTURE_RANK];
  fa_capture_strides(c, stride);
  for (int i = 0; i < c->rank; ++i) {
    int64_t covered = 0;
    if (stride[i] == 0 || c->shape[i] == 1) continue;
    for (int k = 0; k < c->rank; ++k) {
      const bool inner = stride[k] < stride[i] || (stride[k] == stride[i] && k > i);
      if (inner) covered += (c->shape[k] - 1) * stride[k];
    }
    if (covered >= stride[i]) return false;
  }
  return true;
}
