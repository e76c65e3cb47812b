/* `fa-verify check` on the recorded runs of tests/golden: all of them pass, and one flipped exponent bit of
 * one output element fails the run that holds it, with that element named in the report. usage: test_recorded
 * FA_VERIFY GOLDEN_DIR */
#include "cases/tensors/safetensors.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *fa_verify, *golden_dir;
static char temp_dir[] = "/tmp/fa_recorded_XXXXXX";

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  REQUIRE(f);
  REQUIRE(fseek(f, 0, SEEK_END) == 0);
  *n = (size_t)ftell(f);
  rewind(f);
  char *bytes = malloc(*n + 1);
  REQUIRE(bytes && fread(bytes, 1, *n, f) == *n);
  bytes[*n] = 0;
  fclose(f);
  return bytes;
}

static void write_file(const char *path, const char *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  REQUIRE(f && fwrite(bytes, 1, n, f) == n);
  REQUIRE(fclose(f) == 0);
}

static void in_temp(char *out, const char *name) {
  snprintf(out, PATH_MAX, "%s/%s", temp_dir, name);
}

/* Runs `check FILE --report R` silently; returns the exit code and the parsed report (NULL when none). */
static int run_check(const char *file, cJSON **report) {
  char report_path[PATH_MAX], log_path[PATH_MAX];
  in_temp(report_path, "report.json");
  in_temp(log_path, "log");
  unlink(report_path);
  fflush(stdout);
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    if (!freopen(log_path, "w", stdout) || dup2(fileno(stdout), STDERR_FILENO) < 0) _exit(126);
    execl(fa_verify, fa_verify, "check", file, "--report", report_path, (char *)NULL);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
  *report = NULL;
  if (access(report_path, R_OK) == 0) {
    size_t n;
    char *text = read_file(report_path, &n);
    *report = cJSON_Parse(text);
    free(text);
  }
  return WEXITSTATUS(status);
}

static const cJSON *child(const cJSON *object, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(object, key);
}

static bool is_string(const cJSON *j, const char *text) {
  return cJSON_IsString(j) && strcmp(j->valuestring, text) == 0;
}

static int summary(const cJSON *report, const char *key) {
  const cJSON *n = child(child(report, "summary"), key);
  return cJSON_IsNumber(n) ? n->valueint : -1;
}

static bool index_equals(const cJSON *array, const int64_t *index, int rank) {
  if (cJSON_GetArraySize(array) != rank) return false;
  for (int i = 0; i < rank; ++i)
    if ((int64_t)cJSON_GetArrayItem(array, i)->valuedouble != index[i]) return false;
  return true;
}

/* True if the report has a failure of the group whose tensor `name` lists this element among its worst. */
static bool report_names(const cJSON *report, const char *group, const char *name, const int64_t *index,
                         int rank) {
  const cJSON *failure, *tensor, *point;
  cJSON_ArrayForEach(failure, child(report, "failures")) {
    if (!is_string(child(child(failure, "case"), "name"), group)) continue;
    cJSON_ArrayForEach(tensor, child(failure, "tensors")) {
      if (!is_string(child(tensor, "name"), name)) continue;
      cJSON_ArrayForEach(point, child(tensor, "worst")) {
        if (index_equals(child(point, "index"), index, rank)) return true;
      }
    }
  }
  return false;
}

typedef struct flip {
  const char *file, *group, *tensor;
  int bit;     /* of the element */
  double from; /* the element: the first with a magnitude in [from, 2 from), after skipping some */
  int skip;
} flip;

/* Middle and low exponent bits of f16 (10-14), bf16 (7-14) and f32 (23-30). The elements are of ordinary
 * size: doubling one near zero is an error that nobody could detect. */
static const flip flips[] = {
    {"recorded-flash", "flash_causal_gqa_odd", "o", 10, 0.25, 40},
    {"recorded-flash", "flash_causal_gqa_odd", "o", 14, 0.25, 900},
    {"recorded-flash", "flash_causal_gqa_odd", "lse", 23, 4.0, 30},
    {"recorded-flash", "flash_causal_gqa_odd", "dq", 11, 0.25, 7},
    {"recorded-flash", "flash_causal_gqa_odd", "dk", 10, 0.25, 100},
    {"recorded-flash", "flash_hdim40_dropout", "dv", 10, 0.25, 100},
    {"recorded-flash", "flash_varlen_causal", "o", 7, 0.5, 3},
    {"recorded-flash", "flash_varlen_causal", "lse", 30, 2.0, 11},
    {"recorded-flash", "flash_varlen_causal", "dq", 7, 0.25, 500},
    {"recorded-flash", "flash_window", "dv", 12, 0.5, 2000},
    {"recorded-memeff", "memeff_f16_dropout_bias", "dbias", 10, 0.25, 5},
    {"recorded-memeff", "memeff_f32_k_ne_kv", "o", 23, 0.5, 20},
    {"recorded-memeff", "memeff_f32_k_ne_kv", "dk", 23, 0.25, 20},
    {"recorded-serving", "torch_packed_lse", "lse", 20, 2.0, 100},
    {"recorded-serving", "torch_packed_lse", "o", 20, 0.25, 100},
    {"recorded-serving", "torch_split_merge", "o", 9, 0.5, 50},
    {"recorded-serving", "torch_split_merge", "lse", 21, 1.0, 7},
    {"recorded-serving", "jax_paged_prefill", "o", 20, 0.25, 300},
    {"recorded-serving", "jax_paged_window", "o", 20, 0.25, 60},
};

