/* Known failures: a file says which cases may fail, how, why, and until when. A failure that a waiver expects
 * is reported but does not fail the run; a waiver whose cases all pass does, because it has outlived its
 * reason and would hide the next fault. The file: docs/guide/ci.md. */
#ifndef FA_FUZZ_CAMPAIGN_WAIVERS_H
#define FA_FUZZ_CAMPAIGN_WAIVERS_H

#include "report/result.h"

#include <stdio.h>

typedef struct fa_waivers fa_waivers;

/* today: "2026-11-21"; a waiver holds up to and including the day on which it expires. FA_ERR_INPUT names the
 * file and the JSON path, or of what is no JSON the line and column. */
fa_status fa_waivers_load(const char *path, const char *today, fa_waivers **out, fa_error *err);
/* The same on text; path stands for it in messages. */
fa_status fa_waivers_parse(const char *text, size_t n_bytes, const char *path, const char *today,
                           fa_waivers **out, fa_error *err);
void fa_waivers_free(fa_waivers *w); /* NULL is all right */

/* Sets r->waived and r->waiver, and counts. p: the case's problem; device: what the backend calls its. */
void fa_waivers_apply(fa_waivers *w, const fa_problem *p, const char *device, fa_result *r);

/* Says which waivers have expired and which are no longer needed. True: one of the latter fails the run.
 * whole: every case ran, so that a waiver's failing case cannot just have been left out. */
bool fa_waivers_conclude(const fa_waivers *w, bool whole, FILE *out);

#endif
