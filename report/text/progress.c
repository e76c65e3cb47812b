#include "report/text/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

double fa_seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void fa_progress_init(fa_progress *p, bool allowed, bool verbose) {
  *p = (fa_progress){.total = -1, .started = fa_seconds_now()};
  p->last_drawn = p->started;
  p->terminal = allowed && isatty(STDERR_FILENO);
  p->plain = allowed && verbose && !p->terminal;
}

void fa_progress_note(fa_progress *p, const fa_result *r) {
  if (r->state == FA_PASS && isfinite(r->worst_ratio) && r->worst_ratio > p->worst) p->worst = r->worst_ratio;
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size, const char *format, ...) {
  size_t n = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + n, size - n, format, args);
  va_end(args);
}

static void append_bar(char *text, size_t size, double part) {
  enum { WIDTH = 20 };
  int filled = part >= 1 ? WIDTH : part > 0 ? (int)(WIDTH * part) : 0;
  append(text, size, "[%.*s%.*s] ", filled, "####################", WIDTH - filled, "                    ");
}

/* Three digits of a slow rate, whole cases of a fast one: %g alone would write a thousand a second as 1e+03. */
static void append_rate(char *text, size_t size, double rate) {
  append(text, size, rate < 999.5 ? "  %.3g/s" : "  %.0f/s", rate);
}

void fa_progress_text(const fa_progress *p, const fa_summary *s, double now, char *text, size_t size) {
  double here = now - p->started, elapsed = p->spent + here;
  text[0] = 0;
  if (p->total > 0)
    append_bar(text, size, (double)s->total / (double)p->total);
  else if (p->limit > 0)
    append_bar(text, size, elapsed / p->limit);
  append(text, size, "%lld", (long long)s->total);
  if (p->total > 0) append(text, size, "/%lld", (long long)p->total);
  append(text, size, " cases  %.0f", elapsed);
  if (p->limit > 0) append(text, size, "/%.0f", p->limit);
  append(text, size, " s");
  if (here > 0 && s->total > p->n_resumed) append_rate(text, size, (double)(s->total - p->n_resumed) / here);
  append(text, size, "  passed:%lld failed:%lld skipped:%lld", (long long)s->passed, (long long)s->failed,
         (long long)s->skipped);
  if (s->error) append(text, size, " error:%lld", (long long)s->error);
  if (s->waived > s->known) append(text, size, " waived:%lld", (long long)(s->waived - s->known));
  if (s->known) append(text, size, " known:%lld", (long long)s->known);
  if (p->worst > 0) append(text, size, "  worst r=%.3g", p->worst);
  if (p->profile) append(text, size, "  %s", p->profile);
}

void fa_progress_show(fa_progress *p, const fa_summary *s) {
  double now = fa_seconds_now();
  char text[512];
  if (!p->terminal && !p->plain) return;
  if (now - p->last_drawn < (p->terminal ? 0.1 : FA_PROGRESS_PLAIN_SECONDS)) return;
  p->last_drawn = now;
  fa_progress_text(p, s, now, text, sizeof text);
  if (p->terminal) {
    struct winsize window;
    int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 ? window.ws_col - 1 : 79;
    fprintf(stderr, "\r\033[K%.*s", width, text);
    p->drawn = true;
  } else {
    fprintf(stderr, "%s\n", text);
  }
  fflush(stderr);
}

void fa_progress_clear(fa_progress *p) {
  if (!p->drawn) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  p->drawn = false;
}
