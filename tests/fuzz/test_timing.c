/* The parts of `bench --backend exec:` that need no child: order statistics, seeds, pools, sums, judging in parts, standing still. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "fuzz/machine/chip.h"
#include "fuzz/machine/freeze.h"
#include "fuzz/timing/check.h"
#include "fuzz/timing/defences.h"
#include "fuzz/timing/link.h"
#include "fuzz/timing/order.h"
#include "fuzz/timing/pool.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- numbers ---- */

/* Ranks of the 95 % interval of a median, from tables of the binomial distribution. */
static void test_median(void) {
  static const struct {
    int n, rank;
  } known[] = {{5, 0}, {6, 0}, {9, 1}, {15, 3}, {20, 5}, {30, 9}, {50, 17}};
  for (size_t k = 0; k < sizeof known / sizeof *known; ++k) {
    double sample[50];
    const int n = known[k].n;
    for (int i = 0; i < n; ++i) sample[i] = (double)((i * 7 + 3) % n); /* 0 .. n - 1, unless 7 divides n */
    const fa_median m = fa_median_of(sample, n);
    CHECK_MSG(m.low == known[k].rank && m.high == n - 1 - known[k].rank, "n %d: %g .. %g", n, m.low, m.high);
    CHECK_MSG(m.median == 0.5 * (n - 1), "n %d: %g", n, m.median);
  }
}

static void test_floor(void) {
  const fa_chip *h100 = fa_chip_find("NVIDIA H100 80GB HBM3"), *pcie = fa_chip_find("NVIDIA H100 PCIe");
  REQUIRE(h100 && pcie && h100 != pcie);
  CHECK(!fa_chip_find("Radeon"));
  CHECK(fa_chip_floor(h100, FA_BF16, 989.5e12, 1) == 1);
  CHECK(fa_chip_floor(h100, FA_F32, 1, 3350e9) == 1);
}

static void test_defences(void) {
  fa_defence_set set = FA_ALL_DEFENCES;
  CHECK(fa_defence_leave_out(&set, "claim") && !fa_defence_in(set, FA_DEFENCE_CLAIM));
  CHECK(!fa_defence_leave_out(&set, "walls"));
  for (int d = 0; d < FA_N_DEFENCES; ++d) CHECK(fa_defence_in(set, (fa_defence)d) == (d != FA_DEFENCE_CLAIM));
}

/* ---- seeds ---- */

static void test_link(void) {
  fa_link a, same;
  fa_error err = {""};
  const uint64_t words[2] = {1, 2};
  REQUIRE(fa_link_start(&a, false, &err) == FA_OK && fa_link_start(&same, true, &err) == FA_OK);
  const uint64_t first = fa_link_seed(&a);
  char before[65];
  memcpy(before, a.last, sizeof before);
  CHECK(first != fa_link_seed(&a));
  fa_link_take_words(&a, words, 2);
  CHECK(memcmp(before, a.last, sizeof before) != 0); /* the answer is mixed in */
  CHECK(fa_link_seed(&same) == fa_link_seed(&same));
}

/* ---- calls ---- */

typedef struct call {
  fa_case c;
  fa_tensors in, got;
} call;

static void call_make(call *x, const char *json, uint64_t seed) {
  fa_error err = {""};
  REQUIRE(fa_case_from_text(json, &x->c, &err) == FA_OK);
  x->c.data_seed = seed;
  REQUIRE(fa_case_build(&x->c, &x->in, &err) == FA_OK);
  REQUIRE(fa_tensors_clone_poisoned(&x->got, &x->in, FA_POISON_A, &err) == FA_OK);
}

static void call_free(call *x) {
  fa_tensors_free(&x->in);
  fa_tensors_free(&x->got);
  fa_case_free(&x->c);
}

