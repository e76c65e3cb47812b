/* The text of the progress line. */
#include "report/text/progress.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static bool text_is(const fa_progress *p, const fa_summary *s, double now, const char *want) {
  char text[512];
  fa_progress_text(p, s, now, text, sizeof text);
  bool same = strcmp(text, want) == 0;
  if (!same) fprintf(stderr, "  is  \"%s\"\nwant  \"%s\"\n", text, want);
  return same;
}

int main(void) {
  fa_summary s = {.total = 120, .passed = 117, .skipped = 3};
  fa_progress p = {.total = 480, .started = 100};
  CHECK(
      text_is(&p, &s, 124, "[#####               ] 120/480 cases  24 s  5/s  passed:117 failed:0 skipped:3"));
  fa_result r;
  fa_result_init(&r);
  r.state = FA_PASS;
  r.worst_ratio = 0.75;
  fa_progress_note(&p, &r);
  r.worst_ratio = NAN; /* neither this ratio nor a failure's counts as the worst of those that passed */
  fa_progress_note(&p, &r);
  r.state = FA_FAIL;
  r.worst_ratio = 448;
  fa_progress_note(&p, &r);
  s = (fa_summary){.total = 1000, .passed = 990, .failed = 4, .skipped = 3, .error = 1, .waived = 2};
  p.total = -1;
  p.limit = 3600;
  p.profile = "window";
  p.spent = 1700; /* resumed: 900 results came in 1700 s, 100 more in the 100 s since */
  p.n_resumed = 900;
  CHECK(text_is(
      &p, &s, 200,
      "[##########          ] 1000 cases  1800/3600 s  1/s  passed:990 failed:4 skipped:3 error:1 waived:2"
      "  worst r=0.75  window"));
  p.spent = 9999; /* late */
  CHECK(
      text_is(&p, &s, 100,
              "[####################] 1000 cases  9999/3600 s  passed:990 failed:4 skipped:3 error:1 waived:2"
              "  worst r=0.75  window"));
  /* A fast rate is written out, also where three digits round up to a thousand. */
  fa_progress fast = {.total = -1, .started = 100};
  s = (fa_summary){.total = 1234, .passed = 1234};
  CHECK(text_is(&fast, &s, 101, "1234 cases  1 s  1234/s  passed:1234 failed:0 skipped:0"));
  s = (fa_summary){.total = 1999, .passed = 1999};
  CHECK(text_is(&fast, &s, 102, "1999 cases  2 s  1000/s  passed:1999 failed:0 skipped:0"));
  char tiny[8];
  fa_progress_text(&p, &s, 200, tiny, sizeof tiny);
  CHECK(strlen(tiny) < sizeof tiny);

  /* Without a terminal: nothing, or with -v a line every ten seconds. */
  FILE *kept = stderr, *text = tmpfile();
  REQUIRE(text);
  fa_progress quiet = {.total = -1}, plain = {.total = -1, .plain = true};
  quiet.last_drawn = quiet.started = plain.started = plain.last_drawn =
      fa_seconds_now() - FA_PROGRESS_PLAIN_SECONDS - 1;
  stderr = text;
  fa_progress_show(&quiet, &s);
  long after_quiet = ftell(text);
  fa_progress_show(&plain, &s);
  long after_plain = ftell(text);
  fa_progress_show(&plain, &s); /* too soon */
  long after_again = ftell(text);
  fa_progress_clear(&plain);
  long after_clear = ftell(text);
  stderr = kept;
  CHECK(after_quiet == 0);
  CHECK(after_plain > 20);
  CHECK(after_again == after_plain && after_clear == after_plain);
  fclose(text);
  return check_done();
}
