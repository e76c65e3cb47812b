/* The pool of workers: results in order, however late or long, and workers that end concurrently. Workers
 * that crash, hang or are killed: test_cli.sh, test_campaign.sh. */
#include "fuzz/workers/pool.h"
#include "report/text/progress.h"
#include "tests/support/check.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N_WORKERS = 6, N_ITEMS = 20, SLOW_US = 200000, N_MANY = 3000 };

typedef struct seen {
  int64_t next, n_items, n_done;
  atomic_int *n_run; /* shared with the workers; NULL: not counted */
  bool in_order;
  double last_done;
} seen;

static bool next_item(void *ctx, int64_t *item) {
  seen *s = ctx;
  *item = s->next;
  return s->next++ < s->n_items;
}

/* Stands for the memory and the context that a process frees when it ends. */
static ssize_t write_slowly(void *ctx, const char *bytes, size_t n) {
  (void)ctx, (void)bytes;
  usleep(SLOW_US);
  return (ssize_t)n;
}

static void run_item(void *ctx, int lane, int64_t item, fa_result *out) {
  static FILE *slow;
  (void)ctx, (void)lane;
  if (!slow) {
    slow = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_slowly});
    if (slow) fputc('x', slow); /* stays in its buffer until the worker ends */
  }
  usleep(item % 3 == 0 ? 30000 : 5000);
  out->state = slow ? FA_PASS : FA_ERROR;
  out->seconds = (double)item;
}

static void identify(void *ctx, int64_t item, fa_result *out) {
  (void)ctx, (void)item, (void)out;
}

static bool done(void *ctx, int64_t item, fa_result *r) {
  seen *s = ctx;
  s->in_order &= item == s->n_done && r->state == FA_PASS && r->seconds == (double)item;
  s->last_done = fa_seconds_now();
  return ++s->n_done <= s->n_items;
}

static void tick(void *ctx) {
  (void)ctx;
}

/* The first item waits for all others, which can proceed meanwhile. */
static void run_counted(void *ctx, int lane, int64_t item, fa_result *out) {
  seen *s = ctx;
  (void)lane;
  for (int n = 0; item == 0 && n < 3000 && atomic_load(s->n_run) < N_MANY - 1; ++n) usleep(10000);
  out->state = item > 0 || atomic_load(s->n_run) == N_MANY - 1 ? FA_PASS : FA_FAIL;
  out->seconds = (double)item;
  atomic_fetch_add(s->n_run, 1);
}

static fa_status run_pool(seen *s, void (*run)(void *, int, int64_t, fa_result *)) {
  fa_error err = {""};
  int interrupted = 0;
  const fa_pool_config config = {.n_workers = N_WORKERS,
                                 .timeout_s = 60,
                                 .ctx = s,
                                 .next = next_item,
                                 .run = run,
                                 .identify = identify,
                                 .done = done,
                                 .tick = tick};
  const fa_status status = fa_pool_run(&config, &interrupted, &err);
  CHECK(interrupted == 0);
  return status;
}

static void test_ends(void) {
  seen s = {.n_items = N_ITEMS, .in_order = true};
  CHECK(run_pool(&s, run_item) == FA_OK);
  CHECK(s.in_order && s.n_done == N_ITEMS);
  const double took = fa_seconds_now() - s.last_done;
  CHECK_MSG(took >= 1e-6 * SLOW_US && took < 5e-6 * SLOW_US, "%d workers took %.2f s to end", N_WORKERS,
            took);
}

static void test_run_ahead(void) {
  seen s = {.n_items = N_MANY, .in_order = true};
  s.n_run = mmap(NULL, sizeof *s.n_run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(s.n_run != MAP_FAILED);
  CHECK(run_pool(&s, run_counted) == FA_OK);
  CHECK(s.in_order && s.n_done == N_MANY);
}

int main(void) {
  test_ends();
  test_run_ahead();
  return check_done();
}
