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

/* ---- as they are read ---- */

static bool is_within(const fa_judge_command *c, const fa_judge_bounds *b) {
  const uintptr_t at = (uintptr_t)c->machine, first = (uintptr_t)b->memory;
  if (at < first || at - first > b->memory_bytes || c->bytes > b->memory_bytes - (at - first)) return false;
  return c->what == FA_JUDGE_CLEAR || (c->shared <= b->used && c->bytes <= b->used - c->shared);
}

/* In the order of a list: those before launches, launches and, if need be, uploads between them, the one behind. */
static bool is_in_turn(const fa_judge_steps *s, fa_judge_what what) {
  const fa_judge_what last = s->n > 0 ? s->step[s->n - 1].command.what : FA_JUDGE_UPLOAD;
  if (what == FA_JUDGE_CLEAR) return s->n == s->n_before;
  return last != FA_JUDGE_DOWNLOAD;
}

static bool is_sound(const fa_judge_step *s, size_t left, const fa_judge_bounds *b) {
  const fa_judge_command *c = &s->command;
  if (c->what == FA_JUDGE_LAUNCH)
    return (unsigned)c->kernel < FA_JUDGE_N_KERNELS && left >= sizeof(fa_judge_job);
  return (unsigned)c->what <= FA_JUDGE_DOWNLOAD && is_within(c, b);
}

static fa_status add_step(fa_judge_steps *to, const fa_judge_step *s, fa_error *err) {
  if (to->n == to->capacity) {
    const int more = 2 * to->capacity + 64;
    fa_judge_step *larger = realloc(to->step, (size_t)more * sizeof *larger);
    if (!larger) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    to->step = larger;
    to->capacity = more;
  }
  to->step[to->n++] = *s;
  to->n_launches += s->command.what == FA_JUDGE_LAUNCH;
  const bool before = s->command.what == FA_JUDGE_UPLOAD || s->command.what == FA_JUDGE_CLEAR;
  to->n_before += before && to->n_launches == 0;
  to->in_order |= before && to->n_launches > 0;
  return FA_OK;
}

static void read_job(const char *list, fa_judge_step *s) {
  fa_judge_job job;
  memcpy(&job, list + s->job, sizeof job);
  s->items = job.n;
  s->strand = job.strand != 0;
  s->beside = job.beside;
}

fa_status fa_judge_steps_read(const char *list, size_t bytes, const fa_judge_bounds *bounds,
                              fa_judge_steps *out, fa_error *err) {
  fa_status status = FA_OK;
  out->n = out->n_before = out->n_launches = 0;
  out->in_order = false;
  for (size_t at = 0; status == FA_OK && at < bytes;) {
    fa_judge_step s = {.items = 0};
    if (bytes - at < sizeof s.command) return fa_fail(err, FA_ERR_DEVICE, "half a command of the judge");
    memcpy(&s.command, list + at, sizeof s.command);
    s.job = at += sizeof s.command;
    if (!is_sound(&s, bytes - at, bounds) || !is_in_turn(out, s.command.what))
      return fa_fail(err, FA_ERR_DEVICE, "no command of the judge");
    if (s.command.what == FA_JUDGE_LAUNCH) {
      read_job(list, &s);
      at += sizeof(fa_judge_job);
    }
    if (s.command.what != FA_JUDGE_LAUNCH || s.items > 0) status = add_step(out, &s, err);
  }
  return status;
}
