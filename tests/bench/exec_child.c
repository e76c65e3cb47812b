/* A child of exec:CMD that costs next to nothing, for tests/bench/exec.py: bench_exec_child VERSION ANSWERS.safetensors
 * It answers every run with the same outputs, those of the file, so that what is measured is the way to a child and back.
 * At its end it says on stderr how long it took over an answer itself: "bench_exec_child: VERSION N MICROSECONDS",
 * N being how many answers it gave, the time their median. */
#include "cases/tensors/safetensors.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static fa_safetensors answers;

static void fail(const char *why) {
  fprintf(stderr, "bench_exec_child: %s\n", why);
  exit(1);
}

static void copy_answer(const char *name, char *to) {
  const fa_tensor *t = fa_safetensors_find(&answers, name);
  if (!t) fail(name);
  memcpy(to, t->data, (size_t)fa_tensor_count(t) * fa_dtype_size(t->dtype));
}

static const char *text_of(const cJSON *object, const char *key) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  return text ? text : "";
}

static size_t number_of(const cJSON *object, const char *key) {
  return (size_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* ---- version 1 ---- */

/* Over the values of the file that stands there, whose header, always the same one, says where they are. */
static void answer_file(const cJSON *request) {
  static char *values;
  static size_t begin, bytes;
  const char *path = text_of(request, "outputs");
  if (!values) {
    fa_safetensors file;
    fa_error err;
    if (fa_safetensors_open(path, &file, &err) != FA_OK) fail(err.text);
    uint64_t header;
    memcpy(&header, file.map, sizeof header);
    begin = sizeof header + (size_t)header, bytes = file.map_bytes - begin;
    values = malloc(bytes);
    if (!values) fail("out of memory");
    for (int64_t i = 0; i < file.n_entries; ++i)
      copy_answer(file.entry[i].name, values + (file.entry[i].tensor.data - (char *)file.map - begin));
    fa_safetensors_close(&file);
  }
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || pwrite(fd, values, bytes, (off_t)begin) != (ssize_t)bytes) fail(path);
  close(fd);
}

/* ---- version 2 ---- */

static char *map_of(const cJSON *request) {
  static char *map, path[256];
  static size_t bytes;
  if (map && number_of(request, "bytes") == bytes && strcmp(text_of(request, "memory"), path) == 0)
    return map;
  if (map) munmap(map, bytes);
  bytes = number_of(request, "bytes");
  snprintf(path, sizeof path, "%s", text_of(request, "memory"));
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || map == MAP_FAILED) fail(path);
  close(fd);
  return map;
}

static void answer_memory(const cJSON *request) {
  char *map = map_of(request);
  const cJSON *t = cJSON_GetObjectItemCaseSensitive(request, "tensors");
  for (t = t ? t->child : NULL; t; t = t->next)
    if (strcmp(text_of(t, "access"), "write") == 0) copy_answer(t->string, map + number_of(t, "offset"));
}

/* ---- both ---- */

static void answer(const char *line, int version) {
  cJSON *request = cJSON_Parse(line);
  const size_t id = number_of(request, "id");
  if (strcmp(text_of(request, "type"), "hello") == 0) {
    printf("{\"id\":%zu,\"fa_exec\":%d,\"name\":\"replay\",\"arithmetic\":{\"name\":\"recorded\"}%s}\n", id,
           version,
           version == 1
               ? ""
               : ",\"lse\":{\"base\":\"e\",\"scaled\":true,\"empty\":\"as_case\"},\"empty_o\":\"0\"");
  } else {
    if (version == 1)
      answer_file(request);
    else
      answer_memory(request);
    printf("{\"id\":%zu,\"state\":\"ok\"}\n", id);
  }
  fflush(stdout);
  cJSON_Delete(request);
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

int main(int argc, char **argv) {
  fa_error err;
  double *own_us = NULL;
  int n = 0;
  char *line = NULL;
  size_t size = 0;
  if (argc != 3) fail("usage: bench_exec_child VERSION ANSWERS.safetensors");
  if (fa_safetensors_open(argv[2], &answers, &err) != FA_OK) fail(err.text);
  for (; getline(&line, &size, stdin) > 0; ++n) {
    const double start = now_us();
    answer(line, atoi(argv[1]));
    if (n % 1024 == 0) own_us = realloc(own_us, (size_t)(n + 1024) * sizeof *own_us);
    if (!own_us) fail("out of memory");
    own_us[n] = now_us() - start;
  }
  if (n > 0) qsort(own_us, (size_t)n, sizeof *own_us, ascending);
  fprintf(stderr, "bench_exec_child: %s %d %.1f\n", argv[1], n, n > 0 ? own_us[n / 2] : 0);
  free(own_us);
  free(line);
  fa_safetensors_close(&answers);
  return 0;
}
