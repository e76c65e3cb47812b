/* Which of a case's tensors a device can fill, and what it needs to know for that: plain data, whose bytes are copied
 * there. A device writes images of whole payloads, gaps included. */
#ifndef FA_CASES_DATA_FILL_PLAN_H
#define FA_CASES_DATA_FILL_PLAN_H

#include "cases/data/fill_element.h"
#include "cases/recipe/case.h"

/* One sequence of a tensor. Its rows are its slots in order, of each slot all heads. */
typedef struct fa_fill_sequence {
  int64_t b, sq;
  int64_t first_row;  /* of the tensor's rows */
  int64_t begin, end; /* slots that are filled; others keep the pattern of gaps */
  int64_t at;         /* element of slot 0 and head 0, from the tensor's first */
} fa_fill_sequence;

typedef struct fa_fill_tensor {
  fa_fill_numbers numbers;
  uint64_t seed;
  fa_dtype dtype;                      /* f16, bf16, f32 */
  int64_t first_row;                   /* of the plan's rows */
  int64_t first_sequence, n_sequences; /* of the plan's */
  int64_t heads;                       /* rows of a slot */
  int64_t slot_step, head_step, step;  /* strides, in elements */
  int64_t to;                          /* byte of the images that is its first element's */
} fa_fill_tensor;

/* The payload of a buffer. */
typedef struct fa_fill_image {
  fa_tensor_id id;
  size_t at, bytes; /* from the first image's first byte, 256-byte aligned */
} fa_fill_image;

enum { FA_FILL_TENSORS = 4 }; /* Q, K, V, dO */

typedef struct fa_fill_plan {
  int n_tensors, n_images;
  int64_t n_rows, n_sequences;
  size_t bytes; /* of all images, a multiple of 256 */
  fa_tensor_bits filled;
  fa_fill_tensor tensor[FA_FILL_TENSORS];
  fa_fill_image image[FA_FILL_TENSORS];
  fa_fill_sequence *sequence;
} fa_fill_plan;

/* Buffers all of whose filled tensors a device can make: by their owners. Not: caches, operands of 8 bits, expanded axes,
 * rows that a case zeroes, fills that make rows as a whole or follow V, mostly unused address space. */
fa_tensor_bits fa_fill_buffers(const fa_case *c, const fa_tensors *set);
/* Elements of the tensors in these buffers. */
int64_t fa_fill_count(const fa_tensors *set, fa_tensor_bits buffers);
/* A plan for some of them; to be freed with fa_fill_plan_free, whatever is returned. */
fa_status fa_fill_plan_make(const fa_case *c, const fa_tensors *set, fa_tensor_bits buffers,
                            fa_fill_plan *out, fa_error *err);
void fa_fill_plan_free(fa_fill_plan *plan);

#endif
