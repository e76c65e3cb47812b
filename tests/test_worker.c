/* The pool of workers: results in order whoever is late, and workers that end side by side. What becomes of
 * those that crash, hang or are killed: test_cli.sh, test_campaign.sh. */
#include "fuzz/worker.h"
#include "report/progress.h"
#include "tests/check.h"

#include <unistd.h>

enum { N_WORKERS = 6, N_ITEMS = 20, SLOW_US = 200000 };

typedef struct seen {
  int64_t next, n_done;
  bool in_order;
  double last_done;
} seen;

static bool next_item(void *ctx, int64_t *item) {
  seen *s = ctx;
  *item = s->next;
  return s->next++ < N_ITEMS;
}

/* Stands for the memory and the context that a process gives back when it ends. */
static ssize_t write_slowly(void *ctx, const char *bytes, size_t n) {
  (void)ctx, (void)bytes;
  usleep(SLOW_US);
  return (ssize_t)n;
}

static void run_item(void *ctx, int64_t item, fa_result *out) {
  static FILE *slow;
  (void)ctx;
  if (!slow) {
    slow = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_slowly});
    if (slow) fputc('x', slow); /* in its buffer until the worker's end */
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
  return ++s->n_done <= N_ITEMS;
}

static void tick(void *ctx) {
  (void)ctx;
}

int main(void) {
  seen s = {.in_order = true};
  fa_error err = {""};
  int interrupted = 0;
  const fa_pool_config config = {.n_workers = N_WORKERS,
                                 .timeout_s = 60,
                                 .ctx = &s,
                                 .next = next_item,
                                 .run = run_item,
                                 .identify = identify,
                                 .done = done,
                                 .tick = tick};
  CHECK(fa_pool_run(&config, &interrupted, &err) == FA_OK && interrupted == 0);
  CHECK(s.in_order && s.n_done == N_ITEMS);
  const double took = fa_seconds_now() - s.last_done;
  CHECK_MSG(took >= 1e-6 * SLOW_US && took < 5e-6 * SLOW_US, "%d workers took %.2f s to end", N_WORKERS,
            took);
  return check_done();
}