/* The reference's own outputs. */
static void call_answer(call *x) {
  const fa_ref_options options = {.n_threads = 2};
  fa_wants wants = {0};
  fa_error err = {""};
  static const fa_tensor_id written[] = {FA_T_O, FA_T_LSE};
  REQUIRE(fa_ref_forward(&x->c.problem, &x->in, &options, &wants, &err) == FA_OK);
  for (int i = 0; i < 2; ++i) {
    int64_t index[FA_MAX_RANK];
    const fa_tensor *t = &x->got.t[written[i]];
    for (int64_t e = 0; e < wants.t[written[i]].n; ++e) {
      fa_tensor_unravel(t, e, index);
      fa_tensor_set(t, index, wants.t[written[i]].value[e]);
    }
  }
  fa_wants_free(&wants);
}

static bool is_right(const call *x) {
  fa_declaration said = {.arithmetic_given = true};
  fa_error err = {""};
  char why[300];
  fa_contract_init(&said.contract);
  const fa_profile profile = fa_profile_get("simt-f32", FA_F32);
  const fa_check check = {.c = &x->c,
                          .scale = x->c.problem.scale,
                          .said = &said,
                          .profile = &profile,
                          .passes = FA_PASS_FORWARD,
                          .n_threads = 2};
  REQUIRE(fa_check_output(&check, &x->in, &x->got, why, sizeof why, &err) == FA_OK);
  return !why[0];
}

/* Every row of the last axis, but for the first element, becomes half as large again. */
static void spoil(const fa_tensor *o) {
  int64_t index[FA_MAX_RANK];
  for (int64_t e = 0; e < fa_tensor_count(o); ++e) {
    fa_tensor_unravel(o, e, index);
    if (index[o->rank - 1] > 0) fa_tensor_set(o, index, 1.5 * fa_tensor_get(o, index));
  }
}

/* Right answers are right and wrong ones wrong, also of calls so large that only parts are looked at. */
static void test_check(void) {
  static const char *const cases[] = {
      "{\"dtype\":\"f32\",\"seqlen_q\":70,\"heads_q\":4,\"heads_kv\":2,\"head_dim\":16,\"mask\":{\"type\":"
      "\"causal\"},\"backward\":false}",
      "{\"dtype\":\"f32\",\"batch\":2,\"seqlen_q\":6000,\"seqlen_k\":7000,\"heads_q\":8,\"heads_kv\":4,"
      "\"head_dim\":8,"
      "\"mask\":{\"type\":\"window\",\"left\":40,\"right\":0},\"backward\":false}",
      "{\"dtype\":\"f32\",\"batch\":2,\"seqlen_q\":6000,\"heads_q\":12,\"head_dim\":8,"
      "\"mask\":{\"type\":\"window\",\"left\":40,\"right\":3},\"backward\":false}"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    call x;
    call_make(&x, cases[i], 7);
    CHECK_MSG(!is_right(&x), "%s: nothing written", cases[i]);
    call_answer(&x);
    CHECK_MSG(is_right(&x), "%s", cases[i]);
    spoil(&x.got.t[FA_T_O]);
    CHECK_MSG(!is_right(&x), "%s: spoilt", cases[i]);
    call_free(&x);
  }
}

static void test_sum(void) {
  static const char *const cases[] = {"{\"dtype\":\"f32\",\"seqlen_q\":2,\"head_dim\":3,\"backward\":false}",
                                      "{\"dtype\":\"f16\",\"seqlen_q\":2,\"head_dim\":3,\"layout\":\"bhsd\","
                                      "\"heads_q\":2,\"backward\":false}"};
  /* of f32: -1.0 has the word bf800000; of f16 two -1.0 have bc00bc00, one -4400 */
  static const int64_t of_row[] = {3 * (int64_t)(int32_t)0xbf800000u,
                                   (int64_t)(int32_t)0xbc00bc00u + (int16_t)0xbc00u};
  static const int rows[] = {2, 4};
  for (int i = 0; i < 2; ++i) {
    call x;
    int64_t index[FA_MAX_RANK];
    call_make(&x, cases[i], 1);
    const fa_tensor *o = &x.got.t[FA_T_O];
    for (int64_t e = 0; e < fa_tensor_count(o); ++e) {
      fa_tensor_unravel(o, e, index);
      fa_tensor_set(o, index, -1);
    }
    const uint64_t sum = fa_time_sum(&x.got, FA_PASS_FORWARD);
    CHECK_MSG(sum == (uint64_t)(rows[i] * of_row[i]), "%s: %llx", cases[i], (unsigned long long)sum);
    call_free(&x);
  }
}