/* Position of the element to flip; -1 if the tensor has none of that size. */
static int64_t find_element(const fa_tensor *t, const flip *f) {
  int64_t index[FA_MAX_RANK];
  int left = f->skip;
  for (int64_t i = 0; i < fa_tensor_count(t); ++i) {
    fa_tensor_unravel(t, i, index);
    double v = fabs(fa_tensor_get(t, index));
    if (v >= f->from && v < 2 * f->from && left-- == 0) return i;
  }
  return -1;
}

static void expect_flip_found(const flip *f) {
  char path[PATH_MAX], name[128];
  snprintf(path, sizeof path, "%s/%s.safetensors", golden_dir, f->file);
  snprintf(name, sizeof name, "%s/%s", f->group, f->tensor);
  size_t n;
  char *bytes = read_file(path, &n);
  fa_safetensors file;
  fa_error err = {""};
  REQUIRE(fa_safetensors_parse(bytes, n, path, &file, &err) == FA_OK);
  const fa_tensor *t = fa_safetensors_find(&file, name);
  REQUIRE(t);
  int64_t position = find_element(t, f), index[FA_MAX_RANK];
  REQUIRE(position >= 0);
  fa_tensor_unravel(t, position, index);
  int rank = t->rank;
  t->data[fa_tensor_offset(t, index) + f->bit / 8] ^= (char)(1 << f->bit % 8);
  in_temp(path, "flipped.safetensors");
  write_file(path, bytes, n);

  cJSON *report;
  int rc = run_check(path, &report);
  CHECK_MSG(rc == 1, "%s bit %d: exit %d", name, f->bit, rc);
  CHECK_MSG(summary(report, "failed") == 1, "%s bit %d: %d failed", name, f->bit, summary(report, "failed"));
  CHECK_MSG(report_names(report, f->group, f->tensor, index, rank), "%s bit %d, position %lld", name, f->bit,
            (long long)position);
  cJSON_Delete(report);
  fa_safetensors_close(&file);
  free(bytes);
}

/* A sign in the debug matrix is a dropout decision. */
static void expect_dropout_sign_found(void) {
  const flip f = {"recorded-flash", "flash_hdim40_dropout", "p_debug", 15, 0.25, 17};
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s.safetensors", golden_dir, f.file);
  size_t n;
  char *bytes = read_file(path, &n);
  fa_safetensors file;
  REQUIRE(fa_safetensors_parse(bytes, n, path, &file, NULL) == FA_OK);
  const fa_tensor *t = fa_safetensors_find(&file, "flash_hdim40_dropout/p_debug");
  REQUIRE(t);
  int64_t position = find_element(t, &f), index[FA_MAX_RANK];
  REQUIRE(position >= 0);
  fa_tensor_unravel(t, position, index);
  t->data[fa_tensor_offset(t, index) + 1] ^= (char)0x80;
  in_temp(path, "flipped.safetensors");
  write_file(path, bytes, n);
  cJSON *report;
  int rc = run_check(path, &report);
  CHECK_MSG(rc == 1, "exit %d", rc);
  cJSON_Delete(report);
  fa_safetensors_close(&file);
  free(bytes);
}

static void expect_pass(const char *name, int n_groups) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s.safetensors", golden_dir, name);
  cJSON *report;
  int rc = run_check(path, &report);
  CHECK_MSG(rc == 0, "%s: exit %d", name, rc);
  CHECK_MSG(summary(report, "passed") == n_groups, "%s: %d passed", name, summary(report, "passed"));
  cJSON_Delete(report);
}

/* The packed run with its LSE [2, 259] as [5, 2, 129], infinity behind the rows; where `wrong`, its last row is not what it
 * was. */
