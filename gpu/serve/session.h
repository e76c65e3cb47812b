/* A backend that answers requests: the child's side of docs/reference/protocol.md, version 2. */
#ifndef FA_GPU_SERVE_SESSION_H
#define FA_GPU_SERVE_SESSION_H

#include "gpu/backend.h"

#include <stdio.h>

/* Why a session is over. SPENT: the backend can run nothing more in this process; the last request was answered, and
 * another process may go on with the next. */
typedef enum fa_serve_end { FA_SERVE_CLOSED, FA_SERVE_SPENT, FA_SERVE_FAILED } fa_serve_end;

/* Reads requests from in, a line each, and writes a line to out for each of them, until in ends. why_not: NULL, or
 * why the backend could not be opened, which its hello says. FAILED: out can no longer be written. */
fa_serve_end fa_serve_session(const fa_backend *backend, void *self, const char *why_not, FILE *in,
                              FILE *out);

#endif
