/* The one-line progress display. It draws on stderr, only when that is a terminal, and takes itself away
 * before anything else is printed. */
#ifndef FA_REPORT_PROGRESS_H
#define FA_REPORT_PROGRESS_H

#include "report/result.h"

typedef struct fa_progress {
  bool on, drawn;
  int64_t total; /* -1: nobody knows */
  double started, last_drawn;
} fa_progress;

/* allowed: false with --no-progress or -q. */
void fa_progress_init(fa_progress *p, bool allowed, int64_t total);
/* Redraws at most ten times a second. */
void fa_progress_show(fa_progress *p, const fa_summary *s);
void fa_progress_clear(fa_progress *p);

/* Seconds of a clock that only goes forward. */
double fa_seconds_now(void);

#endif
