#include "fuzz/options/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* A whole number >= 0 that ends at `end_character`. */
static bool read_number(const char *text, char end_character, int64_t *out, const char **rest) {
  char *end = NULL;
  if (!text || text[0] < '0' || text[0] > '9') return false;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  if (errno || *end != end_character) return false;
  *out = n;
  if (rest) *rest = end_character ? end + 1 : end;
  return true;
}

static fa_status check(fa_shard *s, const char *source, fa_error *err) {
  s->source = source;
  if (s->total < 1 || s->index >= s->total)
    return fa_fail(err, FA_ERR_INPUT, "%s: shard %lld of %lld: 0 <= index < total is needed", source,
                   (long long)s->index, (long long)s->total);
  return FA_OK;
}

static fa_status from_pair(const char *index_name, const char *total_name, fa_shard *s, fa_error *err) {
  const char *total = getenv(total_name);
  if (!total) return fa_fail(err, FA_ERR_INPUT, "%s is set, but %s is not", index_name, total_name);
  if (!read_number(getenv(index_name), 0, &s->index, NULL))
    return fa_fail(err, FA_ERR_INPUT, "%s=%s: a whole number >= 0 is needed", index_name, getenv(index_name));
  if (!read_number(total, 0, &s->total, NULL))
    return fa_fail(err, FA_ERR_INPUT, "%s=%s: a whole number >= 1 is needed", total_name, total);
  return check(s, index_name, err);
}

/* Bazel requires this as a sign that the test runner supports shards. */
static void touch_status_file(void) {
  const char *path = getenv("TEST_SHARD_STATUS_FILE");
  if (!path) return;
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) close(fd);
}

/* An empty variable counts as unset. */
static bool is_set(const char *name) {
  const char *value = getenv(name);
  return value && value[0];
}

static fa_status from_slurm(fa_shard *s, fa_error *err) {
  int64_t first = 0, step = 1;
  if (!read_number(getenv("SLURM_ARRAY_TASK_ID"), 0, &s->index, NULL) ||
      !read_number(getenv("SLURM_ARRAY_TASK_COUNT"), 0, &s->total, NULL))
    return fa_fail(err, FA_ERR_INPUT,
                   "SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT: whole numbers are needed");
  if (getenv("SLURM_ARRAY_TASK_MIN") && !read_number(getenv("SLURM_ARRAY_TASK_MIN"), 0, &first, NULL))
    return fa_fail(err, FA_ERR_INPUT, "SLURM_ARRAY_TASK_MIN=%s: a whole number is needed",
                   getenv("SLURM_ARRAY_TASK_MIN"));
  if (getenv("SLURM_ARRAY_TASK_STEP") &&
      (!read_number(getenv("SLURM_ARRAY_TASK_STEP"), 0, &step, NULL) || step < 1))
    return fa_fail(err, FA_ERR_INPUT, "SLURM_ARRAY_TASK_STEP=%s: a whole number >= 1 is needed",
                   getenv("SLURM_ARRAY_TASK_STEP"));
  if (s->index < first)
    return fa_fail(err, FA_ERR_INPUT, "SLURM_ARRAY_TASK_ID is below SLURM_ARRAY_TASK_MIN");
  s->index = (s->index - first) / step;
  return check(s, "SLURM_ARRAY_TASK_ID", err);
}

fa_status fa_shard_read(const char *option, fa_shard *out, fa_error *err) {
  *out = (fa_shard){0, 1, NULL};
  if (option) {
    const char *rest = NULL;
    if (!read_number(option, '/', &out->index, &rest) || !read_number(rest, 0, &out->total, NULL))
      return fa_fail(err, FA_ERR_INPUT, "--shard %s: I/N is needed, such as 0/4", option);
    return check(out, "--shard", err);
  }
  if (is_set("FA_SHARD_INDEX")) return from_pair("FA_SHARD_INDEX", "FA_SHARD_TOTAL", out, err);
  if (is_set("TEST_SHARD_INDEX")) {
    touch_status_file();
    return from_pair("TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", out, err);
  }
  if (is_set("GTEST_SHARD_INDEX")) return from_pair("GTEST_SHARD_INDEX", "GTEST_TOTAL_SHARDS", out, err);
  if (is_set("SLURM_ARRAY_TASK_ID")) return from_slurm(out, err);
  return FA_OK;
}
