#include "ref/cuda/machine.h"

#include <stdlib.h>
#include <string.h>

typedef struct host {
  fa_judge_machine machine;
  const fa_judge_function *functions;
  char *memory, *staged;
} host;

static fa_status replace(char **memory, size_t bytes, fa_error *err) {
  free(*memory);
  *memory = aligned_alloc(256, (bytes + 256) / 256 * 256);
  return *memory ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "judge: out of memory: %zu bytes", bytes);
}

/* NaN until something is written there, so that nobody lives on what happens to be there. */
static fa_status reserve(void *self, size_t bytes, char **memory, fa_error *err) {
  host *h = self;
  const fa_status status = replace(&h->memory, bytes, err);
  if (status == FA_OK) memset(h->memory, 0xff, bytes);
  *memory = h->memory;
  return status;
}

static fa_status stage(void *self, size_t bytes, char **memory, fa_error *err) {
  host *h = self;
  const fa_status status = replace(&h->staged, bytes, err);
  *memory = h->staged;
  return status;
}

static fa_status copy(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  (void)self, (void)err;
  memcpy(to, from, bytes);
  return FA_OK;
}

static fa_status clear(void *self, void *at, size_t bytes, fa_error *err) {
  (void)self, (void)err;
  memset(at, 0, bytes);
  return FA_OK;
}

static fa_status launch_all(void *self, fa_judge_kernel kernel, const fa_judge_task *tasks, int n,
                            fa_error *err) {
  const host *h = self;
  fa_judge_batch batch;
  const uint32_t blocks = fa_judge_batch_of(kernel, tasks, n, &batch);
  (void)err;
  for (uint32_t block = 0; block < blocks; ++block)
    h->functions[kernel](&batch, (const char *)tasks[0].job, block);
  return FA_OK;
}

static fa_status launch(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err) {
  const fa_judge_task task = {job, job->n};
  return launch_all(self, kernel, &task, 1, err);
}

static fa_status wait_for_nothing(void *self, fa_error *err) {
  (void)self, (void)err;
  return FA_OK;
}

fa_judge_machine *fa_judge_machine_host_new(const fa_judge_function *functions, size_t most_bytes) {
  host *h = calloc(1, sizeof *h);
  if (!h) return NULL;
  h->functions = functions ? functions : fa_judge_functions;
  h->machine = (fa_judge_machine){.self = h,
                                  .most_bytes = most_bytes ? most_bytes : (size_t)1 << 30,
                                  .reserve = reserve,
                                  .stage = stage,
                                  .upload = copy,
                                  .download = copy,
                                  .clear = clear,
                                  .launch = launch,
                                  .launch_all = launch_all,
                                  .fetch = copy,
                                  .wait = wait_for_nothing};
  return &h->machine;
}

void fa_judge_machine_host_free(fa_judge_machine *m) {
  host *h = m ? m->self : NULL;
  if (!h) return;
  free(h->memory);
  free(h->staged);
  free(h);
}

static fa_status begin(fa_error *err) {
  (void)err;
  return FA_OK;
}

static fa_status open_host(fa_judge_machine **out, fa_error *err) {
  *out = fa_judge_machine_host_new(NULL, 0);
  return *out ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
}

static void pin(fa_judge_machine *m, void *memory, size_t bytes) {
  (void)m, (void)memory, (void)bytes;
}

const fa_judge_machines fa_judge_machines_host = {
    .begin = begin, .open = open_host, .close = fa_judge_machine_host_free, .pin = pin};
