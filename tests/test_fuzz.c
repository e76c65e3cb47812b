/* The parts of the fuzz targets: records, their mutations, the tape of the executor, what happens at a
 * finding. */
#include "fuzz/fuzzer.h"
#include "fuzz/generate.h"
#include "gpu/simt/simt.h"
#include "tests/check.h"

#include "cases/rng.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t raw_mutate(uint8_t *data, size_t size, size_t max_size) {
  if (size < max_size) data[size++] = 0x5a;
  return size;
}

/* Any bytes are a valid case (fa_record_to_case asserts that), and a case that came from a record leads back
 * to the same case. */
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
      for (int id = 0; id < FA_T_COUNT; ++id) /* what no tensor has, nobody can see */
        if (!fa_case_uses(&c, (fa_tensor_id)id)) d.fill[id] = c.fill[id];
      CHECK(fa_case_equal(&c, &d));
      fa_case_free(&d);
    }
    fa_case_free(&c);
  }
  CHECK_MSG(n_back > 2700, "%d of 3000", n_back);
}

/* Any record and any seed are a valid case of the other families too, the same one each time. */
static void test_families(void) {
  fa_rng r = fa_rng_make(9, 1);
  int n_scores = 0, n_masks = 0, n_blocks = 0, n_pages = 0;
  for (int i = 0; i < 2000; ++i) {
    const fa_family family = i % 2 ? FA_FLEX : FA_KVCACHE;
    const uint64_t seed = fa_rng_next(&r);
    fa_record x;
    fa_case c[2];
    fa_error err = {""};
    for (int f = 0; f < FA_N_FIELDS; ++f) {
      const uint64_t n = fa_record_field_count((fa_field)f);
      x.v[f] = n ? fa_rng_next(&r) % n : fa_rng_next(&r);
    }
    for (int k = 0; k < 2; ++k) {
      REQUIRE(fa_record_to_case(&x, FA_RECORD_WORK / 4, &c[k], NULL) == FA_OK);
      const fa_status status = fa_generate_family(&c[k], family, seed, &err);
      CHECK_MSG(status == FA_OK && c[k].problem.family == family, "%s", err.text);
    }
    CHECK(fa_case_equal(&c[0], &c[1]));
    n_scores += c->problem.score_mod != NULL;
    n_masks += c->problem.mask_mod != NULL;
    n_blocks += c->problem.block_sparse.present;
    n_pages += c->problem.kvcache.page_size > 0;
    for (int k = 0; k < 2; ++k) fa_case_free(&c[k]);
  }
  CHECK_MSG(n_scores > 300 && n_masks > 300 && n_blocks > 300 && n_pages > 200, "%d %d %d %d", n_scores,
            n_masks, n_blocks, n_pages);
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
    memset(bytes, 0xee, 20); /* a tape before it does not matter */
    fa_record_write(&x, bytes + 20);
    fa_record_read(bytes, fa_record_bytes() + 20, &y);
    CHECK(memcmp(&x, &y, sizeof x) == 0);
  }
}

/* Bytes cut off the front: the fields that were there become 0, the others stay. */
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

/* Every thread says when its turn came: on a real device a race, here what the schedule decides. */
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

/* In a child: it ends by abort. */
static void test_finding(void) {
  char folder[] = "/tmp/test_fuzz_XXXXXX", line[8192] = "", path[4200] = "";
  REQUIRE(mkdtemp(folder));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    static fa_result r;
    const fa_record x = {{0}};
    fa_case c;
    if (!freopen("/dev/null", "w", stderr) || fa_record_to_case(&x, FA_RECORD_WORK, &c, NULL) != FA_OK)
      _exit(1);
    fa_result_init(&r);
    r.state = FA_RACE;
    setenv("FA_ARTIFACT_DIR", folder, 1);
    fa_fuzzer_finding(&c, &r);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  DIR *dir = opendir(folder);
  REQUIRE(dir);
  for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
    if (strncmp(e->d_name, "finding-", 8) == 0) snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
  closedir(dir);
  FILE *file = fopen(path, "r");
  CHECK(file && fgets(line, sizeof line, file));
  if (file) fclose(file);
  fa_case c;
  fa_error err = {""};
  const fa_status read = fa_case_from_text(line, &c, &err);
  CHECK_MSG(read == FA_OK, "%s", err.text);
  if (read == FA_OK) fa_case_free(&c);
  unlink(path);
  rmdir(folder);
}

int main(void) {
  test_any_bytes();
  test_families();
  test_round_trip();
  test_truncation();
  test_mutations();
  test_tape();
  test_finding();
  return check_done();
}
