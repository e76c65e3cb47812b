#include "tests/fake_cuda/nvrtc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

fake_nvrtc fake_compiler;
static int version_major, version_minor;
/* Kernels of a call are compiled side by side: what this fake records is theirs together. */
static pthread_mutex_t recording = PTHREAD_MUTEX_INITIALIZER;

struct fa_nvrtc_program_object {
  char code[300], log[200];
};

static int version(int *major, int *minor) {
  *major = version_major;
  *minor = version_minor;
  return FA_NVRTC_SUCCESS;
}
static int count_archs(int *n) {
  *n = 4;
  return FA_NVRTC_SUCCESS;
}
static int list_archs(int *archs) {
  memcpy(archs, (int[]){80, 86, 90, 100}, 4 * sizeof *archs);
  return FA_NVRTC_SUCCESS;
}
static int create(fa_nvrtc_program *program, const char *text, const char *name, int n_headers,
                  const char *const *headers, const char *const *names) {
  bool stdint = false, tile = false;
  for (int i = 0; i < n_headers; ++i) {
    stdint |= strcmp(names[i], "stdint.h") == 0 && strstr(headers[i], "int64_t");
    tile |= strcmp(names[i], "gpu/kernels/parts/tile.cuh") == 0 && strlen(headers[i]) > 100;
  }
  if (!strstr(text, "FA_ONLY") || !name[0]) return 3;
  *program = calloc(1, sizeof **program);
  pthread_mutex_lock(&recording);
  fake_compiler.has_headers = stdint && tile;
  fake_compiler.n_programs += *program != NULL;
  pthread_mutex_unlock(&recording);
  return *program ? FA_NVRTC_SUCCESS : 1;
}
static int destroy(fa_nvrtc_program *program) {
  pthread_mutex_lock(&recording);
  --fake_compiler.n_programs;
  pthread_mutex_unlock(&recording);
  free(*program);
  *program = NULL;
  return FA_NVRTC_SUCCESS;
}
static int compile(fa_nvrtc_program p, int n_options, const char *const *options) {
  pthread_mutex_lock(&recording);
  ++fake_compiler.n_compiled;
  fake_compiler.speed[0] = 0;
  for (int i = 0; i < n_options; ++i) {
    const char *value = strchr(options[i], '=');
    if (strncmp(options[i], "-DFA_ONLY=", 10) == 0)
      snprintf(p->code, sizeof p->code, "\177ELF %s", value + 1);
    if (strncmp(options[i], "--Ofast-compile=", 16) == 0)
      snprintf(fake_compiler.speed, sizeof fake_compiler.speed, "%s", value + 1);
    if (strncmp(options[i], "--gpu-architecture=", 19) == 0)
      snprintf(fake_compiler.arch, sizeof fake_compiler.arch, "%s", value + 1);
  }
  pthread_mutex_unlock(&recording);
  if (fake_compiler.fail_with) snprintf(p->log, sizeof p->log, "line 7: this fake does not like it");
  return fake_compiler.fail_with;
}
static int log_size(fa_nvrtc_program p, size_t *bytes) {
  *bytes = strlen(p->log) + 1;
  return FA_NVRTC_SUCCESS;
}
static int get_log(fa_nvrtc_program p, char *log) {
  memcpy(log, p->log, strlen(p->log) + 1);
  return FA_NVRTC_SUCCESS;
}
static int code_size(fa_nvrtc_program p, size_t *bytes) {
  *bytes = strlen(p->code) + 1;
  return FA_NVRTC_SUCCESS;
}
static int get_code(fa_nvrtc_program p, char *code) {
  memcpy(code, p->code, strlen(p->code) + 1);
  return FA_NVRTC_SUCCESS;
}
static const char *error_string(int code) {
  return code == FA_NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "another error";
}

void fake_nvrtc_use(int major, int minor, const char *file) {
  static const fa_nvrtc functions = {.nvrtcVersion = version,
                                     .nvrtcGetNumSupportedArchs = count_archs,
                                     .nvrtcGetSupportedArchs = list_archs,
                                     .nvrtcCreateProgram = create,
                                     .nvrtcDestroyProgram = destroy,
                                     .nvrtcCompileProgram = compile,
                                     .nvrtcGetProgramLogSize = log_size,
                                     .nvrtcGetProgramLog = get_log,
                                     .nvrtcGetCUBINSize = code_size,
                                     .nvrtcGetCUBIN = get_code,
                                     .nvrtcGetErrorString = error_string};
  fa_nvrtc_identity id = {.major = major, .minor = minor};
  struct stat s;
  snprintf(id.file, sizeof id.file, "%s", file);
  if (stat(file, &s) == 0) {
    id.file_bytes = s.st_size;
    id.file_mtime_ns = s.st_mtim.tv_sec * 1000000000LL + s.st_mtim.tv_nsec;
  }
  version_major = major;
  version_minor = minor;
  fake_compiler = (fake_nvrtc){0};
  fa_nvrtc_replace(&functions, &id);
}
