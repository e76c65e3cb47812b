/* The safetensors reader on files that lie, the writer against a literal reader of the format, and random
 * mutations of a valid file. */
#include "cases/base/bits.h"
#include "cases/base/rng.h"
#include "cases/tensors/safetensors.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static fa_error err;
static char folder[] = "/tmp/fa-test-safetensors-XXXXXX";

static const char *path_of(const char *name) {
  static char path[2][256];
  static int turn;
  turn ^= 1;
  snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
  return path[turn];
}

/* Writes length, header text and n data bytes; length < 0: the text's own. Returns the size. */
static size_t make_file(char *out, int64_t length, const char *header, size_t n_data) {
  const size_t n = strlen(header);
  const uint64_t claimed = length < 0 ? n : (uint64_t)length;
  for (int i = 0; i < 8; ++i) out[i] = (char)(claimed >> 8 * i);
  memcpy(out + 8, header, n);
  for (size_t i = 0; i < n_data; ++i) out[8 + n + i] = (char)i;
  return 8 + n + n_data;
}

/* ---- files that lie ---- */

#define T(name, dtype, shape, offsets)                                                                       \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
  const char *header;
  size_t n_data;
  const char *says[2]; /* both appear in the message; NULL: accepted */
} headers[] = {
    {"{}", 0, {NULL}},
    {"{" T("a", "F32", "[2]", "[0,8]") "}", 8, {NULL}},
    {"{" T("a", "F32", "[]", "[0,4]") "}", 4, {NULL}},
    {"{" T("a", "BOOL", "[1,1,1,1,3]", "[0,3]") "}   ", 3, {NULL}},
    {"{" T("a", "F4", "[3,2]", "[0,3]") "}   ", 3, {NULL}},
    {"{" T("a", "F4", "[4]", "[0,2]") "}   ", 2, {NULL}},
    {"{" T("a", "F4", "[2,3]", "[0,3]") "}   ", 3, {"tensor a", "the last axis must be even"}},
    {"{" T("a", "F4", "[]", "[0,1]") "}   ", 1, {"tensor a", "the last axis must be even"}},
    {"{" T("a", "F64", "[0,7]", "[0,0]") "," T("b", "U8", "[1]", "[0,1]") "," T("c", "I32", "[3,0]",
                                                                                "[1,1]") "}",
     1,
     {NULL}},
    {"{" T("b", "U8", "[1]", "[2,3]") "," T("a", "BF16", "[1]", "[0,2]") ",\"__metadata__\":{\"k\":\"v\"}}",
     3,
     {NULL}},
    /* JSON */
    {"[]", 0, {"must start with {", ""}},
    {"", 0, {"must start with {", ""}},
    {" {}", 0, {"must start with {", ""}},
    {"{", 0, {"file.st", ""}},
    {"{}x", 0, {"file.st", ""}},
    {"{\"a\"}", 0, {"file.st", ""}},
    {"{" T("a\xff", "F32", "[2]", "[0,8]") "}", 8, {"file.st", "UTF-8"}},
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("a", "F32", "[2]", "[8,16]") "}", 16, {"twice", "a"}},
    {"{" T("a\\n", "F32", "[2]", "[0,8]") "}", 8, {"control characters", ""}},
    {"{" T("a", "F\\n", "[2]", "[0,8]") "}", 8, {"tensor a", "(unprintable)"}},
    {"{\"a\":{\"b\\n\":1}}", 0, {"tensor a", "(unprintable)"}},
    /* entries */
    {"{\"a\":7}", 0, {"tensor a", "must be an object"}},
    {"{\"a\":{}}", 0, {"tensor a", "\"dtype\" must be a string"}},
    {"{\"a\":{\"dtype\":\"F32\"}}", 0, {"tensor a", "\"shape\" must be an array"}},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, {"tensor a", "data_offsets"}},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}",
     4,
     {"tensor a", "unknown key \"x\""}},
    {"{" T("a", "I16", "[1]", "[0,2]") "}", 2, {"tensor a: dtype \"I16\"", "allowed: F16"}},
    {"{" T("a", "f32", "[2]", "[0,8]") "}", 8, {"tensor a: dtype", ""}},
    {"{" T("a", "U8", "[1,1,1,1,1,1]", "[0,1]") "}", 1, {"tensor a", "more than 5 axes"}},
    {"{" T("a", "U8", "[-1]", "[0,1]") "}", 1, {"tensor a", "integers"}},
    {"{" T("a", "U8", "[1.5]", "[0,1]") "}", 1, {"tensor a", "integers"}},
    {"{" T("a", "U8", "[1e300]", "[0,1]") "}", 1, {"tensor a", "integers"}},
    {"{" T("a", "U8", "[\"1\"]", "[0,1]") "}", 1, {"tensor a", "integers"}},
    {"{" T("a", "F32", "[4294967296,4294967296]", "[0,0]") "}", 0, {"tensor a", "overflow"}},
    {"{" T("a", "F32", "[9007199254740992,0,9007199254740992]", "[0,0]") "}", 0, {"tensor a", "overflow"}},
    {"{" T("a", "F64", "[1152921504606846976]", "[0,0]") "}", 0, {"tensor a", "integers from 0 to 2^53"}},
    /* offsets */
    {"{" T("a", "F32", "[2]", "[0,9]") "}", 9, {"tensor a", "need 8 bytes"}},
    {"{" T("a", "F32", "[2]", "{\"x\":0,\"y\":8}") "}", 8, {"tensor a", "two integers"}},
    {"{" T("a", "F32", "[2]", "[0,8]") "}", 7, {"tensor a", "data ends at byte 8"}},
    {"{" T("a", "F32", "[2]", "[8,0]") "}", 8, {"tensor a", "begin <= end"}},
    {"{" T("a", "F32", "[2]", "[0]") "}", 8, {"tensor a", "two integers"}},
    {"{" T("a", "F32", "[2]", "[0,8,8]") "}", 8, {"tensor a", "two integers"}},
    {"{" T("a", "F32", "[2]", "[9007199254740984,9007199254740992]") "}", 8, {"tensor a", "data ends"}},
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[4,12]") "}",
     12,
     {"tensor b", "overlaps that of tensor a"}},
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[4,12]") "," T("c", "F32", "[1]",
                                                                                "[16,20]") "}",
     20,
     {"tensor b", "overlaps that of tensor a"}}, /* the first fault of two */
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[1]", "[12,16]") "}",
     16,
     {"tensor b: 4 bytes", "belong to no tensor"}},
    {"{" T("a", "F32", "[2]", "[0,8]") "}", 12, {"4 bytes after the last", "belong to no tensor"}},
    {"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "U8", "[0]", "[4,4]") "}", 8, {"overlaps", "a"}},
    {"{}", 1, {"1 bytes after", ""}},
    /* metadata */
    {"{\"__metadata__\":[]}", 0, {"__metadata__", "must be an object"}},
    {"{\"__metadata__\":{\"k\":1}}", 0, {"__metadata__", "value of \"k\""}},
    {"{\"__metadata__\":{\"fa_r\\n\":\"1\"}}", 0, {"__metadata__", "control characters"}},
    {"{\"__metadata__\":{\"fa\\run\":\"1\"}}", 0, {"__metadata__", "control characters"}},
    {"{\"__metadata__\":{\"fa\x7frun\":\"1\"}}", 0, {"__metadata__", "control characters"}},
    {"{\"__metadata__\":{\"__metadata__\":\"1\"}}", 0, {NULL}},
};

