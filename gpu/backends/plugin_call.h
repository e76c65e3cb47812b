/* A problem and its tensors in the structs of gpu/plugin.h. */
#ifndef FA_GPU_BACKENDS_PLUGIN_CALL_H
#define FA_GPU_BACKENDS_PLUGIN_CALL_H

#include "gpu/backends/exec_tensors.h"
#include "gpu/plugin.h"

/* The plain problem, and what it points to. It also points into the fa_problem that it was made from. */
typedef struct fa_plugin_call_problem {
  fa_plugin_problem problem;
  fa_plugin_capture capture[FA_MAX_CAPTURES];
  const fa_plugin_capture *captures[FA_MAX_CAPTURES];
} fa_plugin_call_problem;

/* Sets everything except case_json; *out must not move afterwards. */
void fa_plugin_call_problem_set(fa_plugin_call_problem *out, const fa_problem *p);
/* The problem as in a case file, malloc'd; NULL: out of memory. */
char *fa_plugin_call_json(const fa_problem *p);

typedef struct fa_plugin_call_tensors {
  fa_plugin_tensors tensors;
  fa_plugin_tensor buffer[FA_MAX_CAPTURES], dbuffer[FA_MAX_CAPTURES];
} fa_plugin_call_tensors;

fa_plugin_tensor fa_plugin_call_tensor(const fa_tensor *t);
/* Those of the list; *out must not move afterwards. */
void fa_plugin_call_tensors_set(fa_plugin_call_tensors *out, const fa_problem *p,
                                const fa_exec_tensors *list);

#endif
