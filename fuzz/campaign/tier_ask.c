#include "fuzz/campaign/tier_ask.h"

#include "fuzz/generate/draw.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned able(void *ctx, const fa_problem *p) {
  const fa_subject *subject = ctx;
  char why[256];
  return subject->backend->supports(subject->self, p, why, sizeof why);
}

/* A case that the subject has to refuse is for it to refuse. */
static bool suits(fa_subject *subject, const fa_case *c) {
  return c->expect == FA_EXPECT_REJECT || (able(subject, &c->problem) & FA_PASS_FORWARD);
}

static void ask_named(fa_subject *subject, const fa_case_list *list, fa_tier_answers *a) {
  for (int64_t i = 0; i < list->n; ++i)
    if (!a->able[i]) a->able[i] = suits(subject, &list->v[i]);
}

static int64_t choose_draw(fa_drawing *d, const char *profile, uint64_t seed, int64_t index, bool as_drawn) {
  int64_t draw = 0;
  fa_case c;
  if (!as_drawn && fa_drawing_choose(d, profile, seed, index, &draw, NULL) != FA_OK) return -1;
  if (fa_generate_draw(profile, seed, index, draw, &c, NULL) != FA_OK) return -1;
  const bool good = suits(d->ctx, &c);
  fa_case_free(&c);
  return good ? draw : -1;
}

static void ask_profiles(const fa_session *s, fa_subject *subject, uint64_t seed, fa_tier_answers *a) {
  static fa_drawing d;
  d = (fa_drawing){.able = able, .ctx = subject};
  for (int p = 0; fa_generate_profiles[p].name; ++p)
    for (int k = 0; k < FA_TIER_SAMPLE; ++k)
      a->draw[p][k] = choose_draw(&d, fa_generate_profiles[p].name, seed, k, s->cli->as_drawn);
}

/* In the process of its own. */
static void ask(fa_session *s, const fa_case_list *list, uint64_t seed, bool profiles, fa_tier_answers *a) {
  fa_error ignored;
  for (int b = 0; b < s->n_choices; ++b) {
    if (fa_session_open_backend(s, 0, b, &ignored) != FA_OK) continue;
    fa_subject subject = {s->choice[b].backend, s->lane->self[b], s->rules};
    ask_named(&subject, list, a);
    if (b == 0 && profiles) ask_profiles(s, &subject, seed, a);
    s->choice[b].backend->close(s->lane->self[b]);
  }
}

static void forget_answers(const fa_case_list *list, fa_tier_answers *a) {
  for (int64_t i = 0; i < list->n; ++i) a->able[i] = true;
  for (int p = 0; fa_generate_profiles[p].name; ++p)
    for (int k = 0; k < FA_TIER_SAMPLE; ++k) a->draw[p][k] = 0;
}

fa_status fa_tier_ask(fa_session *s, const fa_case_list *list, uint64_t seed, bool profiles,
                      fa_tier_answers *out, fa_error *err) {
  const size_t draws = FA_DRAWING_PROFILES * sizeof *out->draw;
  int wait_status = 0;
  out->bytes = draws + (size_t)list->n + 1;
  void *memory = mmap(NULL, out->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  out->draw = memory;
  out->able = (bool *)((char *)memory + draws);
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    ask(s, list, seed, profiles, out);
    _exit(0);
  }
  while (pid > 0 && waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {}
  if (pid > 0 && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) return FA_OK;
  fputs("fa-verify: --tier: the subject died when it was asked what it can run; it is taken to run "
        "everything\n",
        stderr);
  forget_answers(list, out);
  return FA_OK;
}

void fa_tier_forget(fa_tier_answers *a) {
  munmap(a->draw, a->bytes);
}
