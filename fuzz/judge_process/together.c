#include "fuzz/judge_process/together.h"

/* ---- launches ---- */

static void skip_to_strand(fa_judge_call *c, int strand) {
  const fa_judge_steps *s = &c->steps;
  const int end = s->n_before + s->n_launches;
  while (c->next[strand] < end && s->step[c->next[strand]].strand != strand) ++c->next[strand];
}

static const fa_judge_step *next_of(const fa_judge_call *c, int strand) {
  const int at = c->next[strand];
  return at < c->steps.n_before + c->steps.n_launches ? &c->steps.step[at] : NULL;
}

/* The kernel that a call comes to first, of those that any strand comes to next; FA_JUDGE_N_KERNELS: all are done. */
static fa_judge_kernel next_kernel(fa_judge_call *const *calls, int n) {
  fa_judge_kernel first = FA_JUDGE_N_KERNELS;
  for (int i = 0; i < n; ++i)
    for (int strand = 0; strand < 2; ++strand) {
      const fa_judge_step *s = next_of(calls[i], strand);
      if (s && s->command.kernel < first) first = s->command.kernel;
    }
  return first;
}

/* A strand's next launches, as far as they are this kernel's and need not wait for one another. */
static void take_tasks(fa_judge_call *c, int strand, fa_judge_kernel kernel, fa_judge_task *tasks, int *n) {
  const fa_judge_step *s = next_of(c, strand);
  for (bool first = true; s && s->command.kernel == kernel && (first || s->beside); first = false) {
    if (*n == FA_JUDGE_MOST_TASKS) return;
    tasks[(*n)++] = (fa_judge_task){(const fa_judge_job *)(c->there + s->job), s->items};
    ++c->next[strand];
    skip_to_strand(c, strand);
    s = next_of(c, strand);
  }
}

static fa_status launch_all(const fa_judge_machine *m, fa_judge_call *const *calls, int n, fa_error *err) {
  fa_judge_task tasks[FA_JUDGE_MOST_TASKS];
  fa_status status = FA_OK;
  for (fa_judge_kernel k; status == FA_OK && (k = next_kernel(calls, n)) < FA_JUDGE_N_KERNELS;) {
    int n_tasks = 0;
    for (int i = 0; i < n; ++i)
      for (int strand = 0; strand < 2; ++strand) take_tasks(calls[i], strand, k, tasks, &n_tasks);
    status = m->launch_all(m->self, k, tasks, n_tasks, err);
  }
  return status;
}

/* ---- what comes before and after ---- */

static fa_status prepare(const fa_judge_machine *m, const fa_judge_call *c, const fa_judge_command *one,
                         fa_error *err) {
  return one->what == FA_JUDGE_UPLOAD
             ? m->upload(m->self, one->machine, c->shared + one->shared, one->bytes, err)
             : m->clear(m->self, one->machine, one->bytes, err);
}

static fa_status begin(const fa_judge_machine *m, fa_judge_call *c, fa_error *err) {
  fa_status status = FA_OK;
  if (c->steps.n_launches > 0) status = m->upload(m->self, c->there, c->list, c->bytes, err);
  for (int i = 0; status == FA_OK && i < c->steps.n_before; ++i)
    status = prepare(m, c, &c->steps.step[i].command, err);
  for (int strand = 0; strand < 2; ++strand) {
    c->next[strand] = c->steps.n_before;
    skip_to_strand(c, strand);
  }
  return status;
}

static fa_status end(const fa_judge_machine *m, const fa_judge_call *c, fa_error *err) {
  if (c->steps.n == 0) return FA_OK;
  const fa_judge_command *one = &c->steps.step[c->steps.n - 1].command;
  if (one->what != FA_JUDGE_DOWNLOAD) return FA_OK;
  return m->fetch(m->self, c->shared + one->shared, one->machine, one->bytes, err);
}

fa_status fa_judge_run_together(const fa_judge_machine *m, fa_judge_call *const *calls, int n,
                                fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < n; ++i) status = begin(m, calls[i], err);
  if (status == FA_OK) status = launch_all(m, calls, n, err);
  for (int i = 0; status == FA_OK && i < n; ++i) status = end(m, calls[i], err);
  return status == FA_OK ? m->wait(m->self, err) : status;
}

/* Step by step. */
static fa_status follow(const fa_judge_machine *m, fa_judge_call *c, fa_error *err) {
  fa_status status = begin(m, c, err);
  for (int i = c->steps.n_before; status == FA_OK && i < c->steps.n; ++i) {
    const fa_judge_step *s = &c->steps.step[i];
    const fa_judge_task task = {(const fa_judge_job *)(c->there + s->job), s->items};
    if (s->command.what == FA_JUDGE_LAUNCH)
      status = m->launch_all(m->self, s->command.kernel, &task, 1, err);
    else if (s->command.what != FA_JUDGE_DOWNLOAD)
      status = prepare(m, c, &s->command, err);
  }
  if (status == FA_OK) status = end(m, c, err);
  return status == FA_OK ? m->wait(m->self, err) : status;
}

fa_status fa_judge_run_alone(const fa_judge_machine *m, fa_judge_call *call, fa_error *err) {
  return call->steps.in_order ? follow(m, call, err) : fa_judge_run_together(m, &call, 1, err);
}
