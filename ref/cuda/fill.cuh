/* Data of a case: images of its inputs' payloads, bit for bit what the CPU makes (cases/data/fill_plan.h). */
#ifndef FA_REF_CUDA_FILL_CUH
#define FA_REF_CUDA_FILL_CUH

#include "ref/cuda/job.h"
#include "ref/cuda/machine.cuh"

#include "cases/base/dtype_narrow.h"
#include "cases/tensors/guard.h"

/* Element kernel: a word of the images. */
FA_DEVICE void fa_judge_fill_gaps(const fa_judge_job *x, int64_t word) {
  ((uint32_t *)x->fill.images)[word] = FA_PATTERN_WORD(FA_PATTERN_INPUT_GAP);
}

FA_DEVICE const fa_fill_tensor *filled_tensor(const fa_judge_fill *f, int64_t row) {
  int at = 0;
  while (at + 1 < f->n && row >= f->tensor[at + 1].first_row) ++at;
  return &f->tensor[at];
}

/* The last one that does not begin behind the row: empty ones begin where the next one does. */
FA_DEVICE const fa_fill_sequence *filled_sequence(const fa_judge_fill *f, const fa_fill_tensor *t,
                                                  int64_t row) {
  const fa_fill_sequence *s = f->sequence + t->first_sequence;
  int64_t low = 0, high = t->n_sequences;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (s[middle].first_row <= row)
      low = middle;
    else
      high = middle;
  }
  return s + low;
}

FA_DEVICE void store_filled(const fa_fill_tensor *t, char *image, int64_t at, double value) {
  if (t->dtype == FA_F32)
    ((float *)image)[at] = (float)value;
  else
    ((uint16_t *)image)[at] =
        (uint16_t)(t->dtype == FA_BF16 ? fa_narrow_f64(value, 8, 7) : fa_narrow_f64(value, 5, 10));
}

/* Row kernel: a row of a tensor, of the plan's. */
FA_DEVICE void fa_judge_fill_row(const fa_judge_job *x, int64_t row) {
  const fa_fill_tensor *t = filled_tensor(&x->fill, row);
  const fa_fill_sequence *s = filled_sequence(&x->fill, t, row - t->first_row);
  const int64_t in = row - t->first_row - s->first_row, slot = s->begin + in / t->heads, h = in % t->heads;
  const int64_t first = s->at + slot * t->slot_step + h * t->head_step;
  fa_fill_place at = {};
  at.key = fa_rng_mix_key(t->seed, (uint64_t)s->b << 32 | (uint64_t)h);
  at.b = s->b;
  at.h = h;
  at.s = slot;
  at.sq = s->sq;
  for (int64_t d = lane(); d < t->numbers.width; d += WARP)
    store_filled(t, x->fill.images + t->to, first + d * t->step, fa_fill_element(&t->numbers, &at, d));
}

#endif
