#include "fuzz/judge_process/commands.h"

#include <stdlib.h>
#include <string.h>

static fa_status make_room(fa_judge_commands *list, size_t bytes, fa_error *err) {
  if (list->used + bytes <= list->capacity) return FA_OK;
  const size_t more = 2 * (list->used + bytes);
  char *larger = realloc(list->bytes, more);
  if (!larger) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  list->bytes = larger;
  list->capacity = more;
  return FA_OK;
}

fa_status fa_judge_commands_add(fa_judge_commands *list, const fa_judge_command *one, const fa_judge_job *job,
                                fa_error *err) {
  const fa_status status = make_room(list, sizeof *one + sizeof *job, err);
  if (status != FA_OK) return status;
  memcpy(list->bytes + list->used, one, sizeof *one);
  list->used += sizeof *one;
  if (!job) return FA_OK;
  memcpy(list->bytes + list->used, job, sizeof *job);
  list->used += sizeof *job;
  return FA_OK;
}

static bool is_sound(const fa_judge_command *c, size_t left, size_t used) {
  if (c->what == FA_JUDGE_LAUNCH)
    return (unsigned)c->kernel < FA_JUDGE_N_KERNELS && left >= sizeof(fa_judge_job);
  return c->what == FA_JUDGE_CLEAR || (c->shared <= used && c->bytes <= used - c->shared);
}

static fa_status run_one(const fa_judge_machine *m, const fa_judge_command *c, const char *job, char *shared,
                         fa_error *err) {
  fa_judge_job x;
  switch (c->what) {
  case FA_JUDGE_UPLOAD:
    return m->upload(m->self, c->machine, shared + c->shared, c->bytes, err);
  case FA_JUDGE_CLEAR:
    return m->clear(m->self, c->machine, c->bytes, err);
  case FA_JUDGE_LAUNCH:
    memcpy(&x, job, sizeof x);
    return m->launch(m->self, c->kernel, &x, err);
  case FA_JUDGE_DOWNLOAD:
    return m->download(m->self, shared + c->shared, c->machine, c->bytes, err);
  }
  return fa_fail(err, FA_ERR_DEVICE, "no command of the judge");
}

fa_status fa_judge_commands_run(const fa_judge_machine *m, const char *list, size_t bytes, char *shared,
                                size_t used, fa_error *err) {
  fa_status status = FA_OK;
  for (size_t at = 0; status == FA_OK && at < bytes;) {
    fa_judge_command c;
    if (bytes - at < sizeof c) return fa_fail(err, FA_ERR_DEVICE, "half a command of the judge");
    memcpy(&c, list + at, sizeof c);
    at += sizeof c;
    if (!is_sound(&c, bytes - at, used)) return fa_fail(err, FA_ERR_DEVICE, "no command of the judge");
    status = run_one(m, &c, list + at, shared, err);
    if (c.what == FA_JUDGE_LAUNCH) at += sizeof(fa_judge_job);
  }
  return status;
}
