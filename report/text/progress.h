/* Progress of a run. On a terminal it is one line on stderr, redrawn in place and removed before anything
 * else is printed. Otherwise, if requested, it is a line now and then. */
#ifndef FA_REPORT_PROGRESS_H
#define FA_REPORT_PROGRESS_H

#include "report/result.h"

typedef struct fa_progress {
  bool terminal, plain; /* how to show it; neither: not at all */
  bool drawn;
  int64_t total;       /* items; -1: unknown */
  double limit;        /* time limit of the run in seconds; 0: none */
  const char *profile; /* of random cases; NULL: none. Owned by the caller. */
  double spent;        /* seconds of earlier processes, if the run was resumed */
  int64_t n_resumed;   /* their number of results */
  double started, last_drawn;
  double worst; /* largest error/bound of a case that passed */
} fa_progress;

#define FA_PROGRESS_PLAIN_SECONDS 10

/* allowed: false with --no-progress; verbose: plain lines if stderr is not a terminal. The rest of *p is set
 * to 0, and the caller fills it in. */
void fa_progress_init(fa_progress *p, bool allowed, bool verbose);
void fa_progress_note(fa_progress *p, const fa_result *r);
/* Redraws at most ten times a second; prints a plain line every FA_PROGRESS_PLAIN_SECONDS. */
void fa_progress_show(fa_progress *p, const fa_summary *s);
void fa_progress_clear(fa_progress *p);

/* The line's text, without the newline, at time now on fa_seconds_now's clock. */
void fa_progress_text(const fa_progress *p, const fa_summary *s, double now, char *text, size_t size);

/* Seconds of a monotonic clock. */
double fa_seconds_now(void);

#endif
