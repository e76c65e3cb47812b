/* The table of tensors: the properties of each. Code that treats tensors differently asks for the property
 * that makes the difference, and does not name the tensor. To add a tensor: a line in table.c and a number in
 * tensor.h. */
#ifndef FA_CASES_TENSORS_TABLE_H
#define FA_CASES_TENSORS_TABLE_H

#include "cases/arithmetic/profile.h"
#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"

typedef enum fa_pass { FA_PASS_NONE = 0, FA_PASS_FORWARD = 1, FA_PASS_BACKWARD = 2 } fa_pass;

/* UPDATED: an input that a call with new keys also writes: the caches. */
typedef enum fa_tensor_direction { FA_TENSOR_INPUT, FA_TENSOR_UPDATED, FA_TENSOR_OUTPUT } fa_tensor_direction;

/* Logical axes, in the order of the tensor's own index. */
typedef enum fa_tensor_axes {
  FA_AXES_OWN,    /* known only to the code that makes it: lengths, tables, lists, buffers */
  FA_AXES_TOKENS, /* [batch, row, head, column], variable length [token, head, column]; caches: [row or page,
                   * slot, head, column] */
  FA_AXES_NEW,    /* [batch, new key, head, column] */
  FA_AXES_ROWS,   /* [batch, head, row], variable length [head, token] unless the case pads it */
  FA_AXES_BIAS,   /* [batch or 1, head or 1, row or 1, key] */
  FA_AXES_SCORES, /* [batch, head, row, key] */
  FA_AXES_PARTS,  /* [part, batch, row, head, column], variable length [part, token, head, column] */
  FA_AXES_PART_ROWS, /* [part, batch, head, row], variable length [part, head, token] */
  FA_AXES_HEADS,     /* [query head]: contiguous */
  FA_AXES_ONE        /* [1]: a number of the whole call */
} fa_tensor_axes;

/* Where an input's values come from. The last two are filled, each in its own way (cases/data). */
typedef enum fa_tensor_data {
  FA_DATA_NONE,    /* an output */
  FA_DATA_PROBLEM, /* a field of the problem: lengths, slopes */
  FA_DATA_MADE,    /* computed from the problem and the seed: page tables, rotary tables, lists */
  FA_DATA_BUFFER,  /* as a capture of the problem says */
  FA_DATA_QUERY,
  FA_DATA_KEY,
  FA_DATA_VALUE,
  FA_DATA_GRADIENT,
  FA_DATA_BIAS,
  FA_DATA_LSE, /* of parts */
  FA_DATA_SINKS,
  FA_DATA_PLAIN /* the fill, whatever the tensor's role in the computation */
} fa_tensor_data;

/* Conditions on the problem for the tensor to be in the call; all must hold. */
typedef enum fa_tensor_when {
  FA_WHEN_BIAS = 1,
  FA_WHEN_BIAS_GRAD = 2,
  FA_WHEN_BACKWARD = 4,
  FA_WHEN_GRAD_LSE = 8,
  FA_WHEN_NEW_KEYS = 16,
  FA_WHEN_RETURN_SOFTMAX = 32,
  FA_WHEN_RECORDED = 64,   /* of recorded runs only: never in a call */
  FA_WHEN_ATTENTION = 128, /* there are queries, keys and values: every family but merge */
  FA_WHEN_MERGE = 256,
  FA_WHEN_SINKS = 512,
  FA_WHEN_SINKS_GRAD = 1024,
  FA_WHEN_AMAX = 2048
} fa_tensor_when;

typedef struct fa_tensor_info {
  const char *name; /* as in the case JSON and in recorded runs */
  fa_tensor_direction direction;
  fa_pass pass; /* that writes it; for an input, the first that reads it */
  fa_tensor_axes axes;
  fa_tensor_data data;
  unsigned when;   /* fa_tensor_when; meaningless for tensors with FA_AXES_OWN, which are made where needed */
  bool on_keys;    /* its rows are keys and its heads KV heads, otherwise query rows and heads */
  bool on_values;  /* its columns are head_dim_v, otherwise head_dim */
  bool f32;        /* otherwise the problem's type; meaningless for tensors with FA_AXES_OWN */
  bool gradient;   /* of tensor `of` */
  fa_tensor_id of; /* new keys and values: the cache that they are appended to */
  size_t sums;     /* offset in fa_profile of the flag "summed in any order"; 0 = always in one order */
} fa_tensor_info;

const fa_tensor_info *fa_tensor_describe(fa_tensor_id id); /* asserts id < FA_T_COUNT */

bool fa_tensor_is_filled(fa_tensor_id id); /* a fill of the case makes its values */
/* The gradient of an input; FA_T_COUNT: it has none. */
fa_tensor_id fa_tensor_gradient_of(fa_tensor_id id);
/* A gradient that depends on dS: all but dV. */
bool fa_tensor_is_through_ds(fa_tensor_id id);
/* The call reads and writes it: a cache that gets new keys. */
bool fa_tensor_is_updated(const fa_problem *p, fa_tensor_id id);
/* The call has this tensor. false for those with FA_AXES_OWN. */
bool fa_tensor_is_asked_for(const fa_problem *p, fa_tensor_id id);
/* The tensor is columns of another one, K or new K: it has neither strides nor values of its own. */
bool fa_tensor_is_in_k(const fa_problem *p, fa_tensor_id id);
/* The element lies behind its sequence's last row: padding of a padded LSE or dLSE, which nobody reads and everybody may
 * write. */
bool fa_tensor_is_padding(const fa_problem *p, fa_tensor_id id, const int64_t *index);
/* What its elements, of 8 or 4 bits, are multiplied by; FA_T_COUNT: they are values. */
fa_tensor_id fa_tensor_descale_of(const fa_problem *p, fa_tensor_id id);
/* The type of such a tensor's elements: float32, or the problem's, or that of its parts or its operands of 8 bits; bytes,
 * where types are mixed in a row and where two numbers are in each. */
fa_dtype fa_tensor_dtype(const fa_problem *p, fa_tensor_id id);
/* It has an axis of parts before all others. */
bool fa_tensor_has_parts(fa_tensor_id id);
/* The logical shape of a tensor whose axes are TOKENS, NEW, ROWS, BIAS, HEADS, ONE or, of one part, PARTS or PART_ROWS, in
 * the order b, s, h, d whatever its axes: d is 1 for ROWS and PART_ROWS, the key for BIAS; HEADS have h alone, the rest
 * is 1, and ONE is 1 throughout. b is 1 if the tensor has no batch axis (variable length).
 * Needs a valid problem. */
void fa_tensor_shape(const fa_problem *p, fa_tensor_id id, int64_t shape[4]);
/* True if a kernel with this profile may sum it in any order, so that two runs may differ. */
bool fa_tensor_sums_in_any_order(const fa_profile *profile, fa_tensor_id id);
/* A bit (1 << id) for every output that one of these passes writes. */
fa_tensor_bits fa_tensors_written_by(unsigned passes);

#endif
