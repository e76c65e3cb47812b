/* What the child of exec:CMD says about itself in its hello, and whether that covers a problem. */
#ifndef FA_GPU_BACKENDS_EXEC_HELLO_H
#define FA_GPU_BACKENDS_EXEC_HELLO_H

#include "gpu/backend.h"

struct cJSON;
struct fa_plugin_arithmetic;

#ifdef __cplusplus
extern "C" {
#endif

#define FA_EXEC_VERSION 1

/* Checks every key of a hello. FA_ERR_INPUT: wrong type, unknown name, or another version. FA_ERR_DEVICE: the
 * child cannot work here, and says why. */
fa_status fa_exec_hello_check(const struct cJSON *hello, fa_error *err);

/* The passes that a hello offers for the problem, before the child itself is asked; reason: why not all. */
unsigned fa_exec_hello_passes(const struct cJSON *hello, const fa_problem *p, char *reason,
                              size_t reason_size);

/* Pass bits of the array "passes" in an answer; both if it has none. FA_ERR_INPUT: unknown pass. */
fa_status fa_exec_read_passes(const struct cJSON *answer, unsigned *passes, fa_error *err);

/* Applies the object "arithmetic" of an answer to *out; an answer without one changes nothing. */
fa_status fa_exec_read_arithmetic(const struct cJSON *answer, struct fa_plugin_arithmetic *out,
                                  fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
