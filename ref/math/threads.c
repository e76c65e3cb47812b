/* A queue of items for a few threads. Threads live for one call, and small calls start none. */
#include "ref/math/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

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

void fa_ref_parallel(int n_threads, int64_t n_items, void (*work)(void *context, int thread, int64_t item),
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

struct fa_ref_order {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int64_t *n_done;
};

fa_ref_order *fa_ref_order_new(int64_t n_queues) {
  fa_ref_order *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->n_done = calloc((size_t)n_queues + 1, sizeof *t->n_done);
  if (!t->n_done) {
    free(t);
    return NULL;
  }
  pthread_mutex_init(&t->mutex, NULL);
  pthread_cond_init(&t->changed, NULL);
  return t;
}

void fa_ref_order_free(fa_ref_order *t) {
  if (!t) return;
  pthread_mutex_destroy(&t->mutex);
  pthread_cond_destroy(&t->changed);
  free(t->n_done);
  free(t);
}

void fa_ref_order_wait(fa_ref_order *t, int64_t queue, int64_t turn) {
  pthread_mutex_lock(&t->mutex);
  while (t->n_done[queue] < turn) pthread_cond_wait(&t->changed, &t->mutex);
  pthread_mutex_unlock(&t->mutex);
}

void fa_ref_order_done(fa_ref_order *t, int64_t queue) {
  pthread_mutex_lock(&t->mutex);
  ++t->n_done[queue];
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->mutex);
}
