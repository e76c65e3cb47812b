#include "gpu/modules/rtc.h"

#include "cases/base/sha256.h"
#include "gpu/driver/nvrtc.h"
#include "gpu/modules/ahead.h"
#include "gpu/modules/cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 16, MAX_ARCHS = 128, MAX_HEADERS = 160 };

fa_status fa_rtc_policy_get(fa_rtc_policy *out, fa_error *err) {
  static const char *const names[] = {"off", "auto", "always"};
  const char *text = getenv("FA_NVRTC");
  *out = FA_RTC_AUTO;
  if (!text || !*text) return FA_OK;
  for (int i = 0; i < 3; ++i) {
    if (strcmp(text, names[i]) != 0) continue;
    *out = (fa_rtc_policy)i;
    return FA_OK;
  }
  return fa_fail(err, FA_ERR_INPUT, "FA_NVRTC=%s: off, auto or always", text);
}

/* ---- sources ---- */

const char *fa_kernel_source_find(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "gpu/kernels/%s.cu", name);
  for (const fa_kernel_source *s = fa_kernel_sources; s->name; ++s)
    if (strcmp(s->name, path) == 0) return s->text;
  return NULL;
}

/* NVRTC has no system headers of its own. */
static const fa_kernel_source system_headers[] = {
    {"stdint.h", "#pragma once\n"
                 "typedef signed char int8_t;\ntypedef unsigned char uint8_t;\n"
                 "typedef short int16_t;\ntypedef unsigned short uint16_t;\n"
                 "typedef int int32_t;\ntypedef unsigned int uint32_t;\n"
                 "typedef long int64_t;\ntypedef unsigned long uint64_t;\n"
                 "typedef unsigned long uintptr_t;\n"},
    {"stddef.h", "#pragma once\ntypedef unsigned long size_t;\ntypedef long ptrdiff_t;\n"}};

static int list_headers(const char *names[MAX_HEADERS], const char *texts[MAX_HEADERS]) {
  int n = 0;
  for (size_t i = 0; i < sizeof system_headers / sizeof *system_headers; ++i) {
    names[n] = system_headers[i].name;
    texts[n++] = system_headers[i].text;
  }
  for (const fa_kernel_source *s = fa_kernel_sources; s->name; ++s) {
    if (strcmp(s->name + strlen(s->name) - 3, ".cu") == 0) continue;
    FA_ASSERT(n < MAX_HEADERS); /* a build with more headers must fail here */
    names[n] = s->name;
    texts[n++] = s->text;
  }
  return n;
}

/* ---- the key ---- */

static void add_text(fa_sha256 *s, const char *text) {
  fa_sha256_add(s, text ? text : "", text ? strlen(text) + 1 : 1); /* the NUL separates adjacent texts */
}

/* SHA-256 over half a megabyte of headers would take most of the time of reading a kernel from disk. Nobody
 * forges these headers: they are this program's own, and only need to be distinguished from another
 * version's. */
static uint64_t hash_text(uint64_t hash, const char *text) {
  const size_t n = strlen(text) + 1;
  for (size_t i = 0; i < n; i += 8) {
    uint64_t word = 0;
    memcpy(&word, text + i, n - i < 8 ? n - i : 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

static char headers_key[FA_CACHE_KEY_SIZE];
static void hash_headers(void) {
  const char *names[MAX_HEADERS], *texts[MAX_HEADERS];
  uint64_t hash[2] = {14695981039346656037u, 1099511628211u};
  const int n = list_headers(names, texts);
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < 2; ++k) hash[k] = hash_text(hash_text(hash[k], names[i]), texts[i]);
  snprintf(headers_key, sizeof headers_key, "%016llx%016llx", (unsigned long long)hash[0],
           (unsigned long long)hash[1]);
}

/* What is compiled, without for which device and by which compiler. */
static void add_unit(fa_sha256 *s, const fa_rtc_unit *unit) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, hash_headers);
  add_text(s, headers_key);
  add_text(s, unit->text);
  for (int i = 0; i < unit->n_options; ++i) add_text(s, unit->options[i]);
}

