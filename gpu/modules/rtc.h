/* Kernels compiled at run time: by NVRTC, or taken from disk where they were compiled before.
 *
 * When. FA_NVRTC=off: never. auto, the default: for what is not among the kernels compiled ahead of time,
 * because they were not made for the device's architecture, or because the list of the build leaves the
 * specialisation out. always: every kernel, whatever was compiled ahead of time. Where a specialisation that
 * the list leaves out cannot be compiled, a more general kernel from the list does its work. */
#ifndef FA_GPU_MODULES_RTC_H
#define FA_GPU_MODULES_RTC_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum fa_rtc_policy { FA_RTC_OFF, FA_RTC_AUTO, FA_RTC_ALWAYS } fa_rtc_policy;

/* FA_ERR_INPUT: FA_NVRTC is something else. */
fa_status fa_rtc_policy_get(fa_rtc_policy *out, fa_error *err);

/* One translation unit. text may include every header of gpu/kernels by its name from the root of the source
 * tree, and stdint.h and stddef.h; nothing else. */
typedef struct fa_rtc_unit {
  const char *name; /* for messages */
  const char *text; /* CUDA C++17 */
  const char *const *options;
  int n_options; /* at most 16 */
} fa_rtc_unit;

typedef struct fa_rtc_code {
  void *cubin; /* malloc'd: the caller frees it */
  size_t cubin_bytes;
  char *log;      /* what the compiler said, malloc'd; NULL for code from disk */
  bool from_disk; /* nothing was compiled, and NVRTC was not even loaded if it is the same file as then */
} fa_rtc_code;

/* Code for a device of this compute capability. The key of the cache is made of the text, all headers, the
 * options, the compute capability, where NVRTC is looked for and the format of the file; the version of NVRTC
 * stands in the file, and code from another one is compiled again. FA_ERR_UNSUPPORTED: there is no NVRTC, it
 * does not know the device, or the unit does not compile: the message has the compiler's first words. */
fa_status fa_rtc_build(const fa_rtc_unit *unit, int major, int minor, fa_rtc_code *out, fa_error *err);
void fa_rtc_code_free(fa_rtc_code *code);

/* The files of gpu/kernels inside this program, by name; written by the build. NULL-terminated. */
typedef struct fa_kernel_source {
  const char *name; /* "gpu/kernels/flash/forward.cu" */
  const char *text;
} fa_kernel_source;
extern const fa_kernel_source fa_kernel_sources[];

/* The text of gpu/kernels/<name>.cu; NULL: there is none. */
const char *fa_kernel_source_find(const char *name);

#endif
