/* Kernels compiled at run time, with a fake NVRTC and driver: what is compiled, what comes from disk, and
 * what happens if neither works. */
#include "cases/base/sha256.h"
#include "gpu/fa.h"
#include "gpu/modules/cache.h"
#include "gpu/modules/kernel.h"
#include "gpu/modules/rtc.h"
#include "tests/fake_cuda/fake.h"
#include "tests/fake_cuda/nvrtc.h"
#include "tests/support/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64] = "/tmp/fa-nvrtc-XXXXXX";

/* A process that has loaded nothing yet, on a device of compute capability major.0 with its context. */
static void start(int major) {
  CUcontext context;
  fake_cuda_reset();
  fake.major = major;
  fa_cuda_driver_replace(fake_cuda_driver());
  fa_cuda_kernels_replace(fake_cubins, 2);
  const fa_cuda_driver *d = fa_cuda_driver_get(NULL);
  REQUIRE(d && d->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
          d->cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

static int count_files(const char *end) {
  int n = 0;
  DIR *dir = opendir(folder);
  if (!dir) return 0;
  for (struct dirent *e; (e = readdir(dir));) n += strstr(e->d_name, end) != NULL;
  closedir(dir);
  return n;
}

static void empty_folder(void) {
  char path[400];
  DIR *dir = opendir(folder);
  if (!dir) return;
  for (struct dirent *e; (e = readdir(dir));) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.') unlink(path);
  }
  closedir(dir);
}

/* A forward call with dropout at head dim 96: a kernel that is not in the build's list. */
static fa_status call(double dropout_p, fa_error *err) {
  static uint16_t memory[16 * 96] __attribute__((aligned(16)));
  static float lse[16];
  fa_attention a;
  fa_attention_init(&a);
  a.seqlen_q = a.seqlen_k = 16, a.head_dim = 96, a.scale = 0.1, a.dropout_p = dropout_p;
  CUdeviceptr at[2] = {0, 0};
  const fa_cuda_driver *d = fa_cuda_driver_get(NULL);
  REQUIRE(d->cuMemAlloc(&at[0], 5 * sizeof memory) == CUDA_SUCCESS &&
          d->cuMemAlloc(&at[1], sizeof lse) == CUDA_SUCCESS);
  for (int i = 0; i < 4; ++i) d->cuMemcpyHtoD(at[0] + (size_t)i * sizeof memory, memory, sizeof memory);
  uint16_t *first = (uint16_t *)at[0];
  a.q = first, a.k = first + 16 * 96, a.v = first + 2 * 16 * 96, a.o = first + 3 * 16 * 96;
  a.lse = (float *)at[1];
  a.q_stride = a.k_stride = a.v_stride = a.o_stride = fa_strides_dense(16, 1, 96);
  a.lse_stride = (fa_strides){16, 1, 16};
  const fa_status status = fa_forward(&a, NULL, 0, NULL, err);
  d->cuMemFree(at[0]);
  d->cuMemFree(at[1]);
  return status;
}

#define CALL(p, want)                                                                                        \
  do {                                                                                                       \
    fa_error e = {""};                                                                                       \
    const fa_status got = call(p, &e);                                                                       \
    CHECK_MSG(got == (want), "line %d: status %d, %s", __LINE__, (int)got, e.text);                          \
  } while (0)

static const char dropout_kernel[] = "flash_forward_f16_96_dropout";
static const char general_kernel[] = "flash_forward_f16_96_general";

static void describe(char *text, size_t size) {
  fa_error err = {""};
  CHECK_MSG(fa_describe(text, size, &err) == FA_OK, "%s", err.text);
}

static void test_cached(void) {
  char text[2000];
  empty_folder();
  fake_nvrtc_use(13, 0, "/proc/self/exe");
  start(9);
  CALL(0.1, FA_OK);
  CHECK_MSG(fake_compiler.n_compiled == 1 && strcmp(fake_compiler.arch, "sm_90a") == 0, "%d times for %s",
            fake_compiler.n_compiled, fake_compiler.arch);
  CHECK(fake_compiler.has_headers && fake_compiler.n_programs == 0);
  CHECK_MSG(strcmp(fake.last_kernel, dropout_kernel) == 0, "%s", fake.last_kernel);
  CHECK(count_files(".cubin") == 1 && count_files(".tmp") == 0);
  const int libraries = fake.n_libraries;
  CALL(0.2, FA_OK); /* in the same process: nothing is compiled, read or loaded */
  CHECK(fake_compiler.n_compiled == 1 && fake.n_libraries == libraries);
  CALL(0, FA_OK); /* and this one is in the list */
  CHECK(fake_compiler.n_compiled == 1 && strcmp(fake.last_kernel, "flash_forward_f16_96") == 0);
  describe(text, sizeof text);
  CHECK_MSG(strstr(text, "Fake GPU, sm_90") && strstr(text, "kernels for sm_80, sm_90a; NVRTC 13.0"), "%s",
            text);
  start(9); /* the next process: from disk, without even loading the compiler */
  fa_nvrtc_replace(NULL, NULL);
  setenv("FA_LIBNVRTC", "", 1); /* the same as unset, also for the key */
  CALL(0.1, FA_OK);
  CHECK(strcmp(fake.last_kernel, dropout_kernel) == 0);
  fa_nvrtc_describe(text, sizeof text);
  CHECK_MSG(strcmp(text, "NVRTC when it is needed") == 0, "%s", text);
  unsetenv("FA_LIBNVRTC");
}

/* Another device, another compiler, another file with the same compiler in it. */
static void test_versions(void) {
  empty_folder();
  fake_nvrtc_use(13, 0, "/proc/self/exe");
  start(9);
  CALL(0.1, FA_OK);
  start(8);
  CALL(0.1, FA_OK);
  CHECK(fake_compiler.n_compiled == 2 && strcmp(fake_compiler.arch, "sm_80") == 0);
  CHECK(count_files(".cubin") == 2);
  fake_nvrtc_use(13, 1, "/bin/sh");
  start(9);
  CALL(0.1, FA_OK);
  CHECK(fake_compiler.n_compiled == 0); /* what made the code is still there, unchanged */
  empty_folder();
  fake_nvrtc_use(13, 0, "not/there");
  CALL(0.1, FA_OK); /* still loaded */
  CHECK(fake_compiler.n_compiled == 0);
  start(9);
  CALL(0.1, FA_OK);
  CHECK(fake_compiler.n_compiled == 1);
  fake_nvrtc_use(13, 0, "/bin/sh");
  start(9);
  CALL(0.1, FA_OK);
  CHECK(fake_compiler.n_compiled == 0); /* made by a file that is gone, but of the same version */
  fake_nvrtc_use(13, 1, "/bin/sh");
  start(9);
  CALL(0.1, FA_OK);
  CHECK(fake_compiler.n_compiled == 1 && count_files(".cubin") == 1);
}

static void only_file(char *path, size_t size) {
  DIR *dir = opendir(folder);
  path[0] = 0;
  for (struct dirent *e; dir && (e = readdir(dir));)
    if (strstr(e->d_name, ".cubin")) snprintf(path, size, "%s/%s", folder, e->d_name);
  if (dir) closedir(dir);
}

/* Every byte of the file matters, and so does its length. A bad file is compiled again and replaced. */
static void test_damage(void) {
  char path[400];
  struct stat s;
  empty_folder();
  fake_nvrtc_use(13, 0, "/proc/self/exe");
  start(9);
  CALL(0.1, FA_OK);
  only_file(path, sizeof path);
  REQUIRE(stat(path, &s) == 0);
  const long size = (long)s.st_size;
  int n_missed = 0;
  for (long at = 0; at < size + 4; at += at < 160 ? 1 : 13) {
    const bool cut = at >= size || at % 5 == 0;
    const int fd = open(path, O_RDWR);
    unsigned char byte = 0;
    REQUIRE(fd >= 0);
    if (cut) {
      REQUIRE(ftruncate(fd, at < size ? at : at + 1) == 0);
    } else {
      REQUIRE(pread(fd, &byte, 1, at) == 1);
      byte ^= 1;
      REQUIRE(pwrite(fd, &byte, 1, at) == 1);
    }
    close(fd);
    start(9);
    fake_compiler.n_compiled = 0;
    CALL(0.1, FA_OK);
    n_missed += fake_compiler.n_compiled != 1;
    REQUIRE(stat(path, &s) == 0 && s.st_size == size);
  }
  CHECK_MSG(n_missed == 0, "%d kinds of damage were not seen", n_missed);
  start(9);
  fake_compiler.n_compiled = 0;
  CALL(0.1, FA_OK);
  CHECK(fake_compiler.n_compiled == 0); /* replaced */
  if (geteuid() == 0) {                 /* owned by somebody else: not trusted */
    REQUIRE(chown(path, 65534, 65534) == 0);
    start(9);
    CALL(0.1, FA_OK);
    CHECK(fake_compiler.n_compiled == 1);
  }
  REQUIRE(unlink(path) == 0 && mkdir(path, 0700) == 0); /* in the way: nothing can be stored */
  start(9);
  CALL(0.1, FA_OK);
  REQUIRE(rmdir(path) == 0 && count_files(".tmp") == 0);
}

/* Code in another format is ignored: a header as an older version may have written it. */
static void test_older_format(void) {
  char path[400], hex[65];
  char all[4096];
  const char key[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  const fa_nvrtc_identity id = {.major = 13};
  fa_nvrtc_identity from;
  size_t n = 0;
  empty_folder();
  CHECK(fa_cubin_cache_write(key, &id, "code", 5));
  void *code = fa_cubin_cache_read(key, &from, &n);
  CHECK(code && n == 5 && strcmp(code, "code") == 0 && from.major == 13);
  free(code);
  only_file(path, sizeof path);
  FILE *f = fopen(path, "r+b");
  REQUIRE(f);
  n = fread(all, 1, sizeof all, f);
  fa_cubin_cache_header *h = (fa_cubin_cache_header *)(void *)all;
  h->format -= 1;
  memset(h->sha256, 0, sizeof h->sha256);
  fa_sha256 s;
  fa_sha256_init(&s);
  fa_sha256_add(&s, all, n);
  fa_sha256_hex(&s, hex);
  memcpy(h->sha256, hex, sizeof hex);
  rewind(f);
  CHECK(fwrite(all, 1, n, f) == n);
  fclose(f);
  CHECK(!fa_cubin_cache_read(key, &from, &n));
  CHECK(fa_cubin_cache_write(key, &id, "code", 5));
  CHECK(!fa_cubin_cache_read("another key", &from, &n));
}

static void test_no_folder(void) {
  char path[200];
  fake_nvrtc_use(13, 0, "/proc/self/exe");
  for (int i = 0; i < 3; ++i) {
    setenv("FA_CACHE_DIR", i == 0 ? "/proc/not/writable" : i == 1 ? "/dev/null/x" : "", 1);
    if (i == 2) {
      unsetenv("XDG_CACHE_HOME");
      unsetenv("HOME");
    }
    start(9);
    CALL(0.1, FA_OK);
    CHECK_MSG(fake_compiler.n_compiled == i + 1 && strcmp(fake.last_kernel, dropout_kernel) == 0,
              "place %d: compiled %d times", i, fake_compiler.n_compiled);
  }
  fa_cubin_cache_folder(path, sizeof path);
  CHECK(!path[0]);
  setenv("HOME", "/home/x", 1);
  fa_cubin_cache_folder(path, sizeof path);
  CHECK_MSG(strcmp(path, "/home/x/.cache/fa-verify") == 0, "%s", path);
  setenv("XDG_CACHE_HOME", "/cache", 1);
  fa_cubin_cache_folder(path, sizeof path);
  CHECK_MSG(strcmp(path, "/cache/fa-verify") == 0, "%s", path);
  setenv("XDG_CACHE_HOME", "relative", 1);
  fa_cubin_cache_folder(path, sizeof path);
  CHECK_MSG(strcmp(path, "/home/x/.cache/fa-verify") == 0, "%s", path);
  setenv("FA_CACHE_DIR", folder, 1);
}

static void test_missing_compiler(void) {
  char text[2000];
  fa_error err = {""};
  empty_folder();
  fa_nvrtc_replace(NULL, NULL);
  setenv("FA_LIBNVRTC", "libnvrtc-is-not-here.so", 1);
  start(9);
  CALL(0.1, FA_OK);
  CHECK_MSG(strcmp(fake.last_kernel, general_kernel) == 0, "%s", fake.last_kernel);
  describe(text, sizeof text);
  CHECK_MSG(strstr(text, "; no NVRTC: libnvrtc-is-not-here.so"), "%s", text);
  start(10); /* and no code that fits */
  CHECK(call(0, &err) == FA_ERR_UNSUPPORTED);
  CHECK_MSG(strstr(err.text, "no NVRTC: libnvrtc-is-not-here.so"), "%s", err.text);
  setenv("FA_NVRTC", "always", 1);
  start(9);
  CHECK(call(0, &err) == FA_ERR_UNSUPPORTED && fa_describe(text, sizeof text, &err) == FA_ERR_UNSUPPORTED);
  unsetenv("FA_NVRTC");
  fa_nvrtc_replace(NULL, NULL);
  setenv("FA_LIBNVRTC", "libm.so.6", 1);
  CHECK(!fa_nvrtc_get(NULL, &err));
  CHECK_MSG(strstr(err.text, "libm.so.6 has no nvrtcVersion"), "%s", err.text);
  unsetenv("FA_LIBNVRTC");
}

static void test_compile_error(void) {
  char text[2000];
  fa_error err = {""};
  empty_folder();
  fake_nvrtc_use(13, 0, "/proc/self/exe");
  fake_compiler.fail_with = FA_NVRTC_ERROR_COMPILATION;
  start(9);
  for (int i = 0; i < 3; ++i) CALL(0.1, FA_OK);
  CHECK(fake_compiler.n_compiled == 1 && fake_compiler.n_programs == 0); /* not tried again */
  CHECK_MSG(strcmp(fake.last_kernel, general_kernel) == 0, "%s", fake.last_kernel);
  describe(text, sizeof text);
  CHECK_MSG(strstr(text, "general kernels instead: compiling flash/forward: NVRTC_ERROR_COMPILATION: line 7: "
                         "this fake does not like it"),
            "%s", text);
  setenv("FA_NVRTC", "always", 1);
  start(9);
  CHECK(call(0, &err) == FA_ERR_UNSUPPORTED);
  CHECK_MSG(strstr(err.text, "line 7: this fake does not like it"), "%s", err.text);
  CHECK(fake.n_launches == 0 && count_files("") <= 2);
  unsetenv("FA_NVRTC");
}

static void test_policy(void) {
  fa_error err = {""};
  empty_folder();
  fake_nvrtc_use(13, 0, "/proc/self/exe");
  setenv("FA_NVRTC", "off", 1);
  start(9);
  CALL(0.1, FA_OK);
  CHECK(fake_compiler.n_compiled == 0 && strcmp(fake.last_kernel, general_kernel) == 0);
  start(10);
  CHECK(call(0, &err) == FA_ERR_UNSUPPORTED);
  CHECK_MSG(strstr(err.text,
                   "compute capability 10.0; this build has kernels for sm_80, sm_90a, and makes none "
                   "(FA_NVRTC=off)"),
            "%s", err.text);
  setenv("FA_NVRTC", "auto", 1);
  start(10);
  CALL(0, FA_OK);
  CHECK(fake_compiler.n_compiled == 1 && strcmp(fake_compiler.arch, "sm_100") == 0);
  start(12); /* which this NVRTC does not know */
  CHECK(call(0, &err) == FA_ERR_UNSUPPORTED);
  CHECK_MSG(strstr(err.text, "NVRTC cannot compile these kernels for compute capability 12.0"), "%s",
            err.text);
  setenv("FA_NVRTC", "always", 1);
  start(9);
  CALL(0, FA_OK);
  CHECK(fake_compiler.n_compiled == 2 && strcmp(fake.last_kernel, "flash_forward_f16_96") == 0);
  setenv("FA_NVRTC", "often", 1);
  CHECK(call(0, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "FA_NVRTC=often: off, auto or always"), "%s", err.text);
  unsetenv("FA_NVRTC");
}

/* Eight processes that write and read the same four files, while the limit makes them delete each other's. */
static void test_concurrent(void) {
  static const size_t bytes = 40000;
  empty_folder();
  setenv("FA_CACHE_MEGABYTES", "0.09", 1); /* two of them */
  for (int process = 0; process < 8; ++process) {
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid > 0) continue;
    int n_wrong = 0;
    char *code = malloc(bytes), key[FA_CACHE_KEY_SIZE];
    for (int i = 0; code && i < 60; ++i) {
      const int which = (i + process) % 4;
      const fa_nvrtc_identity id = {.major = which};
      fa_nvrtc_identity from;
      size_t n = 0;
      snprintf(key, sizeof key, "%064x", which + 1);
      memset(code, which, bytes);
      char *got = fa_cubin_cache_read(key, &from, &n);
      if (got && (n != bytes || memcmp(got, code, bytes) != 0 || from.major != which)) ++n_wrong;
      free(got);
      fa_cubin_cache_write(key, &id, code, bytes);
      sched_yield();
    }
    free(code);
    _exit(n_wrong > 100 ? 100 : n_wrong);
  }
  for (int process = 0; process < 8; ++process) {
    int status = -1;
    wait(&status);
    CHECK_MSG(status == 0, "a process read wrong code %d times", WEXITSTATUS(status));
  }
  CHECK(count_files(".tmp") == 0 && count_files(".cubin") >= 1 && count_files(".cubin") <= 4);
}

/* Eight processes that need one kernel at once: one has it, the others wait, and find what it made. */
static void test_claims(void) {
  static const char key[FA_CACHE_KEY_SIZE] =
      "00000000000000000000000000000000000000000000000000000000000000aa";
  const fa_nvrtc_identity id = {.major = 13};
  int n_made = 0;
  empty_folder();
  for (int process = 0; process < 8; ++process) {
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid > 0) continue;
    fa_nvrtc_identity from;
    size_t n = 0;
    const int claim = fa_cubin_cache_claim(key);
    void *code = fa_cubin_cache_read(key, &from, &n);
    const bool made = !code;
    free(code);
    if (made) usleep(50000);
    if (made) fa_cubin_cache_write(key, &id, "code", 4);
    fa_cubin_cache_release(key, claim);
    _exit(claim < 0 ? 2 : made);
  }
  for (int process = 0; process < 8; ++process) {
    int status = -1;
    wait(&status);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    n_made += WEXITSTATUS(status) == 1;
  }
  CHECK_MSG(n_made == 1 && count_files(".tmp") == 0, "made %d times", n_made);
  setenv("FA_CACHE_DIR", "/proc/not/writable", 1);
  CHECK(fa_cubin_cache_claim(key) == -1);
  setenv("FA_CACHE_DIR", folder, 1);
}