void fa_rtc_unit_key(const fa_rtc_unit *unit, char key[FA_AHEAD_KEY_SIZE]) {
  fa_sha256 s;
  fa_sha256_init(&s);
  add_unit(&s, unit);
  fa_sha256_hex(&s, key);
}

static void make_key(const fa_rtc_unit *unit, int major, int minor, char key[FA_CACHE_KEY_SIZE]) {
  static const char *const where[] = {"FA_LIBNVRTC", "LD_LIBRARY_PATH", "CUDA_PATH", "CUDA_HOME"};
  char device[64];
  fa_sha256 s;
  fa_sha256_init(&s);
  snprintf(device, sizeof device, "format %d, %d.%d", FA_CACHE_FORMAT, major, minor);
  add_text(&s, device);
  add_unit(&s, unit);
  for (size_t i = 0; i < sizeof where / sizeof *where; ++i) add_text(&s, getenv(where[i]));
  fa_sha256_hex(&s, key);
}

/* ---- compiling ---- */

/* "sm_90a" for 9.0; otherwise the newest architecture known to NVRTC with the same major number, which the
 * device can run. */
static fa_status choose_arch(const fa_nvrtc *nvrtc, int major, int minor, char *out, size_t size,
                             fa_error *err) {
  int archs[MAX_ARCHS], n = 0, best = -1;
  if (nvrtc->nvrtcGetNumSupportedArchs(&n) != FA_NVRTC_SUCCESS || n > MAX_ARCHS ||
      nvrtc->nvrtcGetSupportedArchs(archs) != FA_NVRTC_SUCCESS)
    n = 0;
  for (int i = 0; i < n; ++i)
    if (archs[i] / 10 == major && archs[i] % 10 <= minor && archs[i] > best) best = archs[i];
  if (major < 8 || best < 0)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "NVRTC cannot compile these kernels for compute capability %d.%d",
                   major, minor);
  snprintf(out, size, "--gpu-architecture=sm_%d%s", best, best == 90 ? "a" : "");
  return FA_OK;
}

static char *read_log(const fa_nvrtc *nvrtc, fa_nvrtc_program program) {
  size_t bytes = 0;
  if (nvrtc->nvrtcGetProgramLogSize(program, &bytes) != FA_NVRTC_SUCCESS) return NULL;
  char *log = calloc(1, bytes + 1);
  if (log && bytes) nvrtc->nvrtcGetProgramLog(program, log);
  return log;
}

static fa_status fail_compiling(const fa_nvrtc *nvrtc, const char *name, int code, const char *log,
                                fa_error *err) {
  return fa_fail(err, FA_ERR_UNSUPPORTED, "compiling %s: %s%s%.700s", name, nvrtc->nvrtcGetErrorString(code),
                 log && *log ? ": " : "", log ? log : "");
}

static fa_status take_code(const fa_nvrtc *nvrtc, fa_nvrtc_program program, const char *name,
                           fa_rtc_code *out, fa_error *err) {
  int code = nvrtc->nvrtcGetCUBINSize(program, &out->cubin_bytes);
  if (code != FA_NVRTC_SUCCESS || out->cubin_bytes == 0)
    return fail_compiling(nvrtc, name, code, "no code", err);
  out->cubin = malloc(out->cubin_bytes);
  if (!out->cubin) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  code = nvrtc->nvrtcGetCUBIN(program, out->cubin);
  return code == FA_NVRTC_SUCCESS ? FA_OK : fail_compiling(nvrtc, name, code, NULL, err);
}

