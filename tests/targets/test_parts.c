/* The parts of the fuzz targets: records, the record mutator, the tape of the executor, what happens at a
 * finding. */
#include "cases/codec/json.h"
#include "fuzz/inputs/fuzzer.h"
#include "fuzz/inputs/to_case.h"
#include "gpu/simt/launch.h"
#include "tests/support/check.h"

#include "cases/base/rng.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t raw_mutate(uint8_t *data, size_t size, size_t max_size) {
  if (size < max_size) data[size++] = 0x5a;
  return size;
}

/* Any bytes are a valid case (fa_record_to_case asserts that), and a case made from a record converts back to
 * the same case. */
static void test_any_bytes(void) {
  fa_rng r = fa_rng_make(7, 1);
  int n_back = 0;
  for (int i = 0; i < 3000; ++i) {
    uint8_t bytes[300];
    const size_t n = (size_t)fa_rng_below(&r, sizeof bytes);
    for (size_t k = 0; k < n; ++k) bytes[k] = (uint8_t)(fa_rng_chance(&r, 0.3) ? 0 : fa_rng_next(&r));
    fa_record x, y;
    fa_case c, d;
    fa_record_read(bytes, n, &x);
    REQUIRE(fa_record_to_case(&x, FA_RECORD_WORK, &c, NULL) == FA_OK);
    const bool back = fa_record_from_case(&c, &y);
    n_back += back;
    if (back) {
      REQUIRE(fa_record_to_case(&y, FA_RECORD_WORK, &d, NULL) == FA_OK);
      for (int id = 0; id < FA_T_COUNT; ++id) /* a fill of a tensor that the case lacks is invisible */
        if (!fa_case_uses(&c, (fa_tensor_id)id)) d.fill[id] = c.fill[id];
      CHECK(fa_case_equal(&c, &d));
      fa_case_free(&d);
    }
    fa_case_free(&c);
  }
  CHECK_MSG(n_back > 2700, "%d of 3000", n_back);
}

static void test_round_trip(void) {
  fa_rng r = fa_rng_make(8, 1);
  for (int i = 0; i < 200; ++i) {
    uint8_t bytes[512];
    fa_record x, y;
    for (int f = 0; f < FA_N_FIELDS; ++f) {
      const uint64_t n = fa_record_field_count((fa_field)f);
      x.v[f] = n ? fa_rng_next(&r) % n : fa_rng_next(&r);
    }
    REQUIRE(fa_record_bytes() + 20 <= sizeof bytes);
    memset(bytes, 0xee, 20); /* a tape before it has no effect */
    fa_record_write(&x, bytes + 20);
    fa_record_read(bytes, fa_record_bytes() + 20, &y);
    CHECK(memcmp(&x, &y, sizeof x) == 0);
  }
}

/* With bytes removed from the front, the fields that were there become 0, and the others stay. */
static void test_truncation(void) {
  uint8_t bytes[512];
  const size_t n = fa_record_bytes();
  fa_record whole, part;
  memset(bytes, 0xff, sizeof bytes);
  fa_record_read(bytes, n, &whole);
  for (size_t cut = 0; cut <= n; ++cut) {
    int n_kept = 0;
    fa_record_read(bytes, n - cut, &part);
    for (int f = 0; f < FA_N_FIELDS; ++f) n_kept += part.v[f] == whole.v[f];
    CHECK(cut == 0 ? n_kept == FA_N_FIELDS : part.v[FA_N_FIELDS - 1] == 0);
  }
  for (int f = 0; f < FA_N_FIELDS; ++f) CHECK(part.v[f] == 0);
}

static void test_mutations(void) {
  uint8_t a[1024] = {0}, b[1024];
  size_t size = 0, n = fa_record_bytes();
  int changed[FA_N_FIELDS] = {0}, raw = 0;
  fa_record before, after;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    fa_record_read(a, size, &before);
    const size_t now = fa_record_mutate(a, size, 400, seed, false, raw_mutate);
    REQUIRE(now <= 400);
    raw += now != n;
    fa_record_read(a, now, &after);
    for (int f = 0; f < FA_N_FIELDS; ++f) changed[f] += before.v[f] != after.v[f];
    size = now > n ? 0 : now;
  }
  for (int f = FA_F_DTYPE; f < FA_N_FIELDS; ++f) CHECK_MSG(changed[f] > 0, "field %d never changes", f);
  CHECK(raw > 0);
  memset(a, 1, sizeof a);
  memset(b, 2, sizeof b);
  fa_record_read(a, n, &before);
  fa_record_read(b, n, &after);
  for (unsigned seed = 0; seed < 50; ++seed) {
    uint8_t out[1024];
    fa_record x;
    const size_t got = fa_record_cross(a, n + 5, b, n + 9, out, 200, seed);
    CHECK(got == n + 5 || got == n + 9);
    fa_record_read(out, got, &x);
    for (int f = 0; f < FA_N_FIELDS; ++f) CHECK(x.v[f] == before.v[f] || x.v[f] == after.v[f]);
  }
  CHECK(fa_record_cross(a, n, b, n, b, n - 1, 1) == 0);
}

