/* Golden outputs and recorded runs that were changed by hand, and names of files. */
#include "fuzz/one/dump.h"
#include "fuzz/one/failure_word.h"
#include "fuzz/one/golden.h"
#include "fuzz/one/recorded.h"
#include "tests/edges/taken.h"
#include "tests/held/case_of.h"

#include <cjson/cJSON.h>

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/fa-test-files-XXXXXX";
static char bytes[1 << 16];

static void path_of(const char *name, char path[200]) {
  snprintf(path, 200, "%s/%s", folder, name);
}

static size_t read_all(const char *name) {
  char path[200];
  path_of(name, path);
  FILE *f = fopen(path, "r");
  REQUIRE(f);
  const size_t n = fread(bytes, 1, sizeof bytes, f);
  REQUIRE(n < sizeof bytes && fclose(f) == 0);
  return n;
}

static void write_all(const char *name, size_t n) {
  char path[200];
  path_of(name, path);
  FILE *f = fopen(path, "w");
  REQUIRE(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

/* ---- goldens ---- */

static bool is_same(const fa_case *c, char why[600]) {
  bool same = false;
  fa_error err = {""};
  CHECK_MSG(fa_golden_check(folder, "x", c, 1, &same, why, 600, &err) == FA_OK, "%s", err.text);
  return same;
}

/* A hash in the file, and a number that is larger than what is computed now. */
static void test_golden(void) {
  static const char forward[] = "x.forward.safetensors";
  char why[600];
  fa_tensors in;
  fa_error err = {""};
  fa_safetensors f;
  fa_case c = case_of("{\"seqlen_q\":2,\"head_dim\":8}", &in);
  CHECK_MSG(fa_golden_write(folder, "x", &c, 1, &err) == FA_OK, "%s", err.text);
  CHECK(is_same(&c, why));
  const size_t n = read_all(forward);
  char *hash = memmem(bytes, n, "inputs_sha256\":\"", 16);
  REQUIRE(hash);
  hash[16] = hash[16] == '0' ? '1' : '0';
  write_all(forward, n);
  CHECK(!is_same(&c, why));
  CHECK_MSG(strstr(why, ": inputs_sha256: stored ") && strstr(why, ", now "), "%s", why);
  REQUIRE(fa_golden_write(folder, "x", &c, 1, &err) == FA_OK);
  REQUIRE(read_all(forward) == n && fa_safetensors_parse(bytes, n, "x", &f, &err) == FA_OK);
  const fa_tensor *o = fa_safetensors_find(&f, "x/o");
  REQUIRE(o && o->dtype == FA_F64);
  const int64_t at[FA_MAX_RANK] = {0, 1, 0, 3};
  fa_tensor_set(o, at, 7.5);
  fa_safetensors_close(&f);
  write_all(forward, n);
  CHECK(!is_same(&c, why));
  CHECK_MSG(strstr(why, ": o[0,1,0,3]: stored 7.5, now "), "%s", why);
  const double now = strtod(strstr(why, "now ") + 4, NULL);
  REQUIRE(fa_safetensors_parse(bytes, n, "x", &f, &err) == FA_OK);
  fa_tensor_set(fa_safetensors_find(&f, "x/o"), at,
                now + 1e-6); /* far beyond how machines differ, and far below 1 */
  fa_safetensors_close(&f);
  write_all(forward, n);
  CHECK(!is_same(&c, why));
  CHECK_MSG(strstr(why, ": o[0,1,0,3]: stored "), "%s", why);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* Inputs are compared bit for bit: 0 has a sign. */
static void test_golden_inputs(void) {
  static const char forward[] = "x.forward.safetensors";
  char why[600];
  fa_tensors in;
  fa_error err = {""};
  fa_safetensors f;
  const int64_t first[FA_MAX_RANK] = {0};
  fa_case c = case_of("{\"seqlen_q\":2,\"head_dim\":8,\"fill\":\"zero\"}", &in);
  CHECK_MSG(fa_golden_write(folder, "x", &c, 1, &err) == FA_OK, "%s", err.text);
  const size_t n = read_all(forward);
  REQUIRE(fa_safetensors_parse(bytes, n, "x", &f, &err) == FA_OK);
  fa_tensor_set(fa_safetensors_find(&f, "x/q"), first, -0.0);
  fa_safetensors_close(&f);
  write_all(forward, n);
  CHECK(!is_same(&c, why));
  CHECK_MSG(strstr(why, ": q[0,0,0,0]: stored -0, now 0"), "%s", why);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* Sets an element of an output in the file of the forward. */
static void put(const char *name, const int64_t *at, double x) {
  static const char forward[] = "x.forward.safetensors";
  fa_safetensors f;
  fa_error err = {""};
  const size_t n = read_all(forward);
  REQUIRE(fa_safetensors_parse(bytes, n, "x", &f, &err) == FA_OK && fa_safetensors_find(&f, name));
  fa_tensor_set(fa_safetensors_find(&f, name), at, x);
  fa_safetensors_close(&f);
  write_all(forward, n);
}

/* How far a number may be from what is stored: in units of 1 where it is less, else of its own; NaN and infinity are as they are. What is
 * near enough differs still in the hash of all. */
static void test_golden_near(void) {
  static const struct {
    double by;
    bool relative, near;
  } rows[] = {{0.9, false, true}, {-0.9, false, true}, {1.1, false, false},      {-1.1, false, false},
              {0.9, true, true},  {1.1, true, false},  {INFINITY, false, false}, {NAN, false, false}};
  const int64_t small[FA_MAX_RANK] = {0, 0, 0, 1}, large[FA_MAX_RANK] = {0, 0, 1};
  fa_tensors in;
  fa_error err = {""};
  fa_case c = case_of(
      "{\"seqlen_q\":2,\"seqlen_k\":90,\"head_dim\":8,\"backward\":false,\"fill\":{\"q\":\"zero\"}}", &in);
  for (size_t i = 0; i < sizeof rows / sizeof *rows;
       ++i) { /* an LSE of log 90 is above 1, an O of 90 keys below */
    char why[600], want[40];
    fa_safetensors f;
    const char *name = rows[i].relative ? "lse" : "o", *full = rows[i].relative ? "x/lse" : "x/o";
    const int64_t *at = rows[i].relative ? large : small;
    REQUIRE(fa_golden_write(folder, "x", &c, 1, &err) == FA_OK && is_same(&c, why));
    const size_t n = read_all("x.forward.safetensors");
    REQUIRE(fa_safetensors_parse(bytes, n, "x", &f, &err) == FA_OK);
    const double now = fa_tensor_get(fa_safetensors_find(&f, full), at);
    fa_safetensors_close(&f);
    REQUIRE(rows[i].relative ? now > 4 && now < 5 : fabs(now) < 1);
    put(full, at, now + rows[i].by * FA_GOLDEN_TOLERANCE * (rows[i].relative ? now : 1));
    CHECK(!is_same(&c, why));
    snprintf(want, sizeof want, rows[i].near ? ": reference_sha256: stored " : ": %s[", name);
    CHECK_MSG(strstr(why, want), "%zu: %s", i, why);
  }
  fa_tensors_free(&in);
  fa_case_free(&c);
}

static void *write_and_check(void *c) {
  for (int k = 0; k < 50; ++k) {
    char why[600];
    fa_error err = {""};
    CHECK(fa_golden_write(folder, "x", c, 1, &err) == FA_OK && is_same(c, why));
  }
  return NULL;
}

/* A golden keeps no memory, written or checked, the same or not. */
static void test_golden_kept(void) {
  fa_tensors in;
  fa_case c = case_of("{\"seqlen_q\":2,\"head_dim\":8}", &in);
  const long long kept = bytes_kept(write_and_check, &c);
  CHECK_MSG(kept < 500, "%lld bytes are kept", kept);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* What follows from a seed is in no golden; what is, is said to be missing where it is not. */
static void test_golden_names(void) {
  static const char forward[] = "x.forward.safetensors";
  char why[600];
  fa_tensors in;
  fa_error err = {""};
  fa_safetensors f;
  fa_case c = case_of(
      "{\"seqlen_q\":2,\"head_dim\":8,\"dropout\":{\"p\":0.3,\"seed\":\"1\"},\"return_softmax\":true}", &in);
  CHECK_MSG(fa_golden_write(folder, "x", &c, 1, &err) == FA_OK, "%s", err.text);
  CHECK(is_same(&c, why));
  size_t n = read_all(forward);
  REQUIRE(fa_safetensors_parse(bytes, n, "x", &f, &err) == FA_OK);
  CHECK(!fa_safetensors_find(&f, "x/p_debug") && !fa_safetensors_find(&f, "x/dropout_keep"));
  CHECK(fa_safetensors_find(&f, "x/o") && fa_safetensors_find(&f, "x/lse") && fa_safetensors_find(&f, "x/q"));
  CHECK(!fa_safetensors_find(&f, "x/dq"));
  fa_safetensors_close(&f);
  static const char *const keys[] = {"inputs_sha256", "reference_sha256", "x/lse"};
  static const char *const says[] = {": inputs_sha256: stored nothing, now ",
                                     ": reference_sha256: stored nothing, now ", ": lse: missing"};
  for (int k = 0; k < 3; ++k) { /* the last letter of its name becomes another */
    REQUIRE(fa_golden_write(folder, "x", &c, 1, &err) == FA_OK && read_all(forward) == n);
    char *at = memmem(bytes, n, keys[k], strlen(keys[k]));
    REQUIRE(at);
    at[strlen(keys[k]) - 1] = 'f';
    write_all(forward, n);
    CHECK(!is_same(&c, why));
    CHECK_MSG(strstr(why, says[k]), "%s: %s", keys[k], why);
  }
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* Rounding in f32 decides what these are worth: they have no golden. */
static void test_no_golden(void) {
  static const char *const mods[] = {"\"score_mod\":\"score + int(0.3 * q_idx)\"",
                                     "\"mask_mod\":\"q_idx * 0.1 != 0.3\""};
  for (int k = 0; k < 2; ++k) {
    char text[200];
    fa_tensors in;
    fa_error err = {""};
    snprintf(text, sizeof text, "{\"family\":\"flex\",\"seqlen_q\":12,\"head_dim\":8,%s}", mods[k]);
    fa_case c = case_of(text, &in);
    CHECK(fa_golden_write(folder, "mod", &c, 1, &err) == FA_ERR_INPUT);
    CHECK_MSG(strstr(err.text, ": rounding decides it, at b 0"), "%s", err.text);
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

/* ---- recorded runs ---- */

/* Writes n tensors of these names with the cases of some groups. */
static void write_groups(const char *const *names, const fa_tensor *const *tensors, int n,
                         const char *const *groups, int n_groups, char path[200]) {
  const char *line[4];
  fa_error err = {""};
  for (int i = 0; i < n_groups; ++i) line[i] = "{\"seqlen_q\":2,\"head_dim\":8,\"backward\":false}";
  path_of("run.safetensors", path);
  CHECK_MSG(fa_safetensors_write(path, names, tensors, n, groups, line, n_groups, &err) == FA_OK, "%s",
            err.text);
}

/* The name of one group begins like that of another. */
static void test_groups(void) {
  const float x[] = {1, 2};
  const fa_tensor t = {.dtype = FA_F32, .rank = 1, .shape = {2}, .stride = {1}, .data = (char *)(uintptr_t)x};
  const fa_tensor *const tensors[] = {&t, &t, &t};
  const char *const names[] = {"ab/q", "a/q", "ab/k"}, *const groups[] = {"ab", "a"};
  char path[200], **found = NULL;
  int64_t n = 77;
  fa_safetensors f;
  fa_error err = {""};
  write_groups(names, tensors, 3, groups, 2, path);
  REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
  CHECK_MSG(fa_recorded_groups(&f, path, &found, &n, &err) == FA_OK, "%s", err.text);
  CHECK(n == 2 && strcmp(found[0], "ab") == 0 && strcmp(found[1], "a") == 0);
  for (int64_t k = 0; k < n; ++k) free(found[k]);
  free(found);
  fa_safetensors_close(&f);
}

/* Each tensor has to be of a group, and each group to have a case. */
static void test_no_group(void) {
  static const struct {
    const char *name, *says;
  } rows[] = {{"q", "tensor q: names of the form group/tensor are needed"},
              {"/q", "tensor /q: names of the form group/tensor are needed"},
              {"b/q", "group b: __metadata__ has no case for it"}};
  const float x[] = {1, 2};
  const fa_tensor t = {.dtype = FA_F32, .rank = 1, .shape = {2}, .stride = {1}, .data = (char *)(uintptr_t)x};
  const fa_tensor *const tensors[] = {&t, &t};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    const char *const names[] = {"a/q", rows[i].name}, *const groups[] = {"a"};
    char path[200], **found = NULL;
    int64_t n;
    fa_safetensors f;
    fa_error err = {""};
    write_groups(names, tensors, 2, groups, 1, path);
    REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
    CHECK(fa_recorded_groups(&f, path, &found, &n, &err) == FA_ERR_INPUT);
    CHECK_MSG(strstr(err.text, rows[i].says), "%s", err.text);
    fa_safetensors_close(&f);
  }
}

/* Inputs alone are no run, nor with a tensor of no group; one output makes one. */
static void test_outputs(void) {
  static const char *const names[] = {"x/q", "x/k", "x/v", "xylse", "x/lse"}, *const groups[] = {"x"};
  fa_tensors in;
  fa_case c = case_of("{\"seqlen_q\":2,\"head_dim\":8,\"backward\":false}", &in);
  const fa_tensor *const tensors[] = {&in.t[FA_T_Q], &in.t[FA_T_K], &in.t[FA_T_V], &in.t[FA_T_LSE],
                                      &in.t[FA_T_LSE]};
  for (int n = 3; n <= 5; ++n) {
    char path[200];
    fa_safetensors f;
    fa_recorded run;
    fa_error err = {""};
    write_groups(names, tensors, n, groups, 1, path);
    REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
    const fa_status status = fa_recorded_load(&f, path, "x", &run, &err);
    CHECK_MSG(status == (n == 5 ? FA_OK : FA_ERR_INPUT), "%d: %s", n, err.text);
    if (status == FA_OK)
      fa_recorded_free(&run);
    else
      CHECK_MSG(strstr(err.text, "no output is recorded; at least one is needed"), "%s", err.text);
    fa_safetensors_close(&f);
  }
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* A recorded run has its buffers, and their gradients, under the expression's names for them. */
static void test_buffers(void) {
  static const char *const names[] = {"x/q", "x/k", "x/v", "x/do", "x/buffer_slopes", "x/dbuffer_slopes"},
                           *const groups[] = {"x"};
  static const char text[] =
      "{\"family\":\"flex\",\"heads_q\":2,\"seqlen_q\":3,\"head_dim\":8,\"score_mod\":\"score + slopes[h]\","
      "\"buffers\":{\"slopes\":{\"shape\":[2],\"grad\":true}}}";
  const char *const lines[] = {text};
  const float own[] = {3, 5};
  const fa_tensor slopes = {
      .dtype = FA_F32, .rank = 1, .shape = {2}, .stride = {1}, .data = (char *)(uintptr_t)own};
  fa_tensors in;
  fa_case c = case_of(text, &in);
  const fa_tensor *const tensors[] = {&in.t[FA_T_Q],  &in.t[FA_T_K], &in.t[FA_T_V],
                                      &in.t[FA_T_DO], &slopes,       &slopes};
  char path[200];
  fa_safetensors f;
  fa_recorded run;
  fa_error err = {""};
  path_of("run.safetensors", path);
  CHECK_MSG(fa_safetensors_write(path, names, tensors, 6, groups, lines, 1, &err) == FA_OK, "%s", err.text);
  REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
  REQUIRE(fa_recorded_load(&f, path, "x", &run, &err) == FA_OK);
  for (int64_t k = 0; k < 2; ++k) {
    CHECK(fa_tensor_get(&run.in.t[FA_T_BUFFER_0], &k) == own[k]);
    CHECK(run.got.t[FA_T_DBUFFER_0].data && fa_tensor_get(&run.got.t[FA_T_DBUFFER_0], &k) == own[k]);
  }
  fa_recorded_free(&run);
  fa_safetensors_close(&f);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* Caches after the call are outputs where the case has a cache, and what begins like a buffer is passed over. */
static void test_caches_after(void) {
  static const char cache[] =
      "{\"family\":\"kvcache\",\"seqlen_k\":4,\"head_dim\":8,\"kvcache\":{\"len\":[2],\"new\":1}}",
                    plain[] = "{\"seqlen_q\":2,\"seqlen_k\":4,\"head_dim\":8,\"backward\":false}";
  static const char *const groups[] = {"x"}, *const names[] = {"x/q",       "x/k",       "x/v",
                                                               "x/k_new",   "x/v_new",   "x/k_after",
                                                               "x/v_after", "x/buffer_", "x/o"};
  for (int has_cache = 0; has_cache < 2; ++has_cache) {
    const char *const lines[] = {has_cache ? cache : plain};
    fa_tensors in;
    fa_case c = case_of(lines[0], &in);
    const fa_tensor *const t[] = {&in.t[FA_T_Q],
                                  &in.t[FA_T_K],
                                  &in.t[FA_T_V],
                                  &in.t[has_cache ? FA_T_K_NEW : FA_T_K],
                                  &in.t[has_cache ? FA_T_V_NEW : FA_T_V],
                                  &in.t[FA_T_V],
                                  &in.t[FA_T_K],
                                  &in.t[FA_T_Q],
                                  &in.t[FA_T_O]};
    const char *some_names[9];
    const fa_tensor *some[9];
    int n = 0;
    char path[200];
    fa_safetensors f;
    fa_recorded run;
    fa_error err = {""};
    for (int k = 0; k < 9; ++k)
      if (has_cache || k < 3 || k > 4) some_names[n] = names[k], some[n++] = t[k];
    path_of("run.safetensors", path);
    CHECK_MSG(fa_safetensors_write(path, some_names, some, n, groups, lines, 1, &err) == FA_OK, "%s",
              err.text);
    REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
    const fa_status status = fa_recorded_load(&f, path, "x", &run, &err);
    CHECK_MSG(status == (has_cache ? FA_OK : FA_ERR_INPUT), "%s", err.text);
    if (has_cache) { /* k after the call is v before it, and the other way round */
      const int64_t at[FA_MAX_RANK] = {0, 1, 0, 3};
      CHECK(fa_tensor_get(&run.got.t[FA_T_K], at) == fa_tensor_get(&in.t[FA_T_V], at));
      CHECK(fa_tensor_get(&run.got.t[FA_T_V], at) == fa_tensor_get(&in.t[FA_T_K], at));
      CHECK(fa_tensor_get(&run.in.t[FA_T_K], at) == fa_tensor_get(&in.t[FA_T_K], at));
      fa_recorded_free(&run);
    } else {
      CHECK_MSG(strstr(err.text, "k_after, v_after: the case has no cache"), "%s", err.text);
    }
    fa_safetensors_close(&f);
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

/* Which shapes and types a recorded tensor may have: the case's own, an LSE with longer rows, and outputs in f64. */
static void test_fit(void) {
  static const struct {
    const char *name;
    fa_dtype dtype;
    int rank;
    int64_t shape[4];
    const char *says; /* NULL: it fits */
  } rows[] = {{"q", FA_F16, 4, {2, 3, 2, 8}, NULL},
              {"q", FA_F64, 4, {2, 3, 2, 8}, "q: is f64 [2,3,2,8], the case needs f16 [2,3,2,8]"},
              {"q", FA_BF16, 4, {2, 3, 2, 8}, "q: is bf16"},
              {"q", FA_F16, 4, {2, 3, 2, 9}, "q: is f16 [2,3,2,9]"},
              {"q", FA_F16, 4, {2, 4, 2, 8}, "q: is f16 [2,4,2,8]"},
              {"q", FA_F16, 4, {1, 3, 2, 8}, "q: is f16 [1,3,2,8]"},
              {"q", FA_F16, 3, {2, 3, 2}, "q: is f16 [2,3,2]"},
              {"lse", FA_F32, 3, {2, 2, 3}, NULL},
              {"lse", FA_F64, 3, {2, 2, 3}, NULL},
              {"lse", FA_F32, 3, {2, 2, 7}, NULL},
              {"lse", FA_F32, 3, {2, 2, 2}, "lse: is f32 [2,2,2]"},
              {"lse", FA_F32, 3, {2, 3, 3}, "lse: is f32 [2,3,3]"},
              {"lse", FA_F32, 3, {3, 2, 3}, "lse: is f32 [3,2,3]"},
              {"lse", FA_F16, 3, {2, 2, 3}, "lse: is f16"},
              {"lse", FA_F32, 2, {2, 2}, "lse: is f32 [2,2]"},
              {"lse", FA_F32, 4, {2, 2, 3, 1}, "lse: is f32 [2,2,3,1]"},
              {"o", FA_F16, 4, {2, 3, 2, 8}, NULL},
              {"o", FA_F64, 4, {2, 3, 2, 8}, NULL},
              {"o", FA_F16, 4, {2, 3, 2, 9}, "o: is f16 [2,3,2,9]"},
              {"dq", FA_F16, 4, {2, 3, 2, 8}, "do: missing; it is needed"},
              {"dbias", FA_F16, 4, {2, 3, 2, 8}, "dbias: the case has no such tensor"},
              {"bias", FA_F16, 4, {2, 3, 2, 8}, "bias: the case has no such tensor"},
              {"seqused_k", FA_F16, 1, {2}, "seqused_k: the case has no such tensor"},
              {"nothing", FA_F16, 1, {2}, "nothing: no known tensor name"},
              {"buffer_x", FA_F16, 1, {2}, NULL}};
  static const char *const groups[] = {"x"}, *const lines[] = {
                                                 "{\"batch\":2,\"heads_q\":2,\"heads_kv\":2,\"seqlen_q\":3,"
                                                 "\"head_dim\":8,\"backward\":false}"};
  static const double zeros[1000];
  fa_tensors in;
  fa_case c = case_of(lines[0], &in);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    fa_tensor own = {.dtype = rows[i].dtype, .rank = rows[i].rank, .data = (char *)(uintptr_t)zeros};
    int64_t stride = 1;
    for (int a = rows[i].rank - 1; a >= 0; --a)
      own.shape[a] = rows[i].shape[a], own.stride[a] = stride, stride *= own.shape[a];
    char full[40], path[200];
    snprintf(full, sizeof full, "x/%s", rows[i].name);
    const char *names[] = {"x/q", "x/k", "x/v", "x/o", full};
    const fa_tensor *tensors[] = {&in.t[FA_T_Q], &in.t[FA_T_K], &in.t[FA_T_V], &in.t[FA_T_O], &own};
    int n = 5;
    for (int k = 0; k < 4; ++k)
      if (strcmp(names[k], full) == 0) tensors[k] = &own, n = 4;
    fa_safetensors f;
    fa_recorded run;
    fa_error err = {""};
    path_of("run.safetensors", path);
    REQUIRE(fa_safetensors_write(path, names, tensors, n, groups, lines, 1, &err) == FA_OK);
    REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
    const fa_status status = fa_recorded_load(&f, path, "x", &run, &err);
    CHECK_MSG(rows[i].says
                  ? status == FA_ERR_INPUT && strstr(err.text, rows[i].says) && strstr(err.text, "group x")
                  : status == FA_OK,
              "%zu: %s: %s", i, rows[i].name, err.text);
    if (status == FA_OK) {
      CHECK(!run.backward && !run.c.problem.backward && !run.c.problem.grad_lse &&
            !run.c.problem.return_softmax);
      fa_recorded_free(&run);
    }
    fa_safetensors_close(&f);
  }
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* What a case is taken for, by the tensors that are there. */
static void test_taken_for(void) {
  static const struct {
    const char *extra;
    fa_tensor_id id;
    bool backward, asked, grad_lse;
  } rows[] = {{NULL, 0, false, false, false},
              {"x/do", FA_T_DO, false, true, false},
              {"x/dlse", FA_T_LSE, false, false, true},
              {"x/dv", FA_T_DV, true, true, false}};
  static const char *const groups[] = {"x"}, *const lines[] = {"{\"seqlen_q\":3,\"head_dim\":8}"};
  fa_tensors in;
  fa_case c = case_of(lines[0], &in);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    char path[200];
    const char *names[6] = {"x/q", "x/k", "x/v", "x/o"};
    const fa_tensor *tensors[6] = {&in.t[FA_T_Q], &in.t[FA_T_K], &in.t[FA_T_V], &in.t[FA_T_O]};
    int n = 4;
    if (rows[i].extra) names[n] = rows[i].extra, tensors[n++] = &in.t[rows[i].id];
    if (rows[i].backward) names[n] = "x/do", tensors[n++] = &in.t[FA_T_DO];
    fa_safetensors f;
    fa_recorded run;
    fa_error err = {""};
    path_of("run.safetensors", path);
    REQUIRE(fa_safetensors_write(path, names, tensors, n, groups, lines, 1, &err) == FA_OK);
    REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
    const fa_status status = fa_recorded_load(&f, path, "x", &run, &err);
    CHECK_MSG(rows[i].grad_lse ? status != FA_OK : status == FA_OK, "%zu: %s", i, err.text);
    if (status == FA_OK) {
      CHECK(run.backward == rows[i].backward && run.c.problem.backward == rows[i].asked);
      CHECK((run.in.t[FA_T_DO].data != NULL) == rows[i].asked &&
            (run.got.t[FA_T_DV].data != NULL) == rows[i].backward);
      fa_recorded_free(&run);
    }
    fa_safetensors_close(&f);
  }
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* ---- failures ---- */

/* The case and the schedule of a failure, or of what it was shrunk to. */
static void test_read_failure(void) {
  static const struct {
    const char *json;
    bool shrunk;
    const char *says; /* NULL: it is read, with this seed */
    uint64_t seed;
  } rows[] = {
      {"{\"case\":{\"seqlen_q\":3}}", false, NULL, 0},
      {"{\"case\":{\"seqlen_q\":3},\"schedule_seed\":\"7\"}", false, NULL, 7},
      {"{\"case\":{\"seqlen_q\":3},\"schedule_seed\":\"18446744073709551615\"}", false, NULL, UINT64_MAX},
      {"{\"case\":{\"seqlen_q\":3},\"schedule_seed\":\"18446744073709551616\"}", false,
       "$.schedule_seed: must be", 0},
      {"{\"case\":{\"seqlen_q\":3},\"schedule_seed\":7}", false, "$.schedule_seed: must be", 0},
      {"{\"case\":{\"seqlen_q\":3},\"schedule_seed\":\"\"}", false, "$.schedule_seed: must be", 0},
      {"{\"case\":{\"seqlen_q\":3},\"schedule_seed\":\"-1\"}", false, "$.schedule_seed: must be", 0},
      {"{\"case\":{\"seqlen_q\":3},\"schedule_seed\":\"7x\"}", false, "$.schedule_seed: must be", 0},
      {"{\"case\":{\"seqlen_q\":3},\"schedule_seed\":\"x\"}", false, "$.schedule_seed: must be", 0},
      {"{\"case\":{\"seqlen_q\":3}}", true, "$.shrunk: missing; this failure was not shrunk", 0},
      {"{\"case\":{\"seqlen_q\":3},\"shrunk\":{}}", true, "$.shrunk: missing; this failure was not shrunk",
       0},
      {"{\"case\":{\"seqlen_q\":4},\"schedule_seed\":\"7\",\"shrunk\":{\"case\":{\"seqlen_q\":3},\"schedule_"
       "seed\":\"9\"}}",
       true, NULL, 9},
      {"{\"case\":{\"seqlen_q\":3},\"schedule_seed\":\"7\",\"shrunk\":{\"case\":{\"seqlen_q\":4},\"schedule_"
       "seed\":\"9\"}}",
       false, NULL, 7},
      {"{\"case\":{\"seqlen_q\":-3}}", false, "$.case.seqlen_q", 0},
      {"{\"shrunk\":{\"case\":{\"seqlen_q\":-3}}}", true, "$.shrunk.case.seqlen_q", 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    uint64_t seed = 77;
    fa_error err = {""};
    fa_case c;
    cJSON *o = cJSON_Parse(rows[i].json);
    REQUIRE(o);
    const fa_status status = fa_failure_read(o, rows[i].shrunk, &c, &seed, &err);
    CHECK_MSG(rows[i].says ? status == FA_ERR_INPUT && strstr(err.text, rows[i].says)
                           : status == FA_OK && seed == rows[i].seed,
              "%s: %d, %llu: %s", rows[i].json, (int)status, (unsigned long long)seed, err.text);
    if (status == FA_OK) {
      CHECK(c.problem.seqlen_q == 3);
      fa_case_free(&c);
    }
    cJSON_Delete(o);
  }
}

static void test_words(void) {
  fa_failure_word w;
  CHECK(fa_failure_word_read("r.json:12.shrunk", &w, NULL) == FA_OK && w.k == 12 && w.shrunk &&
        strcmp(w.path, "r.json") == 0);
  CHECK(fa_failure_word_read("r.json:99999999999999999999", &w, NULL) == FA_ERR_INPUT);
  CHECK(fa_failure_word_read("r.json:", &w, NULL) == FA_ERR_INPUT &&
        fa_failure_word_read("r.json:-1", &w, NULL) == FA_ERR_INPUT);
  CHECK(fa_failure_word_read("r.json:1x", &w, NULL) == FA_ERR_INPUT &&
        fa_failure_word_read("r.json:1.shrunken", &w, NULL) == FA_ERR_INPUT);
  char longest[sizeof w.path + 1] = ""; /* which fills its room, and no more */
  memset(longest, 'x', sizeof w.path - 1);
  CHECK(fa_failure_word_read(longest, &w, NULL) == FA_OK && w.k == -1 && strcmp(w.path, longest) == 0);
}

/* A case's name as a file's: none is hidden, or in another folder. */
static void test_file_names(void) {
  static const struct {
    const char *name, *want;
  } names[] = {{"aZ-z_A.09", "aZ-z_A.09"}, {".a.b", "_a.b"}, {"../x", "_._x"}, {"a/b c", "a_b_c"}, {"", "_"}};
  char out[200], text[300];
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    fa_file_name_from(names[i].name, out, sizeof out);
    CHECK_MSG(strcmp(out, names[i].want) == 0, "%s: %s, not %s", names[i].name, out, names[i].want);
  }
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  fa_file_name_from(text, out, sizeof out);
  CHECK(strlen(out) == 100);
  fa_file_name_from(text, out, 4);
  CHECK(strcmp(out, "xxx") == 0);
  fa_file_name_from("", out, 1);
  CHECK(out[0] == 0);
  fa_file_name_from("", out, 2);
  CHECK(strcmp(out, "_") == 0);
}

typedef struct dumped {
  fa_case c;
  fa_tensors in;
} dumped;

static void *dump(void *of) {
  const dumped *x = of;
  for (int k = 0; k < 90; ++k) {
    char path[300];
    fa_error err = {""};
    CHECK_MSG(fa_dump_write(folder, &x->c, &x->in, &x->in, path, sizeof path, &err) == FA_OK, "%s", err.text);
  }
  return NULL;
}

/* A dump keeps no memory. */
static void test_dump(void) {
  dumped x;
  x.c = case_of("{\"seqlen_q\":2,\"head_dim\":8}", &x.in);
  const long long kept = bytes_kept(dump, &x);
  CHECK_MSG(kept < 500, "%lld bytes are kept", kept);
  fa_tensors_free(&x.in);
  fa_case_free(&x.c);
}

/* The caches as they are afterwards are in the dump of a call that appends to them, if only one token, and of no other. */
static void test_dump_after(void) {
  static const struct {
    const char *text;
    bool appends;
  } calls[] = {
      {"{\"name\":\"x\",\"family\":\"kvcache\",\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[5],"
       "\"new\":1}}",
       true},
      {"{\"name\":\"x\",\"family\":\"kvcache\",\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[5]}}",
       false},
      {"{\"name\":\"x\",\"seqlen_q\":2,\"head_dim\":8}", false}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    char path[300];
    fa_tensors in;
    fa_safetensors f;
    fa_error err = {""};
    fa_case c = case_of(calls[i].text, &in);
    REQUIRE(fa_dump_write(folder, &c, &in, &in, path, sizeof path, &err) == FA_OK);
    REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
    CHECK(fa_safetensors_find(&f, "x/q") && fa_safetensors_find(&f, "x/k"));
    CHECK_MSG(!fa_safetensors_find(&f, "x/k_after") == !calls[i].appends &&
                  !fa_safetensors_find(&f, "x/v_after") == !calls[i].appends,
              "%s", calls[i].text);
    fa_safetensors_close(&f);
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

static bool no_line; /* there is no memory for a case's line */
char *__real_fa_case_to_line(const fa_case *c);
char *__wrap_fa_case_to_line(const fa_case *c);

char *__wrap_fa_case_to_line(const fa_case *c) {
  return no_line ? NULL : __real_fa_case_to_line(c);
}

/* A dump that could not be written has no name. */
static void test_no_dump(void) {
  char path[300] = "before", nowhere[300];
  fa_tensors in;
  fa_error err = {""};
  fa_case c = case_of("{\"seqlen_q\":2,\"head_dim\":8}", &in);
  path_of("run.safetensors/none", nowhere);
  CHECK(fa_dump_write(nowhere, &c, &in, &in, path, sizeof path, &err) != FA_OK && !path[0] && err.text[0]);
  no_line = true;
  CHECK(fa_dump_write(folder, &c, &in, &in, path, sizeof path, &err) == FA_ERR_MEMORY && !path[0]);
  no_line = false;
  fa_tensors_free(&in);
  fa_case_free(&c);
}

static void remove_folder(void) {
  char path[200];
  DIR *d = opendir(folder);
  REQUIRE(d);
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.') {
      path_of(e->d_name, path);
      unlink(path);
    }
  closedir(d);
  CHECK(rmdir(folder) == 0);
}

int main(void) {
  REQUIRE(mkdtemp(folder));
  test_golden();
  test_golden_inputs();
  test_golden_near();
  test_golden_names();
  test_golden_kept();
  test_no_golden();
  test_groups();
  test_no_group();
  test_outputs();
  test_buffers();
  test_caches_after();
  test_fit();
  test_taken_for();
  test_read_failure();
  test_words();
  test_file_names();
  test_dump();
  test_dump_after();
  test_no_dump();
  remove_folder();
  return check_done();
}
