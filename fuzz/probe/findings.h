/* What a probe has found out about a subject: a list of findings, each with the numbers that it rests on, and the
 * declaration that they add up to. */
#ifndef FA_FUZZ_PROBE_FINDINGS_H
#define FA_FUZZ_PROBE_FINDINGS_H

#include "cases/vocabulary/declaration.h"

typedef enum fa_probe_confidence {
  FA_PROBE_NOT_ASKED,    /* the subject cannot do what the question needs */
  FA_PROBE_NOT_ANSWERED, /* it crashed, or took too long */
  FA_PROBE_UNTOLD,       /* it answered, and the answer fits several values, or none */
  FA_PROBE_LIKELY,
  FA_PROBE_CERTAIN
} fa_probe_confidence;

typedef struct fa_finding {
  char field[32]; /* as in a hello's "arithmetic" and "lse", or "mask corner", "gqa" ... */
  char value[64];
  char evidence[256]; /* what was asked, what came, what was expected under each hypothesis */
  fa_probe_confidence confidence;
  bool convention;   /* not how it computes, but what: other than expected is an error of the subject */
  char expected[64]; /* of a convention; or what the subject itself has declared; "" = nothing */
  bool contradicts;  /* and it is another value */
} fa_finding;

enum { FA_PROBE_MAX_FINDINGS = 64 };

/* Of one element type. Plain data: it goes through a pipe as it is. */
typedef struct fa_probe_report {
  fa_dtype dtype;
  bool usable; /* it ran at least one call of this type */
  char why_not[256];
  int n, n_calls;
  double seconds;
  fa_finding v[FA_PROBE_MAX_FINDINGS];
  fa_declaration found;
} fa_probe_report;

const char *fa_probe_confidence_name(fa_probe_confidence c);
/* NULL: there is no such finding. */
const fa_finding *fa_probe_find(const fa_probe_report *r, const char *field);

#endif