static void write_padded(const char *path, bool wrong) {
  static const int64_t cu[] = {0, 1, 65, 130, 130, 259}, shape[] = {5, 2, 129};
  static float padded[5 * 2 * 129];
  static const char group[] = "flash_varlen_causal";
  char from[PATH_MAX], lse_name[128];
  const char *names[32];
  const fa_tensor *tensors[32];
  fa_safetensors file;
  fa_tensor lse = {.dtype = FA_F32, .rank = 3, .data = (char *)padded, .stride = {258, 129, 1}};
  memcpy(lse.shape, shape, sizeof shape);
  snprintf(from, sizeof from, "%s/recorded-flash.safetensors", golden_dir);
  snprintf(lse_name, sizeof lse_name, "%s/lse", group);
  REQUIRE(fa_safetensors_open(from, &file, NULL) == FA_OK);
  const fa_tensor *flat = fa_safetensors_find(&file, lse_name);
  REQUIRE(flat && flat->rank == 2);
  for (int64_t e = 0; e < 5 * 2 * 129; ++e) {
    const int64_t i = e % 129, h = e / 129 % 2, b = e / 258, at[FA_MAX_RANK] = {h, cu[b] + i};
    padded[e] = i < cu[b + 1] - cu[b] ? (float)fa_tensor_get(flat, at) : INFINITY;
  }
  if (wrong) padded[5 * 2 * 129 - 1] += 0.5f;
  int64_t n = 0;
  for (int64_t e = 0; e < file.n_entries; ++e) {
    if (strncmp(file.entry[e].name, group, strlen(group)) != 0) continue;
    names[n] = file.entry[e].name;
    tensors[n++] = &file.entry[e].tensor == flat ? &lse : &file.entry[e].tensor;
  }
  const char *key = group, *value = fa_safetensors_meta(&file, group);
  REQUIRE(fa_safetensors_write(path, names, tensors, n, &key, &value, 1, NULL) == FA_OK);
  fa_safetensors_close(&file);
}

/* Its case does not say so: the three axes do. */
static void expect_padded_read(void) {
  static const int64_t last[] = {4, 1, 128};
  char path[PATH_MAX];
  in_temp(path, "flipped.safetensors");
  for (int wrong = 0; wrong < 2; ++wrong) {
    cJSON *report;
    write_padded(path, wrong);
    const int rc = run_check(path, &report);
    CHECK_MSG(rc == wrong, "padded LSE: exit %d", rc);
    CHECK(!wrong || report_names(report, "flash_varlen_causal", "lse", last, 3));
    cJSON_Delete(report);
  }
}

/* A custom mask of fewer bytes than its pairs need is refused by name, not read on behind its end (FlashInfer #3176). */
static void expect_short_mask_refused(void) {
  static const char group[] = "bits_varlen";
  char path[PATH_MAX], log_path[PATH_MAX];
  const char *names[32];
  const fa_tensor *tensors[32];
  fa_safetensors file;
  fa_tensor mask;
  snprintf(path, sizeof path, "%s/reference/bits_varlen.forward.safetensors", golden_dir);
  REQUIRE(fa_safetensors_open(path, &file, NULL) == FA_OK && file.n_entries <= 32);
  for (int64_t e = 0; e < file.n_entries; ++e) {
    names[e] = file.entry[e].name;
    tensors[e] = &file.entry[e].tensor;
    if (strcmp(names[e], "bits_varlen/mask_bits") != 0) continue;
    mask = *tensors[e];
    --mask.shape[0];
    tensors[e] = &mask;
  }
  const char *key = group, *value = fa_safetensors_meta(&file, group);
  in_temp(path, "flipped.safetensors");
  REQUIRE(fa_safetensors_write(path, names, tensors, file.n_entries, &key, &value, 1, NULL) == FA_OK);
  fa_safetensors_close(&file);
  cJSON *report;
  const int rc = run_check(path, &report);
  CHECK_MSG(rc == 2, "a mask of 67 bytes: exit %d", rc);
  cJSON_Delete(report);
  size_t n;
  in_temp(log_path, "log");
  char *log = read_file(log_path, &n);
  CHECK_MSG(memmem(log, n, "mask_bits: is u8 [67]", 21) != NULL, "%.*s", (int)n, log);
  free(log);
}

static void expect_truncated_refused(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/recorded-memeff.safetensors", golden_dir);
  size_t n;
  char *bytes = read_file(path, &n);
  in_temp(path, "truncated.safetensors");
  write_file(path, bytes, n - 1000);
  cJSON *report;
  int rc = run_check(path, &report);
  CHECK_MSG(rc == 2, "exit %d", rc);
  cJSON_Delete(report);
  free(bytes);
}

int main(int argc, char **argv) {
  REQUIRE(argc == 3);
  fa_verify = argv[1];
  golden_dir = argv[2];
  REQUIRE(mkdtemp(temp_dir));
  expect_pass("recorded-flash", 4);
  expect_pass("recorded-memeff", 2);
  expect_pass("recorded-serving", 4);
  for (size_t i = 0; i < sizeof flips / sizeof flips[0]; ++i) expect_flip_found(&flips[i]);
  expect_dropout_sign_found();
  expect_padded_read();
  expect_short_mask_refused();
  expect_truncated_refused();
  static const char *const leftovers[] = {"report.json", "log", "flipped.safetensors",
                                          "truncated.safetensors"};
  for (size_t i = 0; i < sizeof leftovers / sizeof leftovers[0]; ++i) {
    char path[PATH_MAX];
    in_temp(path, leftovers[i]);
    unlink(path);
  }
  rmdir(temp_dir);
  return check_done();
}
