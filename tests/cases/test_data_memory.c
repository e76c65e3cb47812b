/* Fails every allocation of the data side once: building, cloning, reading and writing return FA_ERR_MEMORY
 * (or a complete result), own nothing afterwards, and leak nothing (which the sanitizer build checks). */
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "cases/tensors/safetensors.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
char *__real_strdup(const char *s);
int __real_posix_memalign(void **p, size_t alignment, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
char *__wrap_strdup(const char *s);
int __wrap_posix_memalign(void **p, size_t alignment, size_t n);

static long countdown = -1; /* < 0: never fail; the allocation that sees 0 fails */

static size_t asked; /* bytes, of malloc */

static int fails(void) {
  return countdown >= 0 && countdown-- == 0;
}
void *__wrap_malloc(size_t n) {
  asked += n;
  return fails() ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size) {
  return fails() ? NULL : __real_calloc(n, size);
}
char *__wrap_strdup(const char *s) {
  return fails() ? NULL : __real_strdup(s);
}
int __wrap_posix_memalign(void **p, size_t alignment, size_t n) {
  return fails() ? 12 : __real_posix_memalign(p, alignment, n);
}

/* Fails allocation 0, 1, 2 ... of run() until it succeeds; returns their number. */
static long sweep(fa_status (*run)(void *, fa_error *), void *context) {
  for (long i = 0; i < 10000; ++i) {
    fa_error err = {""};
    countdown = i;
    const fa_status status = run(context, &err);
    const int unused = countdown >= 0;
    countdown = -1;
    if (unused) {
      CHECK_MSG(status == FA_OK, "%s", err.text);
      return i;
    }
    CHECK_MSG(status == FA_ERR_MEMORY && strstr(err.text, "memory"), "allocation %ld: %d %s", i, (int)status,
              err.text);
  }
  CHECK(!"an end");
  return 0;
}

static fa_status run_build(void *context, fa_error *err) {
  fa_tensors set, copy;
  fa_status status = fa_case_build(context, &set, err);
  for (int id = 0; id < FA_T_COUNT; ++id) CHECK(status == FA_OK || set.buffer[id].base == NULL);
  if (status != FA_OK) return status;
  status = fa_tensors_clone(&copy, &set, err);
  for (int id = 0; id < FA_T_COUNT; ++id) CHECK(status == FA_OK || copy.buffer[id].base == NULL);
  fa_tensors_free(&set);
  fa_tensors_free(&copy);
  return status;
}

static size_t asked_by(const fa_case *c, int n_threads) {
  fa_tensors set;
  asked = 0;
  REQUIRE(fa_case_build_with(c, n_threads, NULL, &set, NULL) == FA_OK);
  fa_tensors_free(&set);
  return asked;
}

/* Each thread that fills has room for the longest row, which is one of the bias. */
static void check_rows_of_threads(const fa_case *c) {
  CHECK(asked_by(c, 4) >= asked_by(c, 1) + 3 * (size_t)c->problem.seqlen_k * sizeof(double));
}

static char path[] = "/tmp/fa-test-memory-XXXXXX";

static fa_status run_write(void *context, fa_error *err) {
  const float x[2] = {1, 2};
  const fa_tensor t = {FA_F32, 1, {2}, {1}, (char *)(uintptr_t)x}, *tensors[] = {&t, &t};
  const char *names[] = {"a", "b"}, *keys[] = {"k"}, *values[] = {"v"};
  (void)context;
  return fa_safetensors_write(path, names, tensors, 2, keys, values, 1, err);
}

/* A header from which something is missing is none. */
static void check_headers(void) {
  cJSON_InitHooks(&(cJSON_Hooks){__wrap_malloc, free});
  CHECK(sweep(run_write, NULL) > 20);
  cJSON_InitHooks(NULL);
}

static fa_status run_file(void *context, fa_error *err) {
  fa_safetensors f;
  fa_status status = run_write(context, err);
  if (status == FA_OK) status = fa_safetensors_open(path, &f, err);
  if (status == FA_OK) fa_safetensors_close(&f);
  return status;
}

int main(void) {
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem_set_family(&c.problem, FA_FLEX);
  c.problem.seqlen_q = 20, c.problem.seqlen_k = 30;
  c.problem.bias = (fa_bias){true, true, true, true, true};
  c.problem.block_sparse = (fa_block_sparse){
      .present = true, .source = FA_BLOCKS_DENSITY, .q_block = 8, .kv_block = 8, .density = 0.5};
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  c.fill[FA_T_DO] = FA_FILL_DO_ALIGNED;
  CHECK(sweep(run_build, &c) > 25);
  c.problem.seqlen_k = 300;
  check_rows_of_threads(&c);
  fa_case_free(&c);
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem_set_family(&c.problem, FA_KVCACHE);
  c.problem.seqlen_k = 16;
  c.problem.kvcache = (fa_kvcache){.present = true, .n_new = 2, .page_size = 4, .rotary_dim = 4};
  REQUIRE(fa_int32_array_set(&c.problem.kvcache.len, (int32_t[]){5}, 1) == FA_OK);
  CHECK(sweep(run_build, &c) > 15);
  fa_case_free(&c);
  const int fd = mkstemp(path);
  REQUIRE(fd >= 0);
  close(fd);
  CHECK(sweep(run_file, NULL) > 10);
  check_headers();
  unlink(path);
  return check_done();
}
