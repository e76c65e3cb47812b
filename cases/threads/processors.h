#ifndef FA_CASES_THREADS_PROCESSORS_H
#define FA_CASES_THREADS_PROCESSORS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Processors that this machine has online; at least 1. */
int fa_processors(void);

#ifdef __cplusplus
}
#endif

#endif
