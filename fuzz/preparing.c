#include "fuzz/preparing.h"

static void *prepare(void *arg) {
  const fa_preparing *p = arg;
  p->backend->prepare(p->self);
  return NULL;
}

void fa_preparing_begin(fa_preparing *p, const fa_backend *backend, void *self) {
  if (p->running || !backend->prepare) return;
  p->backend = backend;
  p->self = self;
  p->running = pthread_create(&p->thread, NULL, prepare, p) == 0;
}

void fa_preparing_wait(fa_preparing *p) {
  if (!p || !p->running) return;
  pthread_join(p->thread, NULL);
  p->running = false;
}
