/* One run over many cases: which cases on which backends, in worker processes, with output and report. */
#ifndef FA_FUZZ_CAMPAIGN_SESSION_H
#define FA_FUZZ_CAMPAIGN_SESSION_H

#include "fuzz/campaign/journal.h"
#include "fuzz/campaign/resume.h"
#include "fuzz/campaign/tier.h"
#include "fuzz/campaign/waivers.h"
#include "fuzz/coverage/table.h"
#include "fuzz/generate/within.h"
#include "fuzz/one/preparing.h"
#include "fuzz/options/cases_select.h"
#include "fuzz/options/choose_backend.h"
#include "fuzz/options/command.h"
#include "fuzz/options/laws_select.h"
#include "fuzz/options/shard.h"
#include "fuzz/untrusted/summary.h"
#include "fuzz/workers/pool.h"
#include "report/causes/collect.h"
#include "report/ci/baseline.h"
#include "report/json.h"
#include "report/text/line.h"
#include "report/text/progress.h"

/* Where cases come from: a list, or the generator, which makes case i on demand. */
typedef struct fa_source {
  fa_tier *tier;                /* not NULL: says which cases of the list, and which are generated */
  const fa_case_list *list;     /* NULL: generated */
  const fa_case_origin *origin; /* of the list's cases; NULL: none of them was drawn */
  const char *profile;
  uint64_t seed;
  fa_law_selection laws;      /* not empty: every case once under each law, with consecutive numbers */
  const fa_case_list *hidden; /* NULL, or cases that nobody named: those from number hidden_from on */
  int64_t hidden_from;
} fa_source;

/* Gets case number index; the caller owns the copy. draw: which draw of a random case; 0 = its first. */
fa_status fa_source_get(const fa_source *s, int64_t index, int64_t draw, fa_case *out, fa_error *err);
/* Where case number index was drawn; false: it is not a random case. */
bool fa_source_origin(const fa_source *s, int64_t index, fa_case_origin *out);
/* Number of items for n_cases cases. */
int64_t fa_source_count(const fa_source *s, int64_t n_cases);

typedef struct fa_item {
  int64_t case_index;
  int backend; /* into choice[] */
  uint64_t schedule_seed;
  int64_t draw; /* of a random case; FA_DRAW_LATER: the worker chooses it */
  fa_sample sample;
  int64_t number; /* that it had in the run that is repeated, whose data its case has already */
} fa_item;
#define FA_DRAW_LATER ((int64_t)-1)
#define FA_ITEM_OWN_NUMBER ((int64_t)-1)

/* Written by a worker for its parent: which case an item is, should the worker die of it. */
typedef struct fa_drawn {
  int64_t item, draw;
} fa_drawn;

/* An opened backend, as fa_drawing asks it. */
typedef struct fa_subject {
  const fa_backend *backend;
  void *self;
  const fa_rules *rules; /* NULL: it is trusted */
} fa_subject;

/* In a worker: what one case at a time has for itself. By backend. */
typedef struct fa_lane {
  void *self[FA_MAX_BACKENDS]; /* the opened backends */
  bool opened[FA_MAX_BACKENDS];
  fa_subject subject[FA_MAX_BACKENDS]; /* the same for drawing */
  fa_drawing drawing[FA_MAX_BACKENDS];
  fa_preparing preparing[FA_MAX_BACKENDS]; /* while opened for the first time */
} fa_lane;

/* Cases that have a feature: as they would be drawn without a subject, and of those that were judged. */
typedef struct fa_tried {
  int64_t wanted, judged;
} fa_tried;

