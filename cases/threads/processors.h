#ifndef FA_CASES_THREADS_PROCESSORS_H
#define FA_CASES_THREADS_PROCESSORS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Processors that the calling thread may run on, at least 1: those that taskset or a container's cpuset leave it. Where that is not known,
 * those that the machine has online. */
int fa_processors(void);

#ifdef __cplusplus
}
#endif

#endif
