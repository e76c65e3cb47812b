/* Fails every allocation of the codec once: the result is FA_ERR_MEMORY or complete, and nothing leaks. The linker substitutes the
 * wrappers below for malloc and related functions. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "cases/recipe/case.h"
#include "tests/edges/taken.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);

static long countdown = -1; /* < 0: never fail; the allocation that sees 0 fails */
static long n_failed;

static int fails(void) {
  if (countdown < 0) return 0;
  if (countdown-- > 0) return 0;
  ++n_failed;
  return 1;
}
void *__wrap_malloc(size_t n) {
  return fails() ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size) {
  return fails() ? NULL : __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t n) {
  return fails() ? NULL : __real_realloc(p, n);
}
char *__wrap_strdup(const char *s) {
  return fails() ? NULL : __real_strdup(s);
}

static void *json_malloc(size_t n) {
  return __wrap_malloc(n);
}

static fa_status generate(const char *profile, uint64_t seed, int64_t index, fa_case *out, fa_error *err) {
  (void)profile, (void)seed, (void)index;
  if (fa_case_init(out) == FA_OK) return FA_OK;
  return fa_fail(err, FA_ERR_MEMORY, "out of memory");
}

static const char *const files[] = {
    "{\"fa_cases\": 1, \"defaults\": {\"name\": \"d\", \"alibi\": {\"slopes\": [1, 2]}, \"heads_q\": 2}, "
    "\"cases\": "
    "[{\"cu_seqlens_q\": [0, 1, 2], \"cu_seqlens_k\": [0, 3, 5], \"alibi\": {}}, {\"note\": \"n\", "
    "\"batch\": 2, "
    "\"alibi\": {\"slopes\": [[1, 2], [3, 4]]}}]}",
    "{\"fa_cases\": 1, \"sweeps\": [{\"base\": {\"mask\": {\"type\": \"window\"}}, \"over\": {\"mask.left\": "
    "[1, 2], "
    "\"dropout.p\": [0.25], \"heads_q\": [1, 2], \"note\": [\"a\"]}}]}",
    "{\"fa_cases\": 1, \"random\": [{\"count\": 20, \"profile\": \"x\", \"seed\": \"3\"}]}",
    "{\"family\": \"flex\", \"seqlen_q\": 200, \"score_mod\": \"score\", \"mask_mod\": \"b\", \"buffers\": "
    "{\"z\": "
    "{\"shape\": [3]}, \"y\": {}}, \"block_sparse\": {\"kv_num_blocks\": [[[1, 1]]], \"kv_indices\": [[[[0, "
    "7], [1, "
    "7]]]], \"full_kv_num_blocks\": [[[1, 0]]], \"full_kv_indices\": [[[[1, 7], [1, 7]]]]}}",
    "{\"family\": \"kvcache\", \"batch\": 2, \"seqlen_k\": 8, \"kvcache\": {\"len\": [1, 2], \"new\": 1, "
    "\"batch_idx\": [1, 0], \"leftpad\": [1, 1], \"rotary\": {\"dim\": 4}}}\n{\"strides\": {\"q\": {\"gap\": "
    "[1, 0, "
    "0], \"expand\": [\"b\"]}}, \"fill\": {\"q\": \"zero\"}}\n{}",
    "{\"fa_cases\": 1, \"cases\": [{\"name\": \"x\"}, {\"nope\": 1}]}",
};

typedef fa_status read_fn(const char *text, fa_case_list *l, fa_error *err);

static fa_status parse(const char *text, fa_case_list *l, fa_error *err) {
  return fa_case_file_parse(text, strlen(text), "f", generate, l, err);
}

static fa_status load(const char *path, fa_case_list *l, fa_error *err) {
  return fa_case_file_load(path, generate, l, err);
}

static fa_status read_one(const char *text, fa_case_list *l, fa_error *err) {
  fa_case c;
  const fa_status status = fa_case_from_text(text, &c, err);
  (void)l;
  if (status == FA_OK) fa_case_free(&c);
  return status;
}

/* Reads again and again, with another allocation failing each time. */
static void test_reading(read_fn *read, const char *text, fa_status want) {
  fa_status status = FA_ERR_MEMORY;
  for (long n = 0; n < 5000; ++n) {
    fa_case_list l = {0};
    fa_error err = {""};
    long before = n_failed;
    countdown = n;
    status = read(text, &l, &err);
    countdown = -1;
    if (status != FA_OK) CHECK(l.n == 0 && err.text[0]);
    fa_case_list_free(&l);
    if (n_failed == before) break; /* no allocation failed */
    CHECK_MSG(status == FA_ERR_MEMORY, "status %d at allocation %ld: %s", status, n, err.text);
  }
  CHECK_MSG(status == want, "%s ended with %d", text, status);
}

static void test_load(void) {
  char path[] = "/tmp/fa-test-case-memory-XXXXXX";
  const int fd = mkstemp(path);
  REQUIRE(fd >= 0 && write(fd, "{}", 2) == 2 && close(fd) == 0);
  for (size_t f = 0; f < sizeof files / sizeof *files; ++f)
    test_reading(parse, files[f], strstr(files[f], "nope") ? FA_ERR_INPUT : FA_OK);
  test_reading(load, path, FA_OK);
  test_reading(read_one, "{\"name\": \"x\", \"seqlen_q\": 4}", FA_OK);
  unlink(path);
}

static void test_print_and_copy(void) {
  for (size_t f = 0; f + 1 < sizeof files / sizeof *files; ++f) {
    fa_case_list l = {0};
    REQUIRE(fa_case_file_parse(files[f], strlen(files[f]), "f", generate, &l, NULL) == FA_OK);
    for (int64_t i = 0; i < l.n && i < 4; ++i) {
      for (long n = 0; n < 5000; ++n) {
        fa_case copy;
        long before = n_failed;
        countdown = n;
        fa_status status = fa_case_copy(&copy, &l.v[i]);
        char *line = status == FA_OK ? fa_case_to_line(&l.v[i]) : NULL;
        countdown = -1;
        bool all = n_failed == before;
        CHECK_MSG((line != NULL) == all, "allocation %ld", n);
        free(line);
        if (status == FA_OK) fa_case_free(&copy);
        if (all) break;
      }
    }
    fa_case_list_free(&l);
  }
}

int main(void) {
  cJSON_InitHooks(&(cJSON_Hooks){json_malloc, free});
  size_t before = 0;
  for (int k = 0; k < 12; ++k) { /* at first the allocator keeps more and more for itself */
    test_load();
    test_print_and_copy();
    if (k == 8) before = bytes_taken();
  }
  CHECK_MSG(bytes_taken() < before + 500, "%zu bytes are kept", bytes_taken() - before);
  CHECK_MSG(n_failed > 500, "only %ld allocations failed", n_failed);
  return check_done();
}
