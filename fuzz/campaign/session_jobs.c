#include "cases/threads/processors.h"
#include "fuzz/campaign/session.h"
#include "fuzz/one/lanes.h"

/* Whether the subject works on a GPU's context, which a process of its own costs time, and several calls can. */
static bool can_have_lanes(const fa_session *s) {
  bool can = !s->cli->no_isolate && !s->rules;
  for (int b = 0; b < s->n_choices; ++b) can = can && s->choice[b].backend->lanes;
  return can;
}

int fa_session_jobs(const fa_session *s) {
  const fa_judge_choice judge = fa_judge_choice_named(s->cli->judge);
  int64_t jobs = s->cli->jobs ? s->cli->jobs : fa_processors();
  if (!s->cli->jobs && s->cli->lanes != 1 && can_have_lanes(s)) jobs *= fa_lanes_jobs(judge);
  if (jobs > 256) jobs = 256;
  if (s->item && jobs > s->n_items) jobs = s->n_items > 0 ? s->n_items : 1;
  return s->cli->no_isolate ? 1 : (int)jobs;
}

int fa_session_lanes(const fa_session *s, int jobs) {
  return can_have_lanes(s) ? fa_lanes_of(s->cli->lanes, fa_judge_choice_named(s->cli->judge), jobs) : 1;
}
