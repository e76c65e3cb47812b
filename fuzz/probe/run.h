/* Finds out by questions what a subject computes and how. */
#ifndef FA_FUZZ_PROBE_RUN_H
#define FA_FUZZ_PROBE_RUN_H

#include "fuzz/probe/findings.h"
#include "gpu/backend.h"

/* Questions about one element type, of an opened backend. The report's declaration says what was found, on top of what
 * the backend declares. report->usable: it ran at all. */
void fa_probe(const fa_backend *backend, void *self, fa_dtype dtype, fa_probe_report *report);

/* The same in a process of its own, which opens the backend: a subject may crash or hang under questions. FA_ERR_DEVICE:
 * it did, or could not be opened. */
fa_status fa_probe_apart(const fa_backend *backend, const char *arg, fa_dtype dtype, double timeout_s,
                         fa_probe_report *report, fa_error *err);

#endif
