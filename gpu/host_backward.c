#include "gpu/host_backward.h"

#include "cases/tensor_guard.h"
#include "gpu/args.h"
#include "gpu/fa_check.h"
#include "gpu/fa_plan_backward.h"
#include "gpu/simt/simt.h"

#include <stdio.h>
#include <stdlib.h>

fa_status fa_host_device_parse(const char *arg, fa_host_device *out, fa_error *err) {
  *out = (fa_host_device){.limits = {.max_shared_bytes = 227 * 1024}, .n_processors = 3};
  for (const char *at = arg ? arg : ""; *at;) {
    int n = 0, end = 0;
    if (sscanf(at, "shared=%d%n", &n, &end) == 1 && n > 0 && n <= 227)
      out->limits.max_shared_bytes = (size_t)n * 1024;
    else if (sscanf(at, "processors=%d%n", &n, &end) == 1 && n > 0 && n <= 4096)
      out->n_processors = n;
    else
      end = 0;
    if (end == 0 || (at[end] && at[end] != ','))
      return fa_fail(err, FA_ERR_INPUT,
                     "backend host takes shared=KIB (1 to 227) and processors=N (1 to 4096), got \"%s\"",
                     arg);
    at += end + (at[end] == ',');
  }
  return FA_OK;
}

bool fa_host_backward_supports(const fa_problem *p, const fa_host_device *d, char *why_not, size_t size) {
  fa_attention a;
  fa_error err = {""};
  const char *clause = fa_args_problem(p, &a);
  const bool can = !clause && fa_attention_check_problem(&a, &err) == FA_OK &&
                   fa_backward_supported(&a, &d->limits, &err) == FA_OK;
  snprintf(why_not, size, "%s", can ? "" : clause ? clause : err.text);
  return can;
}

/* What the kernels of the pass may touch; only the gradients and the workspace may they write. */
static int fill_ranges(const fa_tensors *t, const fa_buffer *workspace, uint8_t *written,
                       fa_simt_range *ranges) {
  int n = 0;
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (t->buffer[i].base)
      ranges[n++] =
          (fa_simt_range){.name = fa_tensor_id_name((fa_tensor_id)i),
                          .begin = t->buffer[i].base + FA_GUARD_BYTES,
                          .bytes = t->buffer[i].bytes,
                          .writable = i == FA_T_DQ || i == FA_T_DK || i == FA_T_DV || i == FA_T_DBIAS};
  ranges[n++] = (fa_simt_range){.name = "workspace",
                                .begin = fa_buffer_payload(workspace),
                                .bytes = workspace->bytes,
                                .writable = true,
                                .written = written};
  return n;
}

static fa_status launch_all(const fa_backward_plan *plan, const fa_tensors *t, const fa_buffer *workspace,
                            uint8_t *written, const fa_run_options *opt, fa_outcome *out, fa_error *err) {
  fa_simt_range ranges[FA_T_COUNT + 1];
  const int n_ranges = fill_ranges(t, workspace, written, ranges);
  for (int i = 0; i < plan->n_launches; ++i) {
    const fa_backward_launch *l = &plan->launch[i];
    const fa_simt_launch launch = {.kernel = l->kernel.entry,
                                   .params = fa_backward_plan_params(plan, i),
                                   .name = l->kernel.name,
                                   .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                   .block = {l->n_threads, 1, 1},
                                   .shared_bytes = l->shared_bytes,
                                   .ranges = ranges,
                                   .n_ranges = n_ranges,
                                   .schedule_seed = opt->schedule_seed,
                                   .tape = opt->tape,
                                   .tape_bytes = opt->tape_bytes,
                                   .n_threads = opt->n_threads};
    fa_simt_report report;
    const fa_status status = fa_simt_run(&launch, &report, err);
    if (status != FA_OK) return status;
    out->state = report.state;
    snprintf(out->text, sizeof out->text, "%s", report.text);
    if (report.state != FA_SUBJECT_OK) break;
  }
  return FA_OK;
}

fa_status fa_host_backward_run(const fa_problem *p, const fa_host_device *d, fa_tensors *t,
                               const fa_run_options *opt, fa_outcome *out, fa_error *err) {
  fa_attention a;
  fa_gradients g;
  fa_backward_plan plan;
  fa_error refused = {""};
  const char *why = fa_args_tensors(p, t, &a);
  if (!why) why = fa_args_gradients(p, t, &g);
  if (!why && fa_backward_plan_make(&a, &g, &d->limits, d->n_processors, &plan, &refused) != FA_OK)
    why = refused.text;
  if (why) {
    out->state = FA_SUBJECT_REJECTED;
    snprintf(out->text, sizeof out->text, "%s", why);
    return FA_OK;
  }
  fa_buffer workspace;
  fa_status status = fa_buffer_alloc(&workspace, plan.workspace_bytes, err);
  if (status != FA_OK) return status;
  /* nobody promises zeros: what is read before it was written must show */
  fa_buffer_fill(&workspace, opt->schedule_seed % 2 ? FA_PATTERN_POISON_B : FA_PATTERN_POISON_A);
  fa_backward_plan_place(&plan, fa_buffer_payload(&workspace));
  uint8_t *written = calloc(workspace.bytes / 4 + 1, 1);
  status = written ? launch_all(&plan, t, &workspace, written, opt, out, err)
                   : fa_fail(err, FA_ERR_MEMORY, "backend host: out of memory");
  free(written);
  fa_buffer_free(&workspace);
  return status;
}
