#include "gpu/host/launch.h"

#include "gpu/kernels/registry/hopper_forward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(FA_T_COUNT <= 64, "a bit for every tensor");

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

static int fill_ranges(const fa_tensors *t, uint64_t writable, const fa_host_scratch *scratch,
                       fa_simt_range *ranges) {
  int n = 0;
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (t->buffer[i].base)
      ranges[n++] = (fa_simt_range){.name = fa_tensor_id_name((fa_tensor_id)i),
                                    .begin = t->buffer[i].base + FA_GUARD_BYTES,
                                    .bytes = t->buffer[i].bytes,
                                    .writable = (writable & FA_HOST_MAY_WRITE(i)) != 0};
  if (scratch)
    ranges[n++] = (fa_simt_range){.name = "workspace",
                                  .begin = fa_buffer_payload(&scratch->buffer),
                                  .bytes = scratch->buffer.bytes,
                                  .writable = true,
                                  .written = scratch->written};
  return n;
}

fa_status fa_host_launch(const fa_simt_launch *what, const fa_tensors *t, uint64_t writable,
                         const fa_host_scratch *scratch, const fa_run_options *opt, fa_outcome *out,
                         fa_error *err) {
  fa_simt_range ranges[FA_T_COUNT + 1];
  fa_simt_launch launch = *what;
  fa_simt_report report;
  launch.ranges = ranges;
  launch.n_ranges = fill_ranges(t, writable, scratch, ranges);
  launch.schedule_seed = opt->schedule_seed;
  launch.tape = opt->tape;
  launch.tape_bytes = opt->tape_bytes;
  launch.n_threads = opt->n_threads;
  const fa_status status = fa_simt_run(&launch, &report, err);
  if (status != FA_OK) return status;
  out->state = report.state;
  snprintf(out->text, sizeof out->text, "%s", report.text);
  return FA_OK;
}

void fa_host_check_counter(int counter, const char *name, fa_outcome *out) {
  if (counter < 0) return;
  const unsigned left = fa_hopper_host_counter_left(counter);
  if (left == 0 || out->state != FA_SUBJECT_OK) return; /* who broke a rule was stopped anywhere */
  out->state = FA_SUBJECT_OOB;
  snprintf(out->text, sizeof out->text,
           "%s left its counter of tiles at %u, not 0: the next launch that gets it leaves out as many", name,
           left);
}
