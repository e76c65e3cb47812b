#include "tests/fake_cuda/flex.h"

#include "cases/tensors/guard.h"
#include "gpu/args/problem.h"
#include "gpu/expr/functions.h"
#include "gpu/kernels/params/flex.h"
#include "gpu/kernels/params/tensor_map.h"

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

/* ---- parameters ---- */

const void *fake_flex_params(const fa_kernel *kernel, const void *params) {
  static union {
    char bytes[8192];
    fa_tensor_map aligned;
  } copy;
  static const fa_flex_functions none;
  const fa_flex_functions *f = interpreter ? fa_flex_interpreter_functions(interpreter) : &none;
  if (!kernel->ability.flex) return params;
  FA_ASSERT(kernel->params_bytes <= sizeof copy && kernel->flex_at >= 0);
  memcpy(&copy, params, kernel->params_bytes);
  memcpy(copy.bytes + kernel->flex_at + offsetof(fa_flex_args, functions), &f, sizeof f);
  return &copy;
}
