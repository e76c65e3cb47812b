#include "fuzz/judging/fill.h"

#include "cases/data/fill_plan.h"
#include "cases/tensors/guard.h"
#include "cases/threads/bulk.h"

#include <string.h>

/* Images that are made at once, unless one alone is larger; and how much of them comes down at once. */
#define IMAGES ((size_t)256 << 20)
#define PIECE ((size_t)128 << 20)

static size_t round_up(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

/* The part of an image between begin and end of all images, from `piece`, which is there. */
static void copy_part(const fa_tensors *set, const fa_fill_image *image, const char *piece, size_t begin,
                      size_t end) {
  const size_t from = image->at > begin ? image->at : begin;
  const size_t to = image->at + image->bytes < end ? image->at + image->bytes : end;
  char *payload = fa_buffer_payload(&set->buffer[image->id]);
  if (to > from) fa_bulk_copy(payload + (from - image->at), piece + (from - begin), to - from);
}

static fa_status fetch(fa_judge_machine *m, const fa_fill_plan *plan, const char *images, char *staged,
                       fa_tensors *set, fa_error *err) {
  fa_status status = FA_OK;
  for (size_t begin = 0; status == FA_OK && begin < plan->bytes; begin += PIECE) {
    const size_t end = plan->bytes - begin < PIECE ? plan->bytes : begin + PIECE;
    status = m->download(m->self, staged, images + begin, end - begin, err);
    for (int i = 0; status == FA_OK && i < plan->n_images; ++i)
      copy_part(set, &plan->image[i], staged, begin, end);
  }
  return status;
}

static fa_status launch(fa_judge_machine *m, fa_judge_kernel kernel, int64_t n, fa_judge_job *x,
                        fa_error *err) {
  x->n = n;
  return n > 0 ? m->launch(m->self, kernel, x, err) : FA_OK;
}

/* The plan's tables, then the images. */
static fa_status run(fa_judge_machine *m, const fa_fill_plan *plan, fa_tensors *set, fa_error *err) {
  const size_t tensors = (size_t)plan->n_tensors * sizeof *plan->tensor;
  const size_t sequences = (size_t)plan->n_sequences * sizeof *plan->sequence;
  const size_t tables = round_up(tensors) + round_up(sequences);
  const size_t piece = plan->bytes < PIECE ? plan->bytes : PIECE;
  char *memory, *staged;
  fa_status status = m->reserve(m->self, tables + plan->bytes, &memory, err);
  if (status == FA_OK) status = m->stage(m->self, tables > piece ? tables : piece, &staged, err);
  if (status != FA_OK) return status;
  memcpy(staged, plan->tensor, tensors);
  memcpy(staged + round_up(tensors), plan->sequence, sequences);
  fa_judge_job x = {.fill = {.tensor = (fa_fill_tensor *)memory,
                             .n = plan->n_tensors,
                             .sequence = (fa_fill_sequence *)(memory + round_up(tensors)),
                             .images = memory + tables}};
  status = m->upload(m->self, memory, staged, tables, err);
  if (status == FA_OK)
    status = launch(m, FA_JUDGE_KERNEL_fill_gaps, (int64_t)(plan->bytes / sizeof(uint32_t)), &x, err);
  if (status == FA_OK) status = launch(m, FA_JUDGE_KERNEL_fill_row, plan->n_rows, &x, err);
  return status == FA_OK ? fetch(m, plan, x.fill.images, staged, set, err) : status;
}

/* As before a device came to it. */
static void restore(const fa_fill_plan *plan, fa_tensors *set) {
  for (int i = 0; i < plan->n_images; ++i)
    fa_buffer_fill(&set->buffer[plan->image[i].id], FA_PATTERN_INPUT_GAP);
}

/* The first buffers of these for which there is room at once. */
static fa_tensor_bits next_buffers(const fa_tensors *set, fa_tensor_bits buffers) {
  fa_tensor_bits some = 0;
  size_t bytes = 0;
  for (int i = 0; i < FA_T_COUNT; ++i) {
    if (!(buffers >> i & 1)) continue;
    bytes += set->buffer[i].bytes;
    if (some && bytes > IMAGES) break;
    some |= (fa_tensor_bits)1 << i;
  }
  return some;
}

fa_status fa_judge_make_data(fa_judge_machine *m, const fa_case *c, int64_t least, fa_tensors *set,
                             fa_tensor_bits *filled, fa_error *err) {
  fa_tensor_bits left = fa_fill_buffers(c, set);
  fa_status status = FA_OK;
  *filled = 0;
  if (fa_fill_count(set, left) < least) return FA_OK;
  while (status == FA_OK && left) {
    const fa_tensor_bits some = next_buffers(set, left);
    fa_fill_plan plan;
    left &= ~some;
    status = fa_fill_plan_make(c, set, some, &plan, err);
    if (status == FA_OK && plan.bytes > m->most_bytes / 2)
      status = fa_fail(err, FA_ERR_MEMORY, "no room for %zu bytes of data", plan.bytes);
    if (status == FA_OK) status = run(m, &plan, set, err);
    if (status == FA_OK)
      *filled |= plan.filled;
    else
      restore(&plan, set);
    fa_fill_plan_free(&plan);
  }
  return status;
}