/* Who sorts may ask about two entries either way, as the C library at hand does not: the answers must be opposite. */
typedef int order(const void *a, const void *b);
void __real_qsort(void *base, size_t n, size_t size, order *compare);
void __wrap_qsort(void *base, size_t n, size_t size, order *compare);

void __wrap_qsort(void *base, size_t n, size_t size, order *compare) {
  const char *at = base;
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < i; ++k) {
      const int there = compare(at + i * size, at + k * size), back = compare(at + k * size, at + i * size);
      CHECK_MSG((there > 0) == (back < 0) && (there < 0) == (back > 0), "%d and %d", there, back);
    }
  __real_qsort(base, n, size, compare);
}

static void test_headers(void) {
  static char bytes[4096];
  for (size_t i = 0; i < sizeof headers / sizeof *headers; ++i) {
    const size_t n = make_file(bytes, -1, headers[i].header, headers[i].n_data);
    char *copy = malloc(n); /* of exact size, so that reading past the end is detected */
    REQUIRE(copy);
    memcpy(copy, bytes, n);
    fa_safetensors f;
    err.text[0] = 0;
    const fa_status status = fa_safetensors_parse(copy, n, "file.st", &f, &err);
    if (!headers[i].says[0]) {
      CHECK_MSG(status == FA_OK, "%s: %s", headers[i].header, err.text);
    } else {
      CHECK_MSG(status == FA_ERR_INPUT, "%s", headers[i].header);
      CHECK_MSG(strncmp(err.text, "file.st", 7) == 0, "%s", err.text);
      for (int k = 0; k < 2; ++k)
        CHECK_MSG(strstr(err.text, headers[i].says[k]), "\"%s\" lacks \"%s\"", err.text, headers[i].says[k]);
      CHECK(f.entry == NULL && f.n_entries == 0 && f.meta == NULL);
    }
    fa_safetensors_close(&f);
    free(copy);
  }
}

