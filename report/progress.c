#include "report/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

double fa_seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void fa_progress_init(fa_progress *p, bool allowed, int64_t total) {
  *p = (fa_progress){.on = allowed && isatty(STDERR_FILENO), .total = total, .started = fa_seconds_now()};
}

void fa_progress_show(fa_progress *p, const fa_summary *s) {
  double now = fa_seconds_now();
  if (!p->on || now - p->last_drawn < 0.1) return;
  p->last_drawn = now;
  p->drawn = true;
  if (p->total > 0) {
    int filled = (int)(30 * s->total / p->total);
    fprintf(stderr, "\r\033[K[%.*s%.*s] %lld/%lld", filled, "##############################", 30 - filled,
            "                              ", (long long)s->total, (long long)p->total);
  } else {
    fprintf(stderr, "\r\033[K%lld cases", (long long)s->total);
  }
  fprintf(stderr, " failed:%lld %.0f s", (long long)s->failed, now - p->started);
  fflush(stderr);
}

void fa_progress_clear(fa_progress *p) {
  if (!p->drawn) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  p->drawn = false;
}