typedef struct fa_session {
  const fa_cli *cli;
  fa_source source;
  fa_shard shard;
  fa_choice choice[FA_MAX_BACKENDS];
  int n_choices;
  fa_item *item; /* owned; NULL: endless, item i follows from a rule */
  int64_t n_items, next_item;
  double deadline; /* endless: when to stop starting items */
  int n_threads;   /* of each case */
  fa_lane *lane;   /* owned: FA_POOL_MAX_LANES */
  int n_lanes;     /* in a worker: cases at a time */
  bool draws;      /* random cases that a backend cannot run are drawn again */
  fa_drawn *drawn; /* shared with the workers: item i at i % FA_POOL_MAX_PENDING; NULL = none */
  fa_process_slots preparing_slots; /* of the workers */
  fa_report report;
  fa_causes *causes;                /* owned */
  const struct cJSON *last_failure; /* in the report, when a result was last noted */
  struct cJSON *run;                /* owned: identity of this run, with --report */
  fa_journal journal;               /* --report: OUT.json.journal, in case this program is killed */
  int64_t n_mapped;                 /* failures with maps that have gone to the journal */
  fa_resume resume;                 /* what the journal held when opened */
  fa_waivers *waivers;
  fa_baseline *baseline; /* owned; NULL: none is given */
  double started;        /* on the clock of fa_seconds_now, moved back by earlier processes' time */
  bool dump_failed;
  fa_tried *tried;       /* owned: by word (fuzz/coverage/words.h) */
  fa_coverage *coverage; /* owned; NULL: nobody wants it */
  int64_t *kept_draw;    /* owned: of every item of an endless run whose cases are to be written */
  int64_t n_kept;
  fa_line_style style;
  fa_progress progress;
  fa_rules *rules; /* owned: of a candidate that nobody trusts; NULL: it is trusted */
  fa_rules_counts rules_counts;
  bool repeats;        /* failures of another run: not all that its contract claims is tested */
  char *mode;          /* owned: what a repro line repeats of the rules; NULL: nothing */
  fa_case_list hidden; /* owned: the source's */
  bool give_up;        /* --fail-fast found a failure: start nothing new */
  fa_status status;
  fa_error error;
} fa_session;

/* Chooses the backends. On failure prints a message and returns an exit code; 0 = success. */
int fa_session_open(fa_session *s, const fa_cli *cli);
void fa_session_free(fa_session *s);

/* Selects among n cases: those of this shard whose name matches --filter, on every backend. */
fa_status fa_session_select(fa_session *s, int64_t n, fa_error *err);
/* Judged in the command's sample, if it has one. */
fa_status fa_session_add_item(fa_session *s, int64_t case_index, int backend, uint64_t schedule_seed);

/* Opens a backend for a lane of this process, unless it is open. */
fa_status fa_session_open_backend(fa_session *s, int lane, int backend, fa_error *err);

/* ---- drawing inside what the backends support ---- */

/* Before items are selected. Nothing is drawn again with --as-drawn, or if no case was drawn. */
fa_status fa_session_draw_begin(fa_session *s, fa_error *err);
void fa_session_draw_end(fa_session *s);
/* Chooses the draws of all selected items, in a process of its own because backends do not survive the fork of the
 * workers. If it dies, the draws that it has not chosen are left to the workers. */
fa_status fa_session_draw_ahead(fa_session *s, fa_error *err);
/* In a worker: the draw of an item, whose backend is open in the lane. */
fa_status fa_session_draw(fa_session *s, int lane, int64_t number, fa_item item, int64_t *draw,
                          fa_error *err);
/* In the parent: the draw that a dead worker had chosen; 0 if it had not come so far. */
int64_t fa_session_drawn_last(const fa_session *s, int64_t number);
/* Notes a finished item: what was drawn, and its features for --coverage. In the order of items. */
fa_status fa_session_note(fa_session *s, int64_t number, const fa_result *r, fa_error *err);
fa_status fa_session_keep_draw(fa_session *s, int64_t draw, fa_error *err); /* its part for --emit */
fa_status fa_session_note_tried(fa_session *s, int64_t case_index, const fa_result *r, fa_error *err);
/* --emit: writes this process's cases as a case file; of an endless run those that are done. */
fa_status fa_session_emit(const fa_session *s, const char *path, fa_error *err);

/* --coverage: the table of features of the items, printed and added to the report. */
void fa_session_cover(fa_session *s);
/* --tier: what was run, printed, and added to the report. */
void fa_session_say_tier(fa_session *s);
/* After random cases: what they have and no judged one had, printed; and the counts, added to the report. */
void fa_session_say_tried(fa_session *s);

/* Runs the items, prints the lines and the summary, writes the report; returns the exit code. With --resume,
 * items whose results are in the journal are not run again. */
int fa_session_run(fa_session *s);

/* How many cases run at a time, and how many of them in one process. */
int fa_session_jobs(const fa_session *s);
int fa_session_lanes(const fa_session *s, int jobs);

