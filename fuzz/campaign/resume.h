/* Resuming an interrupted run: what its journal says, and whether it is the same run.
 *
 * The journal's first line identifies the run:
 *   {"fa_journal": 1, "started": UTC, "command": as typed, "run": {everything that affects its results}}
 * Every other line is one result: its entry in the report, with "item" (its place in the run), "elapsed"
 * (seconds since the run began, earlier processes included) and, unless it passed or was skipped, "failure"
 * (everything in the report about it, with the case's JSON). Lines are in the order in which results arrived;
 * reports are in the order of items. */
#ifndef FA_FUZZ_CAMPAIGN_RESUME_H
#define FA_FUZZ_CAMPAIGN_RESUME_H

#include "report/journal_line.h"

#define FA_JOURNAL_VERSION 1 /* of "fa_journal": docs/reference/versions.md */

typedef struct fa_resume_line {
  int64_t item;
  const char *text;
} fa_resume_line;

typedef struct fa_resume {
  char *text;           /* owned: the journal, split into lines */
  fa_resume_line *line; /* owned; sorted by item */
  int64_t n, next;      /* next: the first line that is not in the report yet */
  int64_t end;          /* one past the largest item */
  double spent;         /* seconds */
  char started[32];     /* of the first process, and its command; "" and NULL without a journal */
  char *command;        /* owned */
} fa_resume;

/* Takes ownership of a journal's text (which may be ""); path is for messages. FA_ERR_INPUT: it belongs to
 * another run, and the message says what differs, or a line is damaged. */
fa_status fa_resume_read(fa_resume *r, char *text, const char *path, const struct cJSON *run, fa_error *err);
bool fa_resume_has(const fa_resume *r, int64_t item);
void fa_resume_free(fa_resume *r);

/* The first line of a new journal, malloc'd; NULL when out of memory. */
char *fa_resume_header(const struct cJSON *run, const char *command, const char *started);

/* FA_ERR_INPUT if the two descriptions of a run differ, or one lacks a key of the other; the message names
 * the first difference. */
fa_status fa_resume_compare(const struct cJSON *before, const struct cJSON *now, const char *path,
                            fa_error *err);

#endif