static void test_lengths(void) {
  static char bytes[4096];
  const int64_t lengths[] = {3, 100, INT64_MAX, (int64_t)10 << 30, 0x7fffffffffff0000};
  fa_safetensors f;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    const size_t n = make_file(bytes, lengths[i], "{}", 0);
    CHECK(fa_safetensors_parse(bytes, n, "x", &f, &err) == FA_ERR_INPUT &&
          strstr(err.text, "but only 2 bytes follow"));
  }
  memset(bytes, 0xff, 16);
  CHECK(fa_safetensors_parse(bytes, 16, "x", &f, &err) == FA_ERR_INPUT);
  for (size_t n = 0; n < 8; ++n) CHECK(fa_safetensors_parse(bytes, n, "x", &f, &err) == FA_ERR_INPUT);
  /* Above the format's limit although the file is long enough: its pages are never touched. */
  const char *path = path_of("sparse");
  const int fd = open(path, O_WRONLY | O_CREAT, 0600);
  const uint64_t length = 100000001;
  REQUIRE(fd >= 0 && write(fd, &length, 8) == 8 && ftruncate(fd, 8 + 100000001) == 0 && close(fd) == 0);
  CHECK(fa_safetensors_open(path, &f, &err) == FA_ERR_INPUT && strstr(err.text, "at most 100000000"));
  /* Many tiny values: rejected before a tree of them is built. */
  const size_t n = 6000000;
  char *many = malloc(n + 16);
  REQUIRE(many);
  memset(many + 8, ',', n);
  many[8] = '{';
  memcpy(many, &(uint64_t){n}, 8);
  CHECK(fa_safetensors_parse(many, n + 8, "x", &f, &err) == FA_ERR_INPUT && strstr(err.text, "JSON values"));
  free(many);
}

static void test_not_files(void) {
  fa_safetensors f;
  CHECK(fa_safetensors_open(folder, &f, &err) == FA_ERR_IO && strstr(err.text, folder));
  CHECK(fa_safetensors_open(path_of("missing"), &f, &err) == FA_ERR_IO && strstr(err.text, "missing"));
  CHECK(fa_safetensors_open("/dev/zero", &f, &err) == FA_ERR_IO);
  REQUIRE(mkfifo(path_of("fifo"), 0600) == 0);
  CHECK(fa_safetensors_open(path_of("fifo"), &f, &err) == FA_ERR_IO); /* and does not wait for a writer */
  int fd = open(path_of("empty"), O_WRONLY | O_CREAT, 0600);
  REQUIRE(fd >= 0 && close(fd) == 0);
  CHECK(fa_safetensors_open(path_of("empty"), &f, &err) == FA_ERR_INPUT && strstr(err.text, "0 bytes"));
  fd = open(path_of("secret"), O_WRONLY | O_CREAT, 0);
  REQUIRE(fd >= 0 && close(fd) == 0);
  if (geteuid() != 0) CHECK(fa_safetensors_open(path_of("secret"), &f, &err) == FA_ERR_IO);
}

/* ---- writing ---- */