/* The exit code of a run with these counts. Waivers that are no longer needed are named on stderr and fail
 * the run. over: every item ran. */
int fa_session_exit_code(const fa_session *s, const fa_summary *sum, bool over);

/* Opens and reads OUT.json.journal. *code >= 0: the run was already finished, and this is its exit code. */
fa_status fa_session_open_journal(fa_session *s, int *code, fa_error *err);
/* Adds the journal's results of items below `item` to the report, in order. */
fa_status fa_session_add_resumed(fa_session *s, int64_t item, fa_error *err);
/* Item number i; computed from a rule if there is no list. */
fa_item fa_session_item(const fa_session *s, int64_t i);
/* For the groups of failures, once the result is in the report. */
fa_status fa_session_note_cause(fa_session *s, const fa_result *r, fa_error *err);
/* The same for the entry of a result that a journal had. */
fa_status fa_session_note_cause_again(fa_session *s, const struct cJSON *entry, fa_error *err);
/* Applies waivers and baseline to a finished result, each result once and in order; it is not added to the report here.
 * failure: as for fa_baseline_judge. */
void fa_session_judge_known(fa_session *s, int64_t number, fa_result *r, const struct cJSON *failure);

/* ---- of a candidate that nobody trusts: nothing without --untrusted ---- */

/* When the backend is chosen: fixes its contract. FA_ERR_INPUT: options that do not go together. */
fa_status fa_session_open_rules(fa_session *s, fa_error *err);
/* When the source is known, and before anything is drawn: draws the secret, or takes that of the run that is resumed. */
fa_status fa_session_begin_rules(fa_session *s, fa_error *err);
/* When items are selected: adds the hidden cases, and shuffles all. */
fa_status fa_session_hide(fa_session *s, fa_error *err);
bool fa_session_is_hidden(const fa_session *s, int64_t case_index);
/* Notes the item's number in its failure, which has just been added to the report as number `before` or not at all. */
void fa_session_number_failure(fa_session *s, int64_t before, int64_t number);
void fa_session_add_rules_identity(const fa_session *s, struct cJSON *run);
void fa_session_count_rules(fa_session *s, int64_t number, const fa_result *r);
/* Says what there is to say, and adds it to the report; returns the exit code, which was code without it. */
int fa_session_conclude_rules(fa_session *s, int code);

/* ---- shared with commands that judge without a backend ---- */

fa_status fa_report_start(fa_report *r, const fa_cli *cli, const fa_choice *choice, fa_error *err);
/* Says what --require asks for and was not judged, of a run of so many cases; returns the exit code, which was code
 * without it. A run without cases is left as it is. */
int fa_report_conclude_required(const fa_report *r, int64_t n_cases, int code);
void fa_line_style_from_cli(fa_line_style *style, const fa_cli *cli);
/* The failure that was added last; NULL: none was. */
const struct cJSON *fa_report_last_failure(const fa_report *r);
/* Prints groups if there are several failures. */
void fa_report_print_causes(const struct cJSON *groups, const fa_cli *cli);
/* Makes the groups of failures, prints them if there are several failures, and adds them to the report. */
fa_status fa_report_find_causes(fa_report *r, fa_causes *causes, const fa_cli *cli, fa_error *err);
/* Prints the groups of failures and the summary line, and writes the report file; returns the exit code. */
int fa_report_finish(fa_report *r, fa_causes *causes, const fa_baseline *baseline, const fa_cli *cli,
                     const fa_line_style *style, double seconds, int interrupted);
/* --baseline, --slower and --annotations: reads and checks them. choice: of the first of n subjects; NULL: recorded runs.
 * *out is NULL without a baseline, else owned by the caller. */
fa_status fa_report_open_baseline(const fa_cli *cli, const fa_choice *choice, int n, fa_baseline **out,
                                  fa_error *err);
/* Adds where the subjects say that their kernels are written, as "sources". */
void fa_report_add_sources(fa_report *r, const fa_choice *choice, int n);
/* Adds what foreign kernels claim to compute, as "contracts" (report/claims.h). */
void fa_report_add_contracts(fa_report *r, const fa_choice *choice, int n);
/* Adds what limits subjects that nobody trusts and what they are shown, as "untrusted.wall". */
void fa_report_add_walls(fa_report *r, const fa_choice *choice, int n);

#endif
