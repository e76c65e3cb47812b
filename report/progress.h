/* How a run is going. On a terminal one line on stderr, redrawn in place, which takes itself away before
 * anything else is printed; without one, a line now and then, for who asked for it. */
#ifndef FA_REPORT_PROGRESS_H
#define FA_REPORT_PROGRESS_H

#include "report/result.h"

typedef struct fa_progress {
  bool terminal, plain; /* how to show; neither: not at all */
  bool drawn;
  int64_t total;       /* items; -1: nobody knows */
  double limit;        /* seconds that the run shall take; 0: none */
  const char *profile; /* of random cases; NULL: none. The caller's. */
  double spent;        /* seconds of earlier processes, when the run was resumed */
  int64_t n_resumed;   /* their results */
  double started, last_drawn;
  double worst; /* largest error/bound of a case that passed */
} fa_progress;

#define FA_PROGRESS_PLAIN_SECONDS 10

/* allowed: false with --no-progress; verbose: plain lines where stderr is no terminal. The rest of *p
 * is 0 and for the caller to fill in. */
void fa_progress_init(fa_progress *p, bool allowed, bool verbose);
void fa_progress_note(fa_progress *p, const fa_result *r);
/* Redraws at most ten times a second; prints a plain line every FA_PROGRESS_PLAIN_SECONDS. */
void fa_progress_show(fa_progress *p, const fa_summary *s);
void fa_progress_clear(fa_progress *p);

/* The line's text, without its end, at time now of fa_seconds_now's clock. */
void fa_progress_text(const fa_progress *p, const fa_summary *s, double now, char *text, size_t size);

/* Seconds of a clock that only goes forward. */
double fa_seconds_now(void);

#endif