/* ---- the tape ---- */

enum { N_THREADS = 128 };

typedef struct order {
  int32_t next, at[N_THREADS];
} order;

/* Every thread records when it runs: a race on a real device, here decided by the schedule. */
static void note_order(const void *params) {
  order *o = *(order *const *)params;
  const fa_simt_place here = {__FILE__, __LINE__};
  fa_simt_sync_block(here);
  o->at[o->next++] = (int32_t)fa_simt_self->thread.x;
}

static void run_order(const uint8_t *tape, size_t n, order *o) {
  memset(o, 0, sizeof *o);
  const fa_simt_launch launch = {.kernel = note_order,
                                 .params = &o,
                                 .name = "order",
                                 .grid = {1, 1, 1},
                                 .block = {N_THREADS, 1, 1},
                                 .shared_bytes = 128,
                                 .tape = tape,
                                 .tape_bytes = n,
                                 .n_threads = 1};
  fa_simt_report report;
  REQUIRE(fa_simt_run(&launch, &report, NULL) == FA_OK && report.state == FA_SUBJECT_OK);
  REQUIRE(o->next == N_THREADS);
}

static void test_tape(void) {
  static const uint8_t zeros[3], bytes[] = {0, 9, 200, 77, 1, 31};
  order plain, zero, some, again;
  run_order(NULL, 0, &plain);
  run_order(zeros, sizeof zeros, &zero);
  run_order(bytes, sizeof bytes, &some);
  run_order(bytes, sizeof bytes, &again);
  CHECK(memcmp(&plain, &zero, sizeof plain) == 0);
  CHECK(memcmp(&some, &again, sizeof some) == 0);
  CHECK(memcmp(&plain, &some, sizeof plain) != 0);
}

/* ---- findings ---- */

/* Which results are findings; errors of the world are not. */
static void test_what_is_a_finding(void) {
  static fa_result r;
  for (int state = 0; state < FA_N_STATES; ++state) {
    fa_result_init(&r);
    r.state = (fa_state)state;
    const bool good = state == FA_PASS || state == FA_SKIP || state == FA_VACUOUS;
    CHECK_MSG(fa_fuzzer_is_finding(&r, FA_OK) == !good, "%s", fa_state_name((fa_state)state));
  }
  r.state = FA_ERROR;
  CHECK(!fa_fuzzer_is_finding(&r, FA_ERR_MEMORY));
  CHECK(fa_fuzzer_is_finding(&r, FA_ERR_INPUT)); /* as from an invalid launch */
  r.malformed = true;
  CHECK(!fa_fuzzer_is_finding(&r, FA_ERR_INPUT));
}

