/* What the C API can ask of the memeff kernels and no case file does: sums of dbias against a dense one, a
 * precomputed delta, a number of key splits, and the same bits whatever the order of work. On the host
 * executor. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "cases/tensors/guard.h"
#include "gpu/args/problem.h"
#include "gpu/backend.h"
#include "gpu/plan/make.h"
#include "gpu/simt/launch.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, HEADS = 3, ROWS = 140, KEYS = 70, PAIRS = BATCH * HEADS * ROWS * KEYS };

typedef struct call {
  fa_case c;
  fa_tensors t;
  fa_attention a;
  fa_gradients g;
} call;

/* Makes a call with a finished forward pass. */
static void call_make(call *x) {
  static const char json[] = "{\"family\": \"memeff\", \"dtype\": \"f32\", \"batch\": 2, \"heads_q\": 3, "
                             "\"seqlen_q\": 140, \"seqlen_k\": 70, \"head_dim\": 8, \"grad_lse\": true, "
                             "\"mask\": {\"type\": \"causal\"}, "
                             "\"bias\": {\"shape\": [\"b\", \"h\", \"q\", \"k\"], \"grad\": true}}";
  fa_error err = {""};
  fa_outcome out;
  const fa_run_options opt = {.passes = FA_PASS_FORWARD, .n_threads = 1};
  REQUIRE(fa_case_from_text(json, &x->c, &err) == FA_OK);
  REQUIRE(fa_case_build(&x->c, &x->t, &err) == FA_OK);
  REQUIRE(fa_backend_host.run(NULL, &x->c.problem, &x->t, &opt, &out, &err) == FA_OK && !out.text[0]);
  REQUIRE(!fa_args_tensors(&x->c.problem, &x->t, &x->a) && !fa_args_gradients(&x->c.problem, &x->t, &x->g));
}

static void call_free(call *x) {
  fa_tensors_free(&x->t);
  fa_case_free(&x->c);
}

/* Runs the launches of the pass; extra: memory besides the tensors that they may use. */
static void run_backward(const call *x, void *extra, size_t extra_bytes, uint64_t seed) {
  static char workspace[1 << 16] __attribute__((aligned(256)));
  fa_plan plan;
  fa_error err = {""};
  const fa_call planned = {
      .kind = FA_CALL_BACKWARD, .a = &x->a, .g = &x->g, .n_processors = 132, .workspace = workspace};
  CHECK_MSG(fa_plan_make(&planned, NULL, &plan, &err) == FA_OK, "%s", err.text);
  REQUIRE(plan.workspace_bytes <= sizeof workspace);
  fa_simt_range ranges[FA_T_COUNT + 2];
  int n = 0;
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (x->t.buffer[i].base)
      ranges[n++] = (fa_simt_range){.name = fa_tensor_id_name((fa_tensor_id)i),
                                    .begin = fa_buffer_payload(&x->t.buffer[i]),
                                    .bytes = x->t.buffer[i].bytes,
                                    .writable = true};
  ranges[n++] =
      (fa_simt_range){.name = "workspace", .begin = workspace, .bytes = sizeof workspace, .writable = true};
  if (extra)
    ranges[n++] = (fa_simt_range){.name = "extra", .begin = extra, .bytes = extra_bytes, .writable = true};
  for (int i = 0; i < plan.n_launches; ++i) {
    const fa_launch *l = &plan.launch[i];
    const fa_simt_launch launch = {.kernel = l->kernel.entry,
                                   .params = l->params,
                                   .name = l->kernel.name,
                                   .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                   .block = {l->n_threads, 1, 1},
                                   .shared_bytes = l->shared_bytes,
                                   .ranges = ranges,
                                   .n_ranges = n,
                                   .schedule_seed = seed,
                                   .n_threads = 1};
    fa_simt_report report;
    CHECK_MSG(fa_simt_run(&launch, &report, &err) == FA_OK && report.state == FA_SUBJECT_OK, "%s: %s",
              l->kernel.name, report.text);
  }
}

static float dense[PAIRS], summed[PAIRS], again[PAIRS];

/* Every way of summing, against the dense gradient added up here: every element is written, another schedule
 * gives the same bits, and nothing is written past the end. */
