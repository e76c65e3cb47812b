/* A probe in a process of its own: a subject may crash or hang under questions, and then the next process goes on
 * behind the question that did it. */
#ifndef FA_FUZZ_PROBE_APART_H
#define FA_FUZZ_PROBE_APART_H

#include "fuzz/options/choose_backend.h"
#include "fuzz/probe/findings.h"

enum { FA_PROBE_DTYPES = 3 /* f16, bf16, f32: the first of fa_dtype */, FA_PROBE_MAX_FAILURES = 4 };

typedef struct fa_probe_reports {
  fa_probe_report of[FA_PROBE_DTYPES]; /* by fa_dtype; those not asked for are zeroed */
} fa_probe_reports;

/* Questions of the kinds (bits of fa_probe_kind) that kinds[] asks for by element type. A question that ends the process,
 * or takes longer than timeout_s for one call, is left without an answer; after FA_PROBE_MAX_FAILURES of them the rest is
 * not asked. progress: a line on stderr now and then. FA_ERR_DEVICE: it could not be opened, or no call ever ended. */
fa_status fa_probe_apart(const fa_choice *choice, const unsigned kinds[FA_PROBE_DTYPES], double timeout_s,
                         bool progress, fa_probe_reports *out, fa_error *err);

#endif
