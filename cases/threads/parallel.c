/* A queue of items for a few threads. Threads live for one call, and small calls start none. */
#include "cases/threads/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct fa_team {
  atomic_llong next;
  int64_t n_items;
  void (*work)(void *context, int thread, int64_t item);
  void *context;
} fa_team;

typedef struct fa_member {
  fa_team *team;
  int thread;
} fa_member;

static void *member_run(void *arg) {
  fa_member *m = arg;
  fa_team *t = m->team;
  for (;;) {
    int64_t item = atomic_fetch_add(&t->next, 1);
    if (item >= t->n_items) return NULL;
    t->work(t->context, m->thread, item);
  }
}

void fa_parallel(int n_threads, int64_t n_items, void (*work)(void *context, int thread, int64_t item),
                 void *context) {
  enum { MAX_THREADS = 256 };
  fa_team team = {.n_items = n_items, .work = work, .context = context};
  pthread_t id[MAX_THREADS];
  fa_member member[MAX_THREADS];
  if (n_threads > MAX_THREADS) n_threads = MAX_THREADS;
  if (n_threads > n_items) n_threads = (int)n_items;
  int n_started = 0;
  for (int t = 1; t < n_threads; ++t) {
    member[t] = (fa_member){&team, t};
    if (pthread_create(&id[n_started], NULL, member_run, &member[t]) != 0) break; /* fewer threads do it */
    ++n_started;
  }
  member[0] = (fa_member){&team, 0};
  member_run(&member[0]);
  for (int t = 0; t < n_started; ++t) pthread_join(id[t], NULL);
}