static void test_sums(void) {
  call x;
  call_make(&x);
  x.g.dbias = dense;
  x.g.dbias_stride = (fa_strides){HEADS * ROWS * KEYS, KEYS, ROWS * KEYS};
  run_backward(&x, dense, sizeof dense, 0);
  for (int sums = 1; sums < 8; ++sums) {
    const int nb = sums & 1 ? 1 : BATCH, nh = sums & 2 ? 1 : HEADS, nr = sums & 4 ? 1 : ROWS;
    const size_t bytes = (size_t)(nb * nh * nr * KEYS) * sizeof(float);
    double want[PAIRS / 2] = {0}, size[PAIRS / 2] = {0};
    x.g.dbias = summed;
    x.g.dbias_stride = (fa_strides){nb > 1 ? nh * nr * KEYS : 0, nr > 1 ? KEYS : 0, nh > 1 ? nr * KEYS : 0};
    memset(summed, 0xff, sizeof summed);
    run_backward(&x, summed, bytes, 0);
    for (int i = 0; i < PAIRS; ++i) {
      const int b = i / (HEADS * ROWS * KEYS), h = i / (ROWS * KEYS) % HEADS, r = i / KEYS % ROWS;
      const int to =
          ((nb > 1 ? b : 0) * nh + (nh > 1 ? h : 0)) * nr * KEYS + (nr > 1 ? r : 0) * KEYS + i % KEYS;
      want[to] += dense[i];
      size[to] += fabs((double)dense[i]);
    }
    int bad = 0;
    for (int i = 0; i < nb * nh * nr * KEYS; ++i) bad += !(fabs(summed[i] - want[i]) <= 1e-5 * size[i]);
    CHECK_MSG(bad == 0, "sums %d: %d elements", sums, bad);
    CHECK(isnan(summed[bytes / sizeof(float)])); /* bytes of 0xff: unchanged */
    x.g.dbias = again;
    run_backward(&x, again, bytes, 77);
    CHECK(memcmp(again, summed, bytes) == 0);
  }
  call_free(&x);
}

static double dot(const fa_tensor *a, const fa_tensor *b, int64_t batch, int64_t row, int64_t head) {
  double sum = 0;
  for (int64_t d = 0; d < 8; ++d) {
    const int64_t at[4] = {batch, row, head, d};
    sum += fa_tensor_get(a, at) * fa_tensor_get(b, at);
  }
  return sum;
}

/* With a given delta, neither O nor dLSE is read, and the gradients are the same except for delta's last bit;
 * a number of splits changes nothing. */
static void test_given_delta(void) {
  static float delta[BATCH * HEADS * ROWS], dq[BATCH * HEADS * ROWS * 8];
  call x;
  call_make(&x);
  const fa_tensor *t = x.t.t;
  x.g.dq_stride = fa_strides_dense(ROWS, HEADS, 8);
  x.g.dq = dq;
  run_backward(&x, dq, sizeof dq, 0);
  for (int64_t i = 0; i < BATCH * HEADS * ROWS; ++i) {
    const int64_t b = i / (HEADS * ROWS), h = i / ROWS % HEADS, r = i % ROWS, at[3] = {b, h, r};
    delta[i] = (float)(dot(&t[FA_T_DO], &t[FA_T_O], b, r, h) - fa_tensor_get(&t[FA_T_DLSE], at));
  }
  memset(x.a.o, 0xff, (size_t)(BATCH * HEADS * ROWS * 8) * sizeof(float));
  x.g.d_lse = NULL;
  x.g.delta_stride = (fa_strides){HEADS * ROWS, 1, ROWS};
  x.g.num_splits_key = 7;
  struct {
    float delta[BATCH * HEADS * ROWS], dq[BATCH * HEADS * ROWS * 8];
  } *memory = calloc(1, sizeof *memory);
  REQUIRE(memory);
  memcpy(memory->delta, delta, sizeof delta);
  x.g.delta = memory->delta;
  x.g.dq = memory->dq;
  run_backward(&x, memory, sizeof *memory, 0);
  CHECK(memcmp(memory->delta, delta, sizeof delta) == 0);
  int bad = 0, zeros = 0;
  for (size_t i = 0; i < sizeof dq / sizeof(float); ++i) {
    bad += !(fabsf(memory->dq[i] - dq[i]) <= 1e-5f);
    zeros += dq[i] == 0;
  }
  CHECK_MSG(bad == 0 && zeros < BATCH * HEADS * ROWS * 8, "%d elements of dq", bad);
  free(memory);
  call_free(&x);
}

/* One pass if the device, the head dims and the call allow it. */
static void test_passes(void) {
  static const struct {
    size_t shared_kib;
    int64_t head_dim_v;
    bool deterministic, single;
  } calls[] = {{227, 8, false, true},
               {227, 128, false, true},
               {227, 129, false, false},
               {227, 8, true, false},
               {163, 8, false, false}};
  call x;
  call_make(&x);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    const fa_kernel_device device = {.max_shared_bytes = calls[i].shared_kib << 10};
    fa_plan plan;
    fa_error err = {""};
    x.a.deterministic = calls[i].deterministic;
    x.a.head_dim_v = calls[i].head_dim_v;
    x.a.o_stride = x.a.v_stride = x.g.do_stride = x.g.dv_stride =
        fa_strides_dense(ROWS, HEADS, calls[i].head_dim_v); /* never dereferenced */
    const fa_call planned = {.kind = FA_CALL_BACKWARD, .a = &x.a, .g = &x.g, .n_processors = 132};
    REQUIRE(fa_plan_make(&planned, &device, &plan, &err) == FA_OK);
    CHECK_MSG(plan.n_launches == (calls[i].single ? 2 : 3) &&
                  !strstr(plan.launch[1].kernel.name, "single") == !calls[i].single,
              "call %zu: %d launches, %s", i, plan.n_launches, plan.launch[1].kernel.name);
    CHECK(plan.adds_dq == calls[i].single);
  }
  call_free(&x);
}

int main(void) {
  test_sums();
  test_passes();
  test_given_delta();
  return check_done();
}
