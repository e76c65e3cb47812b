/* Runs a launch: host threads take blocks in order, and the violation with the lowest block number is
 * kept. */
#include "gpu/simt/order.h"
#include "gpu/simt/overlap.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { MAX_THREADS = 256 };

typedef struct fa_simt_grid {
  const fa_simt_launch *launch;
  fa_simt_order *order; /* NULL: none is kept */
  int64_t n_blocks;
  _Atomic int64_t next;
  _Atomic int n_working;
  _Atomic bool lets_next_start;
  _Atomic int64_t at[MAX_THREADS + 1]; /* each thread's block, or one before it */
  _Atomic int64_t stop;                /* blocks from here on need not run: an earlier one has a violation */
  pthread_mutex_t lock;
  fa_simt_report report; /* of block `stop` */
  fa_work work;
  fa_status status;
  fa_error error;
} fa_simt_grid;

static void keep(fa_simt_grid *g, int64_t index, const fa_simt_report *r) {
  pthread_mutex_lock(&g->lock);
  if (index < atomic_load(&g->stop)) {
    atomic_store(&g->stop, index);
    g->report = *r;
  }
  pthread_mutex_unlock(&g->lock);
}

static void *work(void *arg) {
  fa_simt_grid *g = arg;
  fa_simt_block b;
  fa_error err;
  const fa_status status = fa_simt_block_init(&b, g->launch, &err);
  if (status != FA_OK) {
    pthread_mutex_lock(&g->lock);
    g->status = status;
    g->error = err;
    pthread_mutex_unlock(&g->lock);
    return NULL;
  }
  b.grid = g;
  b.order = g->order;
  _Atomic int64_t *at = &g->at[atomic_fetch_add(&g->n_working, 1)];
  for (;;) {
    atomic_store(at, atomic_load(&g->next));
    const int64_t i = atomic_fetch_add(&g->next, 1);
    atomic_store(at, i);
    if (i >= atomic_load(&g->stop)) break;
    fa_simt_block_run(&b, i);
    if (b.report.state != FA_SUBJECT_OK) keep(g, i, &b.report);
  }
  atomic_store(at, INT64_MAX);
  pthread_mutex_lock(&g->lock);
  fa_work_add(&g->work, &b.work);
  pthread_mutex_unlock(&g->lock);
  fa_simt_block_free(&b);
  return NULL;
}

static bool all_before_ended(fa_simt_grid *g, int64_t index) {
  for (int i = 0; i <= MAX_THREADS; ++i)
    if (atomic_load(&g->at[i]) < index) return false;
  return true;
}

void fa_simt_release_global(unsigned *p, unsigned value) {
  fa_simt_block *b = fa_simt_current;
  if (b->order) fa_simt_order_release(b, p, value);
  __atomic_store_n(p, value, __ATOMIC_RELEASE);
}

void fa_simt_wait_global(const unsigned *p, unsigned value, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  for (;;) {
    const bool last_look = all_before_ended(b->grid, b->index);
    const unsigned is = __atomic_load_n(p, __ATOMIC_ACQUIRE);
    if (is == value) break;
    if (last_look)
      fa_simt_violation(FA_SUBJECT_DEADLOCK, at,
                        "waits until %u stands where %u does, and every block before this one has ended",
                        value, is);
    sched_yield();
  }
  if (b->order) fa_simt_order_wait(b, p, value);
}

void fa_simt_next_kernel_may_start(void) {
  fa_simt_current->grid->lets_next_start = true;
}

static fa_status check_launch(const fa_simt_launch *l, fa_error *err) {
  const uint64_t ranks = l->cluster ? l->cluster : 1;
  const uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
  if (threads == 0 || threads > FA_MAX_BLOCK_THREADS || threads % FA_WARP != 0 || threads * ranks > FA_MAX_THREADS)
    return fa_fail(err, FA_ERR_INPUT,
                   "%s: %llu threads in a block; multiples of 32 up to %d are possible, and %d in a cluster",
                   l->name, (unsigned long long)threads, FA_MAX_BLOCK_THREADS, FA_MAX_THREADS);
  if (l->grid.x == 0 || l->grid.y == 0 || l->grid.z == 0 || l->grid.x > 0x7fffffff || l->grid.y > 65535 ||
      l->grid.z > 65535)
    return fa_fail(err, FA_ERR_INPUT, "%s: grid %u x %u x %u; 1..2^31-1, 1..65535, 1..65535 are possible",
                   l->name, l->grid.x, l->grid.y, l->grid.z);
  if (ranks > FA_MAX_RANKS || l->grid.x % ranks != 0)
    return fa_fail(err, FA_ERR_INPUT,
                   "%s: clusters of %u in a grid of %u; up to %d are possible, and whole ones", l->name,
                   l->cluster, l->grid.x, FA_MAX_RANKS);
  if (l->shared_bytes > 227u << 10)
    return fa_fail(err, FA_ERR_INPUT, "%s: %zu bytes of shared memory; at most 232448", l->name,
                   l->shared_bytes);
  return FA_OK;
}

fa_status fa_simt_run(const fa_simt_launch *l, fa_simt_report *out, fa_error *err) {
  memset(out, 0, sizeof *out);
  fa_status status = check_launch(l, err);
  if (status != FA_OK) return status;
  fa_simt_grid g = {.launch = l,
                    .n_blocks = (int64_t)l->grid.x / (l->cluster ? l->cluster : 1) * l->grid.y * l->grid.z,
                    .lock = PTHREAD_MUTEX_INITIALIZER};
  if (l->adds_in_order && !(g.order = fa_simt_order_make(l)))
    return fa_fail(err, FA_ERR_MEMORY, "executor: the order of additions to %d buffers", l->n_ranges);
  g.stop = g.n_blocks;
  for (int i = 0; i <= MAX_THREADS; ++i) g.at[i] = INT64_MAX;
  pthread_t helper[MAX_THREADS];
  int n_helpers = 0;
  while (n_helpers + 1 < l->n_threads && n_helpers + 1 < g.n_blocks && n_helpers < MAX_THREADS)
    if (pthread_create(&helper[n_helpers], NULL, work, &g) == 0)
      ++n_helpers;
    else
      break; /* fewer threads only take longer */
  work(&g);
  for (int i = 0; i < n_helpers; ++i) pthread_join(helper[i], NULL);
  pthread_mutex_destroy(&g.lock);
  fa_simt_order_free(g.order);
  if (g.status != FA_OK && atomic_load(&g.next) < atomic_load(&g.stop))
    return fa_fail(err, g.status, "%s", g.error.text);
  fa_simt_end_launch(l, g.lets_next_start);
  *out = g.report;
  out->work = g.work;
  return FA_OK;
}
