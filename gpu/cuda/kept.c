#include "gpu/cuda/kept.h"

#include "gpu/kernels/registry/device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A call by its bytes; those that it does not have are not looked at. */
typedef struct key {
  unsigned generation; /* of what was learnt of the driver; 0: nothing is kept here */
  fa_call_kind kind;
  int n_processors;
  void *workspace;
  size_t workspace_bytes;
  CUdevice device;
  fa_kernel_device target;
  fa_rtc_policy policy;
  fa_attention a;
  fa_gradients g;
  fa_inference cache;
} key;

typedef struct kept {
  fa_cuda_ready ready; /* first: the caller knows it by this */
  key key;
} kept;

static bool can_be_kept(const fa_call *c) {
  if (c->kind != FA_CALL_FORWARD && c->kind != FA_CALL_BACKWARD && c->kind != FA_CALL_CACHE) return false;
  if (!c->a || c->a->flex || c->a->check_device_data || c->functions || c->lists || c->states) return false;
  return (c->kind != FA_CALL_BACKWARD || c->g) && (c->kind != FA_CALL_CACHE || c->cache);
}

static bool has_gradients(const fa_call *c) {
  return c->kind == FA_CALL_BACKWARD;
}
static bool has_cache(const fa_call *c) {
  return c->kind == FA_CALL_CACHE;
}

static bool is_it(const key *k, const fa_cuda_asked *asked) {
  const fa_call *c = asked->call;
  return k->generation == asked->generation && k->kind == c->kind && k->n_processors == c->n_processors &&
         k->workspace == c->workspace && k->workspace_bytes == asked->workspace_bytes &&
         k->device == asked->device && fa_kernel_device_same(&k->target, &asked->target) &&
         k->policy == asked->policy && memcmp(&k->a, c->a, sizeof k->a) == 0 &&
         (!has_gradients(c) || memcmp(&k->g, c->g, sizeof k->g) == 0) &&
         (!has_cache(c) || memcmp(&k->cache, c->cache, sizeof k->cache) == 0);
}

/* ---- the thread's own ---- */

static pthread_key_t ended; /* its value: the thread's places */
static bool has_ended;

static _Thread_local kept **places;

/* What else ends with the thread may still make calls: their places are new ones, freed in another round. */
static void free_places(void *data) {
  kept **of_thread = data;
  for (int i = 0; i < FA_CUDA_KEPT; ++i) free(of_thread[i]);
  free(of_thread);
  places = NULL;
}

static void make_ended(void) {
  has_ended = pthread_key_create(&ended, free_places) == 0;
}

/* A library that is gone is not called at the end of a thread; what that kept is lost. */
static void __attribute__((destructor)) forget_ended(void) {
  if (has_ended) pthread_key_delete(ended);
  has_ended = false;
}

static kept **places_of_thread(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (places) return places;
  pthread_once(&once, make_ended);
  if (!has_ended || !(places = calloc(FA_CUDA_KEPT, sizeof *places))) return NULL;
  if (pthread_setspecific(ended, places) == 0) return places;
  free(places);
  return places = NULL;
}

/* Which place: by the tensors, since it is them that differ from layer to layer. */
static unsigned place_of(const fa_call *c) {
  const void *const tensors[] = {c->a->q, c->a->o, has_gradients(c) ? c->g->dq : c->a->k,
                                 has_cache(c) ? c->cache->k_cache : c->workspace};
  uint64_t x = (uint64_t)c->kind;
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; ++i)
    x = (x ^ (uintptr_t)tensors[i]) * 0x9e3779b97f4a7c15u; /* 2^64 by the golden ratio */
  return (unsigned)(x >> 32) % FA_CUDA_KEPT;
}

/* One for a plan, which is aligned; there is nothing in it. */
static kept *make_place(void) {
  kept *place = aligned_alloc(_Alignof(kept), sizeof *place);
  if (place) place->key.generation = 0;
  return place;
}

fa_cuda_ready *fa_cuda_kept_find(const fa_cuda_asked *asked, bool *is_there) {
  *is_there = false;
  if (!can_be_kept(asked->call) || !places_of_thread()) return NULL;
  kept **const place = &places[place_of(asked->call)];
  if (!*place) *place = make_place();
  if (!*place) return NULL;
  *is_there = is_it(&(*place)->key, asked);
  if (!*is_there) (*place)->key.generation = 0;
  return &(*place)->ready;
}

void fa_cuda_kept_keep(fa_cuda_ready *place, const fa_cuda_asked *asked) {
  const fa_call *c = asked->call;
  key *k = &((kept *)place)->key;
  k->generation = asked->generation;
  k->kind = c->kind;
  k->n_processors = c->n_processors;
  k->workspace = c->workspace;
  k->workspace_bytes = asked->workspace_bytes;
  k->device = asked->device;
  k->target = asked->target;
  k->policy = asked->policy;
  memcpy(&k->a, c->a, sizeof k->a);
  if (has_gradients(c)) memcpy(&k->g, c->g, sizeof k->g);
  if (has_cache(c)) memcpy(&k->cache, c->cache, sizeof k->cache);
}