/* Reads and removes the file in the folder whose name ends like this; "": there is none. */
static void take_file(const char *folder, const char *end, char *text, size_t size) {
  DIR *dir = opendir(folder);
  REQUIRE(dir);
  text[0] = 0;
  for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
    char path[4200];
    const size_t n = strlen(e->d_name), m = strlen(end);
    if (n < m || strcmp(e->d_name + n - m, end) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    FILE *file = fopen(path, "rb");
    REQUIRE(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
    unlink(path);
  }
  closedir(dir);
}

/* Runs in a child, which ends by abort. Its output is stderr.txt in the folder. target: NULL, or whose
 * input. */
static void find_one(const char *folder, const char *target, const char *input) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    static fa_result r;
    const fa_record x = {{0}};
    char said[4200];
    fa_case c;
    snprintf(said, sizeof said, "%s/stderr.txt", folder);
    if (!freopen(said, "w", stderr) || fa_record_to_case(&x, FA_RECORD_WORK, &c, NULL) != FA_OK) _exit(1);
    setvbuf(stderr, NULL, _IONBF, 0); /* abort does not flush */
    fa_result_init(&r);
    r.state = FA_RACE;
    setenv("FA_ARTIFACT_DIR", folder, 1);
    if (!target) fa_fuzzer_finding(&c, &r);
    fa_fuzzer_finding_of_input(&c, &r, target, (const uint8_t *)input, strlen(input));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void expect_case(const char *line) {
  fa_case c;
  fa_error err = {""};
  const fa_status read = fa_case_from_text(line, &c, &err);
  CHECK_MSG(read == FA_OK, "%s", err.text);
  if (read == FA_OK) fa_case_free(&c);
}

static void test_finding(void) {
  static char text[1 << 16];
  char folder[] = "/tmp/test_fuzz_XXXXXX";
  REQUIRE(mkdtemp(folder));
  find_one(folder, NULL, NULL);
  take_file(folder, "stderr.txt", text, sizeof text);
  CHECK_MSG(strstr(text, "repro: fa-verify run --backend host --case '"), "%s", text);
  take_file(folder, ".json", text, sizeof text);
  expect_case(text);
  take_file(folder, ".input", text, sizeof text);
  CHECK(!text[0]);
  /* If the case alone does not reproduce it, it must not be offered for that. */
  find_one(folder, "schedule", "a tape");
  take_file(folder, "stderr.txt", text, sizeof text);
  CHECK_MSG(strstr(text, "repro: replay_schedule /tmp/test_fuzz_") && strstr(text, ".input\n"), "%s", text);
  CHECK_MSG(!strstr(text, "fa-verify run"), "%s", text);
  take_file(folder, ".input", text, sizeof text);
  CHECK_MSG(strcmp(text, "a tape") == 0, "%s", text);
  take_file(folder, ".json", text, sizeof text);
  expect_case(text);
  CHECK(rmdir(folder) == 0); /* nothing else was left there */
}

/* What the targets run for an input must be what corpus_tool prints. */
static void test_inputs(void) {
  uint8_t bytes[600];
  const size_t n = fa_record_bytes(), tape = 8;
  fa_record x = {{0}};
  fa_case c, d;
  REQUIRE(n + tape <= sizeof bytes);
  x.v[FA_F_LENGTH_Q] = x.v[FA_F_LENGTH_K] = 130;
  x.v[FA_F_HEADS_KV] = 2, x.v[FA_F_GROUP] = 3, x.v[FA_F_DROPOUT] = 3, x.v[FA_F_RETURN_SOFTMAX] = 1;
  fa_record_write(&x, bytes + tape);
  CHECK(fa_input_tape_bytes(n + tape) == tape && fa_input_tape_bytes(n) == 0 && fa_input_tape_bytes(3) == 0);
  memset(bytes, 7, tape);
  REQUIRE(fa_record_to_case(&x, FA_RECORD_WORK, &d, NULL) == FA_OK);
  REQUIRE(fa_input_attention.to_case(bytes, n + tape, &c, NULL) == FA_OK);
  CHECK(fa_case_equal(&c, &d) && c.problem.return_softmax);
  fa_case_free(&c);
  REQUIRE(fa_input_schedule.to_case(bytes, n + tape, &c, NULL) == FA_OK);
  CHECK(c.problem.heads_q < d.problem.heads_q && !c.problem.return_softmax);
  fa_case_free(&c);
  fa_case_free(&d);
  CHECK(fa_input_find("families") == &fa_input_families && !fa_input_find("famil"));
}

/* For hopper a record means more: any bytes are a valid case of aligned tensors, most cases convert back to a
 * record, and long rows and large head dims occur. */
static void test_hopper_inputs(void) {
  fa_rng r = fa_rng_make(10, 1);
  int n_back = 0, n_long = 0, n_wide = 0;
  for (int i = 0; i < 2000; ++i) {
    uint8_t bytes[300];
    const size_t n = (size_t)fa_rng_below(&r, sizeof bytes);
    fa_record x;
    fa_case c, d;
    for (size_t k = 0; k < n; ++k) bytes[k] = (uint8_t)(fa_rng_chance(&r, 0.5) ? 0 : fa_rng_next(&r));
    REQUIRE(fa_input_hopper.to_case(bytes, n, &c, NULL) == FA_OK);
    for (int id = 0; id < FA_T_COUNT; ++id) CHECK(c.strides[id].offset % 8 == 0);
    n_long += c.problem.seqlen_k > FA_RECORD_LENGTH;
    n_wide += c.problem.head_dim > 128;
    if (fa_input_hopper.from_case(&c, &x)) {
      uint8_t again[512];
      fa_record_write(&x, again);
      REQUIRE(fa_input_hopper.to_case(again, fa_record_bytes(), &d, NULL) == FA_OK);
      CHECK(fa_record_same_case(&c, &d));
      fa_case_free(&d);
      ++n_back;
    }
    fa_case_free(&c);
  }
  CHECK_MSG(n_back > 1500 && n_long > 50 && n_wide > 200, "%d back, %d long, %d wide of 2000", n_back, n_long,
            n_wide);
}

int main(void) {
  test_any_bytes();
  test_round_trip();
  test_truncation();
  test_mutations();
  test_tape();
  test_what_is_a_finding();
  test_finding();
  test_inputs();
  test_hopper_inputs();
  return check_done();
}