static void test_round_trip(void) {
  fa_tensors set = {0};
  const int64_t shape[4] = {2, 3, 2, 5}, gaps[4] = {30, 10, 5, 1}, one[1] = {3};
  REQUIRE(fa_tensors_add(&set, FA_T_Q, FA_F16, 4, shape, (int64_t[]){30, 5, 15, 1}, 3, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_K, FA_BF16, 4, shape, gaps, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_V, FA_F32, 4, shape, (int64_t[]){0, 10, 5, 1}, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_LSE, FA_F64, 4, shape, (int64_t[]){120, 40, 20, 4}, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_SEQUSED_K, FA_I32, 1, one, NULL, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_DROPOUT_KEEP, FA_U8, 1, one, NULL, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_O, FA_F16, 2, (int64_t[]){0, 4}, NULL, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_K_NEW, FA_E4M3, 1, one, NULL, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_V_NEW, FA_E5M2, 1, one, NULL, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_BIAS, FA_I8, 1, one, NULL, 0, NULL) == FA_OK);
  const fa_tensor_id ids[] = {FA_T_DROPOUT_KEEP, FA_T_Q,         FA_T_K,     FA_T_O,     FA_T_V,
                              FA_T_LSE,          FA_T_SEQUSED_K, FA_T_K_NEW, FA_T_V_NEW, FA_T_BIAS};
  const char *names[] = {"g/keep",         "g/q",    "g/k",   "g/o",   "g/\"v\"",
                         "g/lse \xc3\xa9", "g/used", "g/8e4", "g/8e5", "g/8i"};
  enum { N = sizeof ids / sizeof *ids };
  const fa_tensor *tensors[N];
  for (int i = 0; i < N; ++i) {
    tensors[i] = &set.t[ids[i]];
    for (int64_t at = 0; at < fa_tensor_count(tensors[i]); ++at) {
      int64_t index[FA_MAX_RANK];
      fa_tensor_unravel(tensors[i], at, index);
      fa_tensor_set(tensors[i], index, (double)(at + 10 * i));
    }
  }
  const char *keys[] = {"g", "generator"}, *values[] = {"{\"a\":\"\\u00e9\"}\n", ""};
  const char *path = path_of("written.safetensors");
  REQUIRE(fa_safetensors_write(path, names, tensors, N, keys, values, 2, &err) == FA_OK);
  REQUIRE(fa_safetensors_write(path, names, tensors, N, keys, values, 2, &err) ==
          FA_OK); /* replaces an old file */
  fa_safetensors f;
  REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
  CHECK(f.n_entries == N && f.n_meta == 2);
  CHECK(strcmp(fa_safetensors_meta(&f, "g"), values[0]) == 0 && fa_safetensors_meta(&f, "x") == NULL);
  CHECK(fa_safetensors_find(&f, "g/x") == NULL && strcmp(f.entry[1].name, "g/q") == 0);
  uint64_t length;
  memcpy(&length, f.map, 8);
  CHECK(length % 8 == 0); /* data start at a multiple of 8 */
  for (int i = 0; i < N; ++i) {
    const fa_tensor *t = fa_safetensors_find(&f, names[i]);
    REQUIRE(t != NULL);
    CHECK(t->dtype == tensors[i]->dtype && t->rank == tensors[i]->rank);
    CHECK((uintptr_t)t->data % fa_dtype_size(t->dtype) == 0);
    for (int64_t at = 0; at < fa_tensor_count(tensors[i]); ++at) {
      int64_t index[FA_MAX_RANK];
      fa_tensor_unravel(tensors[i], at, index);
      CHECK(fa_tensor_get(t, index) == fa_tensor_get(tensors[i], index));
    }
  }
  fa_safetensors_close(&f);
  fa_tensors_free(&set);
}

/* The writer accepts and rejects the same names as the reader. */
static void test_same_names(void) {
  static char longest[501], longer[502];
  memset(longest, 'n', 500);
  memset(longer, 'n', 501);
  static const struct {
    const char *name;
    bool tensor, key;
  } names[] = {{longest, true, true},    {longer, false, false},        {"fa_r\n", false, false},
               {"fa\run", false, false}, {"fa\x7frun", false, false},   {"\xff", false, false},
               {"", true, true},         {"__metadata__", false, true}, {"\xc3\xa9", true, true}};
  const float x = 1;
  const fa_tensor t = {.dtype = FA_F32, .data = (char *)(uintptr_t)&x}, *tensor = &t;
  const char *value = "v", *path = path_of("names");
  fa_safetensors f;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    const char *name = names[i].name;
    const fa_status as_tensor = fa_safetensors_write(path, &name, &tensor, 1, NULL, NULL, 0, &err);
    CHECK_MSG(as_tensor == (names[i].tensor ? FA_OK : FA_ERR_INPUT), "tensor %zu: %s", i, err.text);
    if (as_tensor == FA_OK) {
      REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
      CHECK(fa_safetensors_find(&f, name) != NULL);
      fa_safetensors_close(&f);
    }
    const fa_status as_key = fa_safetensors_write(path, NULL, NULL, 0, &name, &value, 1, &err);
    CHECK_MSG(as_key == (names[i].key ? FA_OK : FA_ERR_INPUT), "key %zu: %s", i, err.text);
    if (as_key == FA_OK) {
      REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
      CHECK(fa_safetensors_meta(&f, name) != NULL);
      fa_safetensors_close(&f);
    }
  }
}

