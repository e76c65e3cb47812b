/* Known failures: a file says which cases may fail, how, why, and until when. A failure that a waiver expects
 * is reported but does not fail the run. A waiver whose cases all pass does fail it: it is obsolete and would
 * hide the next fault. The file: docs/guide/campaigns.md. */
#ifndef FA_FUZZ_CAMPAIGN_WAIVERS_H
#define FA_FUZZ_CAMPAIGN_WAIVERS_H

#include "report/result.h"

#include <stdio.h>

#define FA_WAIVERS_VERSION 1 /* of "fa_waivers": docs/reference/versions.md */

typedef struct fa_waivers fa_waivers;

/* today: "2026-11-21"; a waiver is valid up to and including its expiry date. FA_ERR_INPUT names the file and
 * the JSON path, or line and column if it is not JSON. */
fa_status fa_waivers_load(const char *path, const char *today, fa_waivers **out, fa_error *err);
/* The same for text; path names it in messages. */
fa_status fa_waivers_parse(const char *text, size_t n_bytes, const char *path, const char *today,
                           fa_waivers **out, fa_error *err);
void fa_waivers_free(fa_waivers *w); /* w may be NULL */

/* Sets r->waived and r->waiver, and counts. p: the case's problem; device: the backend's name of its
 * device. */
void fa_waivers_apply(fa_waivers *w, const fa_problem *p, const char *device, fa_result *r);

/* Reports which waivers have expired and which are obsolete. True: an obsolete one fails the run. whole:
 * every case ran, so that a waiver's failing case cannot have been left out. */
bool fa_waivers_conclude(const fa_waivers *w, bool whole, FILE *out);

#endif
