#include "tests/fake_cuda/flex.h"

#include "cases/tensors/guard.h"
#include "gpu/args/problem.h"
#include "gpu/expr/functions.h"
#include "gpu/kernels/params/flex_lists.h"
#include "gpu/kernels/params/hopper_backward.h"
#include "gpu/kernels/params/hopper_forward.h"
#include "gpu/kernels/params/memeff_backward.h"
#include "gpu/kernels/registry/flex.h"
#include "gpu/kernels/registry/flex_lists.h"
#include "gpu/kernels/registry/hopper_backward.h"
#include "gpu/kernels/registry/hopper_forward.h"

#include <string.h>

static fa_flex_interpreter *interpreter;
static fa_simt_range lent[FA_MAX_CAPTURES];
static int n_lent;

fa_status fake_flex_begin(const fa_problem *p, const fa_tensors *t, fa_error *err) {
  fa_args_flex x;
  const void *buffer[FA_MAX_CAPTURES];
  bool wanted[FA_MAX_CAPTURES];
  fake_flex_end();
  if (p->family != FA_FLEX) return FA_OK;
  fa_status status = fa_args_flex_make(p, &x, err);
  if (status != FA_OK) return status;
  for (int k = 0; k < FA_MAX_CAPTURES; ++k) {
    buffer[k] = t->t[FA_T_BUFFER_0 + k].data;
    wanted[k] = t->t[FA_T_DBUFFER_0 + k].data != NULL;
    const fa_buffer *b = &t->buffer[FA_T_BUFFER_0 + k];
    if (b->base)
      lent[n_lent++] = (fa_simt_range){"captured buffer", fa_buffer_payload(b), b->bytes, false, NULL};
  }
  const fa_flex_program *e = x.program;
  status = fa_flex_interpreter_make(e ? &e->score : NULL, e ? &e->mask : NULL, e ? e->buffer : NULL,
                                    e ? e->n_buffers : 0, buffer, wanted, &interpreter, err);
  fa_args_flex_free(&x);
  return status;
}

void fake_flex_end(void) {
  fa_flex_interpreter_free(interpreter);
  interpreter = NULL;
  n_lent = 0;
}

int fake_flex_ranges(fa_simt_range *out) {
  memcpy(out, lent, sizeof *out * (size_t)n_lent);
  return n_lent;
}

/* ---- kernels ---- */

static fa_simt_kernel find_forward(const char *name) {
  static const fa_dtype dtypes[] = {FA_F32, FA_F16, FA_BF16};
  static const fa_kernel_device small = {.max_shared_bytes = 99 << 10};
  for (int i = 0; i < 3 * 40 * 2; ++i) {
    const int dim = 8 * (i / 6 + 1);
    const fa_kernel *k = fa_flex_forward_find(dtypes[i % 3], dim, dim, i / 3 % 2 ? &small : NULL);
    if (k && strcmp(k->name, name) == 0) return k->entry;
  }
  return NULL;
}

static fa_simt_kernel find_backward(const char *name) {
  static const fa_dtype dtypes[] = {FA_F32, FA_F16, FA_BF16};
  for (int i = 0; i < 6; ++i) {
    const fa_flex_backward_kernels *b =
        i < 3 ? fa_flex_backward_find(dtypes[i]) : fa_flex_backward_find_short(dtypes[i - 3]);
    const fa_kernel_entry all[] = {b->clear.entry,   b->prepare.entry, b->keys.entry,
                                   b->queries.entry, b->dbias.entry,   b->round.entry};
    for (int n = 0; n < 6; ++n)
      if (all[n].name && strcmp(all[n].name, name) == 0) return all[n].entry;
  }
  return NULL;
}

static fa_simt_kernel find_hopper(const char *name) {
  static const fa_kernel_device any = {.max_shared_bytes = SIZE_MAX, .hopper = 132};
  for (int i = 0; i < 64; ++i) {
    const int dim = 8 * (i / 2 + 1);
    const fa_kernel_ability wanted = {.bf16 = i % 2, .head_dim = dim, .narrow = dim};
    const fa_kernel *const found[] = {fa_hopper_flex_forward_find(wanted, &any),
                                      fa_hopper_flex_backward_find(wanted, 0, &any),
                                      fa_hopper_flex_backward_find(wanted, 1, &any)};
    for (int n = 0; n < 3; ++n)
      if (found[n] && strcmp(found[n]->name, name) == 0) return found[n]->entry;
  }
  return NULL;
}

fa_simt_kernel fake_flex_entry(const char *name) {
  for (int i = 0; i < 4; ++i) {
    const fa_kernel_entry *lists = fa_flex_lists_find((fa_flex_lists_kernel)i);
    if (strcmp(lists->name, name) == 0) return lists->entry;
  }
  fa_simt_kernel entry = find_forward(name);
  if (!entry) entry = find_backward(name);
  return entry ? entry : find_hopper(name);
}

/* ---- parameters ---- */

static const void *with_functions(const void *params, size_t size, size_t functions_at) {
  static union {
    char bytes[8192];
    fa_hopper_backward_params aligned;
  } copy;
  static const fa_flex_functions none;
  const fa_flex_functions *f = interpreter ? fa_flex_interpreter_functions(interpreter) : &none;
  FA_ASSERT(size <= sizeof copy);
  memcpy(&copy, params, size);
  memcpy(copy.bytes + functions_at, &f, sizeof f);
  return &copy;
}

#define WITH_FUNCTIONS(type, member)                                                                         \
  with_functions(params, sizeof(type), offsetof(type, member) + offsetof(fa_flex_args, functions))

const void *fake_flex_params(const char *name, const void *params) {
  if (strcmp(name, "flex_mask_map") == 0) return WITH_FUNCTIONS(fa_flex_lists_params, call.flex);
  if (strncmp(name, "flex_forward", 12) == 0) return WITH_FUNCTIONS(fa_attention_params, flex);
  if (strncmp(name, "flex_backward", 13) == 0) return WITH_FUNCTIONS(fa_memeff_backward_params, forward.flex);
  if (strncmp(name, "hopper_flex_backward", 20) == 0)
    return WITH_FUNCTIONS(fa_hopper_backward_params, b.forward.flex);
  if (strncmp(name, "hopper_flex", 11) == 0) return WITH_FUNCTIONS(fa_hopper_params, f.flex);
  return params;
}
