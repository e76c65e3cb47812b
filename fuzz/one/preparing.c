#include "fuzz/one/preparing.h"

/* Those of one process have one turn together: the first opens what all of them use, and the others need not wait for other
 * processes again. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static bool had_turn;

static void *prepare(void *arg) {
  const fa_preparing *p = arg;
  pthread_mutex_lock(&one_at_a_time);
  const bool waits = p->turns && !had_turn;
  const int turn = waits ? fa_process_slots_acquire(p->turns, p->patience_s) : -1;
  p->backend->prepare(p->self);
  if (waits) fa_process_slots_release(p->turns, turn);
  had_turn |= waits;
  pthread_mutex_unlock(&one_at_a_time);
  return NULL;
}

void fa_preparing_begin(fa_preparing *p, const fa_backend *backend, void *self, const fa_process_slots *turns,
                        double patience_s) {
  if (p->running || !backend->prepare) return;
  *p = (fa_preparing){.backend = backend, .self = self, .turns = turns, .patience_s = patience_s};
  p->running = pthread_create(&p->thread, NULL, prepare, p) == 0;
}

void fa_preparing_wait(fa_preparing *p) {
  if (!p || !p->running) return;
  pthread_join(p->thread, NULL);
  p->running = false;
}