static void test_write_errors(void) {
  const float x = 1;
  const fa_tensor t = {.dtype = FA_F32, .data = (char *)(uintptr_t)&x};
  const fa_tensor *two[2] = {&t, &t};
  const char *same[2] = {"a", "a"}, *bad[1] = {"\xff"}, *reserved[1] = {"__metadata__"},
             *good[2] = {"a", "b"};
  const char *path = path_of("refused");
  CHECK(fa_safetensors_write(path, same, two, 2, NULL, NULL, 0, &err) == FA_ERR_INPUT &&
        strstr(err.text, "twice"));
  CHECK(fa_safetensors_write(path, bad, two, 1, NULL, NULL, 0, &err) == FA_ERR_INPUT);
  CHECK(fa_safetensors_write(path, reserved, two, 1, NULL, NULL, 0, &err) == FA_ERR_INPUT);
  CHECK(fa_safetensors_write(path, good, two, 2, good, bad, 1, &err) == FA_ERR_INPUT);
  CHECK(access(path, F_OK) != 0);
  CHECK(fa_safetensors_write(path_of("no/such/folder"), good, two, 2, NULL, NULL, 0, &err) == FA_ERR_IO);
  CHECK(strstr(err.text, "No such file") != NULL);
  REQUIRE(mkdir(path_of("folder"), 0700) == 0);
  CHECK(fa_safetensors_write(path_of("folder"), good, two, 2, NULL, NULL, 0, &err) == FA_ERR_IO);
  CHECK(fa_safetensors_write("/dev/full/x", good, two, 2, NULL, NULL, 0, &err) == FA_ERR_IO);
  fa_safetensors f; /* an empty set is a valid file */
  path = path_of("refused");
  CHECK(fa_safetensors_write(path, NULL, NULL, 0, NULL, NULL, 0, &err) == FA_OK);
  CHECK(fa_safetensors_open(path, &f, &err) == FA_OK && f.n_entries == 0);
  fa_safetensors_close(&f);
}

/* ---- mutations ---- */

static char base_file[1024];

static size_t make_base(void) {
  return make_file(base_file, -1,
                   "{\"__metadata__\":{\"g\":\"{\\\"fa\\\":1}\"}," T("g/q", "F16", "[1,2,3]", "[0,12]") "," T(
                       "g/lse", "F32", "[2]", "[12,20]") "," T("n", "I32", "[]", "[20,24]") "}",
                   24);
}

/* Reads every element of what was accepted, which must lie inside the bytes. */
static double touch(const fa_safetensors *f) {
  double sum = 0;
  for (int64_t i = 0; i < f->n_entries; ++i)
    for (int64_t at = 0; at < fa_tensor_count(&f->entry[i].tensor); ++at) {
      int64_t index[FA_MAX_RANK];
      fa_tensor_unravel(&f->entry[i].tensor, at, index);
      sum += fa_tensor_get(&f->entry[i].tensor, index);
    }
  return sum;
}

static void test_mutations(void) {
  static const char alphabet[] = "{}[]\",:0123456789-.eE\\u \0\xff";
  const size_t n_base = make_base();
  fa_rng r = fa_rng_make(11, 11);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 100000; ++i) {
    size_t n = n_base;
    char *bytes = malloc(n + 8);
    REQUIRE(bytes);
    memcpy(bytes, base_file, n);
    for (int64_t k = fa_rng_below(&r, 4); k >= 0; --k) {
      const size_t at = (size_t)fa_rng_below(&r, (int64_t)n);
      switch (fa_rng_below(&r, 5)) {
      case 0:
        bytes[at] = (char)(bytes[at] ^ 1 << fa_rng_below(&r, 8));
        break;
      case 1:
        bytes[at] = alphabet[fa_rng_below(&r, sizeof alphabet - 1)];
        break;
      case 2:
        bytes[fa_rng_below(&r, 8)] = (char)fa_rng_next(&r);
        break;
      case 3:
        memmove(bytes + at, bytes + at + 1, n - at - 1), --n;
        break;
      default:
        memcpy(bytes + at, base_file + fa_rng_below(&r, (int64_t)(n_base - 8)), n - at < 8 ? n - at : 8);
      }
    }
    bytes = realloc(bytes, n ? n : 1);
    REQUIRE(bytes);
    fa_safetensors f;
    err.text[0] = 0;
    if (fa_safetensors_parse(bytes, n, "m", &f, &err) == FA_OK) {
      ++accepted;
      const double sum = touch(&f);
      CHECK(sum == sum || sum != sum);
    } else {
      ++refused;
      CHECK(err.text[0] != 0);
    }
    fa_safetensors_close(&f);
    free(bytes);
  }
  printf("mutations: %d accepted, %d refused\n", accepted, refused);
  CHECK(accepted > 1000 && refused > 50000);
}

int main(void) {
  REQUIRE(mkdtemp(folder) != NULL);
  test_headers();
  test_lengths();
  test_not_files();
  test_round_trip();
  test_same_names();
  test_write_errors();
  test_mutations();
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  CHECK(system(command) == 0);
  return check_done();
}
