#include "gpu/driver/nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const fa_nvrtc *the_compiler;
static const fa_nvrtc *fake_compiler;
static fa_nvrtc loaded;
static fa_nvrtc_identity the_identity;
static fa_error why_not; /* "" until the first attempt */

static void look_at_file(fa_nvrtc_identity *id) {
  struct stat s;
  if (!id->file[0] || stat(id->file, &s) != 0) memset(&s, 0, sizeof s);
  id->file_bytes = s.st_size;
  id->file_mtime_ns = s.st_mtim.tv_sec * 1000000000LL + s.st_mtim.tv_nsec;
}

bool fa_nvrtc_file_is(const fa_nvrtc_identity *identity) {
  fa_nvrtc_identity now = *identity;
  look_at_file(&now);
  return identity->file_bytes > 0 && now.file_bytes == identity->file_bytes &&
         now.file_mtime_ns == identity->file_mtime_ns;
}

/* Looks up the functions of library by name; false: one is missing, and *err says which. */
static bool look_up(void *library, const char *file, fa_nvrtc *out, fa_error *err) {
  const char *missing = NULL;
#define LOOK_UP(function, ...)                                                                               \
  *(void **)&out->function = dlsym(library, #function);                                                      \
  if (!out->function && !missing) missing = #function;
  FA_NVRTC_FUNCTIONS(LOOK_UP)
  LOOK_UP(nvrtcGetErrorString)
#undef LOOK_UP
  if (missing) fa_fail(err, FA_ERR_UNSUPPORTED, "%s has no %s: NVRTC 11.2 or later is needed", file, missing);
  return !missing;
}

/* Opens the first name that works; the message is the first name's. RTLD_LAZY, because the library is
 * large. */
static void *open_library(char *file, size_t size, fa_error *err) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  const char *const folders[] = {"", getenv("CUDA_PATH"), getenv("CUDA_HOME"), "/usr/local/cuda"};
  const char *asked = getenv("FA_LIBNVRTC");
  err->text[0] = 0;
  if (asked && *asked) {
    snprintf(file, size, "%s", asked);
    void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (!library) fa_fail(err, FA_ERR_UNSUPPORTED, "no NVRTC: %s", dlerror());
    return library;
  }
  for (size_t f = 0; f < sizeof folders / sizeof *folders; ++f) {
    for (size_t n = 0; folders[f] && n < sizeof names / sizeof *names; ++n) {
      snprintf(file, size, "%s%s%s", folders[f], *folders[f] ? "/lib64/" : "", names[n]);
      void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
      if (library) return library;
      if (!err->text[0]) fa_fail(err, FA_ERR_UNSUPPORTED, "no NVRTC: %s", dlerror());
    }
  }
  return NULL;
}

/* The library is never unloaded. */
static const fa_nvrtc *load(fa_nvrtc_identity *id, fa_error *err) {
  char file[512];
  Dl_info where;
  void *library = open_library(file, sizeof file, err);
  if (!library || !look_up(library, file, &loaded, err)) return NULL;
  if (dladdr(*(void **)&loaded.nvrtcVersion, &where) && where.dli_fname) {
    char *path = realpath(where.dli_fname, NULL);
    if (path && strlen(path) < sizeof id->file) snprintf(id->file, sizeof id->file, "%s", path);
    free(path);
  }
  look_at_file(id);
  const int code = loaded.nvrtcVersion(&id->major, &id->minor);
  if (code == FA_NVRTC_SUCCESS) return &loaded;
  fa_fail(err, FA_ERR_UNSUPPORTED, "no NVRTC: %s: nvrtcVersion: %s", file, loaded.nvrtcGetErrorString(code));
  return NULL;
}

const fa_nvrtc *fa_nvrtc_get(fa_nvrtc_identity *identity, fa_error *err) {
  pthread_mutex_lock(&lock);
  if (!the_compiler && fake_compiler) the_compiler = fake_compiler;
  if (!the_compiler && !why_not.text[0]) {
    memset(&the_identity, 0, sizeof the_identity);
    the_compiler = load(&the_identity, &why_not);
  }
  const fa_nvrtc *compiler = the_compiler;
  if (!compiler && err) *err = why_not;
  if (identity) *identity = the_identity;
  pthread_mutex_unlock(&lock);
  return compiler;
}

bool fa_nvrtc_is_possible(void) {
  pthread_mutex_lock(&lock);
  const bool possible = the_compiler || !why_not.text[0];
  pthread_mutex_unlock(&lock);
  return possible;
}

void fa_nvrtc_describe(char *text, size_t size) {
  pthread_mutex_lock(&lock);
  if (the_compiler)
    snprintf(text, size, "NVRTC %d.%d", the_identity.major, the_identity.minor);
  else
    snprintf(text, size, "%s", why_not.text[0] ? why_not.text : "NVRTC when it is needed");
  pthread_mutex_unlock(&lock);
}

void fa_nvrtc_replace(const fa_nvrtc *fake, const fa_nvrtc_identity *identity) {
  pthread_mutex_lock(&lock);
  why_not.text[0] = 0;
  the_compiler = NULL;
  fake_compiler = fake;
  memset(&the_identity, 0, sizeof the_identity);
  if (identity) the_identity = *identity;
  pthread_mutex_unlock(&lock);
}