static fa_status compile(const fa_nvrtc *nvrtc, const fa_rtc_unit *unit, int major, int minor,
                         fa_rtc_code *out, fa_error *err) {
  const char *names[MAX_HEADERS], *texts[MAX_HEADERS], *options[MAX_OPTIONS + 3];
  char arch[64];
  fa_nvrtc_program program = NULL;
  int n = 0;
  fa_status status = choose_arch(nvrtc, major, minor, arch, sizeof arch, err);
  if (status != FA_OK) return status;
  options[n++] = arch;
  options[n++] = "-std=c++17";
  options[n++] = "-default-device"; /* host code in headers is harmless there */
  for (int i = 0; i < unit->n_options && i < MAX_OPTIONS; ++i) options[n++] = unit->options[i];
  const int n_headers = list_headers(names, texts);
  int code = nvrtc->nvrtcCreateProgram(&program, unit->text, unit->name, n_headers, texts, names);
  if (code != FA_NVRTC_SUCCESS) return fail_compiling(nvrtc, unit->name, code, NULL, err);
  code = nvrtc->nvrtcCompileProgram(program, n, options);
  out->log = read_log(nvrtc, program);
  status = code == FA_NVRTC_SUCCESS ? take_code(nvrtc, program, unit->name, out, err)
                                    : fail_compiling(nvrtc, unit->name, code, out->log, err);
  nvrtc->nvrtcDestroyProgram(&program);
  return status;
}

/* True if this compiler would make the same code as that one. NVRTC is not loaded if its file is
 * unchanged. */
static bool is_up_to_date(const fa_nvrtc_identity *made_by) {
  fa_nvrtc_identity now;
  if (fa_nvrtc_file_is(made_by)) return true;
  return fa_nvrtc_get(&now, NULL) && now.major == made_by->major && now.minor == made_by->minor;
}

static bool read_from_disk(const char *key, fa_rtc_code *out) {
  fa_nvrtc_identity made_by;
  out->cubin = fa_cubin_cache_read(key, &made_by, &out->cubin_bytes);
  out->from_disk = out->cubin && is_up_to_date(&made_by);
  if (!out->from_disk) fa_rtc_code_free(out);
  return out->from_disk;
}

static bool copy_from_build(const fa_rtc_unit *unit, int major, int minor, fa_rtc_code *out) {
  char key[FA_AHEAD_KEY_SIZE];
  fa_rtc_policy policy;
  if (fa_rtc_policy_get(&policy, NULL) != FA_OK || policy == FA_RTC_ALWAYS) return false;
  fa_rtc_unit_key(unit, key);
  const void *code = fa_ahead_find(key, major, minor, &out->cubin_bytes);
  out->cubin = code ? malloc(out->cubin_bytes) : NULL;
  if (out->cubin) memcpy(out->cubin, code, out->cubin_bytes);
  out->from_build = out->cubin != NULL;
  return out->from_build;
}

fa_status fa_rtc_build(const fa_rtc_unit *unit, int major, int minor, fa_rtc_code *out, fa_error *err) {
  char key[FA_CACHE_KEY_SIZE];
  fa_nvrtc_identity id;
  fa_error own;
  fa_status status = FA_OK;
  if (!err) err = &own;
  memset(out, 0, sizeof *out);
  if (copy_from_build(unit, major, minor, out)) return FA_OK;
  make_key(unit, major, minor, key);
  if (read_from_disk(key, out)) return FA_OK;
  const fa_nvrtc *nvrtc = fa_nvrtc_get(&id, err);
  if (!nvrtc) return FA_ERR_UNSUPPORTED;
  const int claim = fa_cubin_cache_claim(key);
  if (!read_from_disk(key, out)) { /* nobody else has compiled it meanwhile */
    status = compile(nvrtc, unit, major, minor, out, err);
    if (status != FA_OK)
      fa_rtc_code_free(out);
    else
      fa_cubin_cache_write(key, &id, out->cubin, out->cubin_bytes);
  }
  fa_cubin_cache_release(key, claim);
  return status;
}

void fa_rtc_code_free(fa_rtc_code *code) {
  free(code->cubin);
  free(code->log);
  memset(code, 0, sizeof *code);
}