/* ---- pools ---- */

/* No problem twice until its places have new data; every place is used about as often as any other. */
static void test_pool(void) {
  enum { PLACES = 5, DRAWN = 60 };
  fa_pool pool = {.n = PLACES};
  call x[PLACES];
  fa_time_problem drawn[DRAWN];
  fa_error err = {""};
  int used[PLACES] = {0}, twice = 0;
  for (int i = 0; i < PLACES; ++i) {
    call_make(&x[i], "{\"seqlen_q\":3,\"backward\":false}", (uint64_t)i + 1);
    pool.place[i] = x[i].in;
  }
  for (int i = 0; i < DRAWN; ++i) {
    REQUIRE(fa_pool_draw(&pool, 0.5, false, &drawn[i], &err) == FA_OK);
    CHECK(drawn[i].scale == 0.5 || drawn[i].scale == 0.46875);
    ++used[drawn[i].place[FA_T_K]];
    for (int k = 0; k < i; ++k) twice += memcmp(&drawn[i], &drawn[k], sizeof *drawn) == 0;
  }
  CHECK_MSG(twice == 0, "%d times", twice);
  for (int i = 0; i < PLACES; ++i)
    CHECK_MSG(used[i] > DRAWN / PLACES / 2 && used[i] < DRAWN / PLACES * 2, "place %d: %d", i, used[i]);
  fa_tensors inputs;
  fa_pool_inputs(&pool, &drawn[3], &inputs);
  CHECK(inputs.t[FA_T_V].data == x[drawn[3].place[FA_T_V]].in.t[FA_T_V].data);
  for (int i = 0; i < PLACES; ++i) call_free(&x[i]), memset(&pool.place[i], 0, sizeof pool.place[i]);
  fa_pool_free(&pool);
  CHECK(fa_pool_places(150e6, 200e6) == 4 && fa_pool_places(150e6, 10e6) == 16 &&
        fa_pool_places(1e9, 1) == FA_MOST_PLACES);
}

/* ---- processes ---- */

static char state_of(pid_t pid) {
  char path[64], state = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "r");
  if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 0;
  if (file) fclose(file);
  return state;
}

static bool gets_into(pid_t pid, bool stopped) {
  for (int i = 0; i < 2000; ++i, usleep(1000))
    if ((state_of(pid) == 'T') == stopped) return true;
  return false;
}

static void sleep_on(void) {
  for (;;) pause();
}

/* A child and its child stand still and go on; this process, their parent, does not. */
static void test_freeze(void) {
  int ends[2];
  pid_t grandchild = 0;
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t own = fork();
    if (own == 0) sleep_on();
    if (write(ends[1], &own, sizeof own) < 0) _exit(1);
    sleep_on();
  }
  REQUIRE(read(ends[0], &grandchild, sizeof grandchild) == sizeof grandchild);
  CHECK(fa_freeze_children(getpid(), true) == 2);
  CHECK(gets_into(child, true) && gets_into(grandchild, true));
  CHECK(fa_freeze_children(getpid(), false) == 2);
  CHECK(gets_into(child, false) && gets_into(grandchild, false));
  kill(grandchild, SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

int main(void) {
  test_median();
  test_floor();
  test_defences();
  test_link();
  test_check();
  test_sum();
  test_pool();
  test_freeze();
  return check_done();
}
