/* One run over many cases: which cases on which backends, in worker processes, printed and reported. */
#ifndef FA_FUZZ_CAMPAIGN_SESSION_H
#define FA_FUZZ_CAMPAIGN_SESSION_H

#include "fuzz/campaign/journal.h"
#include "fuzz/campaign/resume.h"
#include "fuzz/campaign/waivers.h"
#include "fuzz/one/preparing.h"
#include "fuzz/options/choose_backend.h"
#include "fuzz/options/command.h"
#include "fuzz/options/laws_select.h"
#include "fuzz/options/shard.h"
#include "report/json.h"
#include "report/line.h"
#include "report/progress.h"

/* Where cases come from: a list, or the generator, which makes case i when it is asked for. */
typedef struct fa_source {
  const fa_case_list *list; /* NULL: generated */
  const char *profile;
  uint64_t seed;
  fa_law_selection laws; /* not empty: every case once under each, numbered one after the other */
} fa_source;

/* Case number index; the copy is the caller's. */
fa_status fa_source_get(const fa_source *s, int64_t index, fa_case *out, fa_error *err);
/* How many numbers that many cases have. */
int64_t fa_source_count(const fa_source *s, int64_t n_cases);

typedef struct fa_item {
  int64_t case_index;
  int backend; /* into choice[] */
  uint64_t schedule_seed;
} fa_item;

typedef struct fa_session {
  const fa_cli *cli;
  fa_source source;
  fa_shard shard;
  fa_choice choice[FA_MAX_BACKENDS];
  int n_choices;
  fa_item *item; /* owned; NULL: endless, item i is made by rule */
  int64_t n_items, next_item;
  double deadline;             /* endless: when to stop handing out items */
  int n_threads;               /* of each worker */
  void *self[FA_MAX_BACKENDS]; /* in a worker: the opened backends */
  bool opened[FA_MAX_BACKENDS];
  fa_preparing preparing[FA_MAX_BACKENDS]; /* the first time they are */
  fa_process_slots preparing_slots;        /* of the workers */
  fa_report report;
  struct cJSON *run;  /* owned: which run this is, with --report */
  fa_journal journal; /* --report: OUT.json.journal, for the event that this program is killed */
  fa_resume resume;   /* what the journal held when it was opened */
  fa_waivers *waivers;
  double started; /* on the clock of fa_seconds_now; earlier processes' time counted in */
  bool dump_failed;
  fa_line_style style;
  fa_progress progress;
  bool give_up; /* --fail-fast found something: nothing new is begun */
  fa_status status;
  fa_error error;
} fa_session;

/* Chooses the backends. On failure prints a message and returns an exit code; 0 = go on. */
int fa_session_open(fa_session *s, const fa_cli *cli);
void fa_session_free(fa_session *s);

/* Which of n cases run: those of this shard whose name matches --filter, on every backend. */
fa_status fa_session_select(fa_session *s, int64_t n, fa_error *err);
fa_status fa_session_add_item(fa_session *s, int64_t case_index, int backend, uint64_t schedule_seed);

/* --coverage: the table of features of the items, printed and added to the report. */
fa_status fa_session_cover(fa_session *s, fa_error *err);

/* Runs the items, prints the lines and the last line, writes the report; returns the exit code. With --resume
 * the results that are in the journal are not made again. */
int fa_session_run(fa_session *s);

/* The exit code of a run with these counts: waivers that it no longer needs are named on stderr, and fail it.
 * over: every item ran. */
int fa_session_exit_code(const fa_session *s, const fa_summary *sum, bool over);

/* Opens OUT.json.journal and reads it. *code >= 0: the run was over already, and this is its exit code. */
fa_status fa_session_open_journal(fa_session *s, int *code, fa_error *err);
/* Adds the journal's results of items below `item` to the report, in order. */
fa_status fa_session_add_resumed(fa_session *s, int64_t item, fa_error *err);
/* Item number i: made by rule when there is no list. */
fa_item fa_session_item(const fa_session *s, int64_t i);
/* Where a result that is complete goes, waiver included, but not into the report. */
void fa_session_judge_waivers(fa_session *s, int64_t number, fa_result *r);

/* ---- shared with the commands that judge without a backend ---- */

fa_status fa_report_start(fa_report *r, const fa_cli *cli, const fa_choice *choice, fa_error *err);
void fa_line_style_from_cli(fa_line_style *style, const fa_cli *cli);
/* Summary line, report file; the exit code. */
int fa_report_finish(fa_report *r, const fa_cli *cli, const fa_line_style *style, double seconds,
                     int interrupted);

#endif