static void test_eviction(void) {
  char key[FA_CACHE_KEY_SIZE], path[400];
  static char code[40000];
  const fa_nvrtc_identity id = {.major = 1};
  fa_nvrtc_identity from;
  size_t n;
  empty_folder();
  setenv("FA_CACHE_MEGABYTES", "0.09", 1);
  const struct timespec ages[3][2] = {{{1000, 0}, {1000, 0}}, {{2000, 0}, {2000, 0}}, {{3000, 0}, {3000, 0}}};
  for (int i = 0; i < 2; ++i) {
    snprintf(key, sizeof key, "%064x", i);
    CHECK(fa_cubin_cache_write(key, &id, code, sizeof code));
    snprintf(path, sizeof path, "%s/%s.cubin", folder, key);
    REQUIRE(utimensat(AT_FDCWD, path, ages[i], 0) == 0);
  }
  snprintf(path, sizeof path, "%s/%064x.cubin.77.tmp", folder, 9); /* of a writer that died long ago */
  FILE *f = fopen(path, "w");
  REQUIRE(f && fclose(f) == 0 && utimensat(AT_FDCWD, path, ages[0], 0) == 0);
  snprintf(path, sizeof path, "%s/notes.cubin", folder); /* not ours */
  f = fopen(path, "w");
  REQUIRE(f && fclose(f) == 0);
  snprintf(key, sizeof key, "%064x", 0);
  free(fa_cubin_cache_read(key, &from, &n)); /* used: now the other one is the oldest */
  snprintf(key, sizeof key, "%064x", 2);
  CHECK(fa_cubin_cache_write(key, &id, code, sizeof code));
  for (int i = 0; i < 3; ++i) {
    snprintf(key, sizeof key, "%064x", i);
    void *got = fa_cubin_cache_read(key, &from, &n);
    CHECK_MSG(!got == (i == 1), "file %d", i);
    free(got);
  }
  CHECK(count_files(".tmp") == 0 && count_files("notes") == 1);
  setenv("FA_CACHE_MEGABYTES", "0", 1);
  CHECK(fa_cubin_cache_write(key, &id, code, sizeof code) &&
        count_files(".cubin") == 2); /* the newest stays */
  unsetenv("FA_CACHE_MEGABYTES");
}

int main(void) {
  REQUIRE(mkdtemp(folder));
  unsetenv("FA_NVRTC");
  unsetenv("FA_LIBNVRTC");
  setenv("FA_CACHE_DIR", folder, 1);
  test_cached();
  test_versions();
  test_damage();
  test_older_format();
  test_no_folder();
  test_missing_compiler();
  test_compile_error();
  test_policy();
  test_concurrent();
  test_claims();
  test_eviction();
  empty_folder();
  rmdir(folder);
  fake_cuda_reset();
  return check_done();
}
