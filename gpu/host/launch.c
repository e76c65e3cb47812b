#include "gpu/host/launch.h"

#include "gpu/kernels/registry/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_host_scratch_alloc(size_t bytes, const fa_run_options *opt, fa_host_scratch *out,
                                fa_error *err) {
  memset(out, 0, sizeof *out);
  const fa_status status = fa_buffer_alloc(&out->buffer, bytes, err);
  if (status != FA_OK) return status;
  fa_buffer_fill(&out->buffer, opt->schedule_seed % 2 ? FA_PATTERN_POISON_B : FA_PATTERN_POISON_A);
  out->written = calloc(out->buffer.bytes / 4 + 1, 1);
  if (out->written) return FA_OK;
  fa_host_scratch_free(out);
  return fa_fail(err, FA_ERR_MEMORY, "backend host: out of memory");
}

void fa_host_scratch_free(fa_host_scratch *s) {
  free(s->written);
  s->written = NULL;
  fa_buffer_free(&s->buffer);
}

static int fill_ranges(const fa_launch *l, const fa_tensors *t, const fa_host_scratch *scratch,
                       fa_simt_range *ranges) {
  int n = 0;
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (t->buffer[i].base)
      ranges[n++] = (fa_simt_range){.name = fa_tensor_id_name((fa_tensor_id)i),
                                    .begin = t->buffer[i].base + FA_GUARD_BYTES,
                                    .bytes = t->buffer[i].bytes,
                                    .writable = (l->writes & FA_WRITES(i)) != 0};
  if (l->writes & FA_WRITES_WORKSPACE)
    ranges[n++] = (fa_simt_range){.name = "workspace",
                                  .begin = fa_buffer_payload(&scratch->buffer),
                                  .bytes = scratch->buffer.bytes,
                                  .writable = true,
                                  .written = scratch->written};
  fa_args_drop *const drop = scratch->drop;
  if (!drop) return n;
  ranges[n++] = (fa_simt_range){.name = "dropout_seed_at and dropout_offset_at",
                                .begin = (char *)&drop->seed,
                                .bytes = offsetof(fa_args_drop, used)};
  ranges[n++] = (fa_simt_range){.name = "dropout_used",
                                .begin = (char *)drop->used,
                                .bytes = sizeof drop->used,
                                .writable = (l->writes & FA_WRITES_DROPOUT_USED) != 0};
  return n;
}

/* After a launch whose blocks took their tiles off a counter: it has to be 0 again, for the launch that gets
 * it next. */
static void check_counter(const fa_launch *l, fa_outcome *out) {
  if (!l->counter || *l->counter < 0) return;
  const unsigned left = fa_hopper_host_counter_left(*l->counter);
  if (left == 0 || out->state != FA_SUBJECT_OK) return; /* who broke a rule was stopped anywhere */
  out->state = FA_SUBJECT_OOB;
  snprintf(out->text, sizeof out->text,
           "%s left its counter of tiles at %u, not 0: the next launch that gets it leaves out as many",
           l->kernel.name, left);
}

static fa_status run_launch(const fa_launch *l, const fa_tensors *t, const fa_host_scratch *scratch,
                            const fa_run_options *opt, fa_outcome *out, fa_error *err) {
  fa_simt_range ranges[FA_T_COUNT + 3];
  fa_simt_report report;
  if (l->counter && opt->schedule_seed % 2) *l->counter = fa_hopper_host_counter();
  const fa_simt_launch launch = {.kernel = l->kernel.entry,
                                 .params = l->params,
                                 .name = l->kernel.name,
                                 .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                 .block = {l->n_threads, 1, 1},
                                 .shared_bytes = l->shared_bytes,
                                 .cluster = l->cluster,
                                 .ranges = ranges,
                                 .n_ranges = fill_ranges(l, t, scratch, ranges),
                                 .schedule_seed = opt->schedule_seed,
                                 .tape = opt->tape,
                                 .tape_bytes = opt->tape_bytes,
                                 .n_threads = opt->n_threads,
                                 .overlaps = l->overlaps,
                                 .adds_in_order = l->adds_in_order};
  const fa_status status = fa_simt_run(&launch, &report, err);
  if (status != FA_OK) return status;
  out->state = report.state;
  fa_work_add(&out->work, &report.work);
  snprintf(out->text, sizeof out->text, "%s", report.text);
  check_counter(l, out);
  return FA_OK;
}

fa_status fa_host_run_plan(const fa_plan *plan, const fa_tensors *t, const fa_host_scratch *scratch,
                           const fa_run_options *opt, fa_outcome *out, fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < plan->n_launches && out->state == FA_SUBJECT_OK; ++i)
    status = run_launch(&plan->launch[i], t, scratch, opt, out, err);
  return status;
}
