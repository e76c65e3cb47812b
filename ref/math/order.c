#include "ref/math/order.h"

#include <pthread.h>
#include <stdlib.h>

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
