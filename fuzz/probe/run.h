/* Finds out by questions what a subject computes and how. */
#ifndef FA_FUZZ_PROBE_RUN_H
#define FA_FUZZ_PROBE_RUN_H

#include "fuzz/probe/findings.h"
#include "gpu/backend.h"

typedef enum fa_probe_kind {
  FA_PROBE_CONTRACT = 1,   /* what it delivers, and the LSE's conventions */
  FA_PROBE_CASE = 2,       /* whether it computes what cases mean: masks, heads, the score chain, dropout */
  FA_PROBE_ARITHMETIC = 4, /* how */
  FA_PROBE_ALL = 7
} fa_probe_kind;

enum { FA_PROBE_DTYPES = 3 }; /* f16, bf16, f32: the first of fa_dtype */

/* Questions of these kinds (bits) about one element type, of an opened backend. The report's declaration says what was
 * found, and the wider of what kernels do where nothing was. report->usable: it ran at all. */
void fa_probe(const fa_backend *backend, void *self, fa_dtype dtype, unsigned kinds, fa_probe_report *report);

typedef struct fa_probe_reports {
  fa_probe_report of[FA_PROBE_DTYPES]; /* by fa_dtype; those not asked for are zeroed */
  fa_status status;                    /* of opening it */
  char why_not[256];
} fa_probe_reports;

/* The same for the kinds (bits) that kinds[] asks for by element type, in a process of its own, which opens the backend:
 * a subject may crash or hang under questions. FA_ERR_DEVICE: it crashed, took longer than timeout_s in all, or could
 * not be opened. */
fa_status fa_probe_apart(const fa_backend *backend, const char *arg, const unsigned kinds[FA_PROBE_DTYPES],
                         double timeout_s, fa_probe_reports *out, fa_error *err);

#endif
