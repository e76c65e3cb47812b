/* NVIDIA's run-time compiler, loaded at run time, so that the program also starts without it.
 *
 * The file is the one in the environment's FA_LIBNVRTC, else libnvrtc.so.13, .12 or libnvrtc.so where the
 * loader finds it, else the same names in the toolkit (CUDA_PATH, CUDA_HOME, /usr/local/cuda). It needs no
 * GPU. */
#ifndef FA_GPU_DRIVER_NVRTC_H
#define FA_GPU_DRIVER_NVRTC_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* As in the toolkit's nvrtc.h, whose ABI is stable; declared here because the header is not always
 * installed. */
typedef struct fa_nvrtc_program_object *fa_nvrtc_program;
enum { FA_NVRTC_SUCCESS = 0, FA_NVRTC_ERROR_COMPILATION = 6 };

#define FA_NVRTC_FUNCTIONS(F)                                                                                \
  F(nvrtcVersion, int *major, int *minor)                                                                    \
  F(nvrtcGetNumSupportedArchs, int *n)                                                                       \
  F(nvrtcGetSupportedArchs, int *archs)                                                                      \
  F(nvrtcCreateProgram, fa_nvrtc_program *program, const char *text, const char *name, int n_headers,        \
    const char *const *headers, const char *const *header_names)                                             \
  F(nvrtcDestroyProgram, fa_nvrtc_program *program)                                                          \
  F(nvrtcCompileProgram, fa_nvrtc_program program, int n_options, const char *const *options)                \
  F(nvrtcGetProgramLogSize, fa_nvrtc_program program, size_t *bytes)                                         \
  F(nvrtcGetProgramLog, fa_nvrtc_program program, char *log)                                                 \
  F(nvrtcGetCUBINSize, fa_nvrtc_program program, size_t *bytes)                                              \
  F(nvrtcGetCUBIN, fa_nvrtc_program program, char *cubin)

typedef struct fa_nvrtc {
#define FA_NVRTC_FIELD(name, ...) int (*name)(__VA_ARGS__);
  FA_NVRTC_FUNCTIONS(FA_NVRTC_FIELD)
#undef FA_NVRTC_FIELD
  const char *(*nvrtcGetErrorString)(int result);
} fa_nvrtc;

/* Identifies the compiler: code kept on disk must have been made by the same one. */
typedef struct fa_nvrtc_identity {
  int major, minor;
  char file[512]; /* full path of the library; "" if unknown */
  long long file_bytes, file_mtime_ns;
} fa_nvrtc_identity;

/* Loads it once; later calls return the same result. NULL: there is none, or it is too old; the message says
 * which. identity may be NULL. */
const fa_nvrtc *fa_nvrtc_get(fa_nvrtc_identity *identity, fa_error *err);

/* Loads nothing: false once it is known that there is none. */
bool fa_nvrtc_is_possible(void);
/* Loads nothing: "NVRTC 13.0", "NVRTC when it is needed", or why there is none. */
void fa_nvrtc_describe(char *text, size_t size);

/* True if the file is still the one that identity describes. */
bool fa_nvrtc_file_is(const fa_nvrtc_identity *identity);

/* For tests: makes fake, with this identity, the compiler from the next call on. NULL: load the real one
 * again. */
void fa_nvrtc_replace(const fa_nvrtc *fake, const fa_nvrtc_identity *identity);

#endif
