/* The backends that run foreign code: plugin:PATH.so, cubin:PLAN.json, exec:CMD, connect:PATH, py:NAME and mutant:NAME. */
#ifndef FA_GPU_BACKENDS_PLUGIN_BACKEND_H
#define FA_GPU_BACKENDS_PLUGIN_BACKEND_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const fa_backend fa_backend_plugin;  /* gpu/plugin.h */
extern const fa_backend fa_backend_cubin;   /* docs/reference/cubin.md; gpu/cubin has it */
extern const fa_backend fa_backend_exec;    /* docs/reference/protocol.md */
extern const fa_backend fa_backend_connect; /* the same, to a process that is already running */
extern const fa_backend fa_backend_served;  /* another backend of this program, behind a wall */
extern const fa_backend fa_backend_py;      /* the same, of the Python package */
extern const fa_backend fa_backend_mutant;  /* gpu/backends/mutant.h */

/* What fa_backend_plugin.open does with the table of a library, for a table in this process: of version 2, or of version 1
 * (gpu/backends/plugin_v1.h). It must stay where it is until fa_backend_plugin.close. name: in messages, in the place of the
 * library's path. */
struct fa_plugin;
fa_status fa_plugin_open_table(const struct fa_plugin *table, const char *name, void **self, fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
