/* Data that a machine makes: byte for byte those of the CPU, guards and gaps included. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/tensors/guard.h"
#include "fuzz/generate/draw.h"
#include "fuzz/judging/data.h"
#include "fuzz/judging/fill.h"
#include "tests/device/load.h"
#include "tests/support/fill_case.h"

#include <stdlib.h>
#include <string.h>

/* What was seen. */
typedef struct seen {
  fa_judge_machine *m;
  int64_t cases, elements;
  int64_t by_fill[FA_N_FILLS]; /* elements */
  fa_status status;
  fa_error err;
} seen;

static fa_tensor_bits fill_here(void *self, const fa_case *c, fa_tensors *set) {
  seen *to = self;
  fa_tensor_bits filled;
  to->status = fa_judge_make_data(to->m, c, 0, set, &filled, &to->err);
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const int64_t n = filled >> i & 1 ? fa_tensor_count(&set->t[i]) : 0;
    to->elements += n;
    to->by_fill[c->fill[i]] += n;
  }
  to->cases += filled != 0;
  return filled;
}

/* Position of the first byte that differs; -1: none does. */
static int64_t first_difference(const fa_buffer *a, const fa_buffer *b) {
  for (int i = 0; i < fa_buffer_n_spans(a); ++i) {
    const fa_span s = fa_buffer_span(a, i);
    const char *p = fa_buffer_payload(a), *q = fa_buffer_payload(b);
    if (memcmp(p + s.begin, q + s.begin, s.end - s.begin) == 0) continue;
    for (size_t at = s.begin; at < s.end; ++at)
      if (p[at] != q[at]) return (int64_t)at;
  }
  return -1;
}

static void compare(const fa_case *c, const char *name, seen *to) {
  const fa_filler filler = {.self = to, .fill = fill_here};
  char where[200] = "";
  fa_tensors cpu, machine;
  fa_error err = {""};
  REQUIRE(fa_case_build(c, &cpu, &err) == FA_OK);
  REQUIRE(fa_case_build_with(c, 1, &filler, &machine, &err) == FA_OK);
  CHECK_MSG(to->status == FA_OK, "%s: %s", name, to->err.text);
  for (int i = 0; i < FA_T_COUNT; ++i) {
    if (!cpu.buffer[i].base) continue;
    const int64_t at = first_difference(&cpu.buffer[i], &machine.buffer[i]);
    CHECK_MSG(at < 0, "%s: byte %lld of %s, fill %s", name, (long long)at, fa_tensor_id_name((fa_tensor_id)i),
              fa_fill_describe(c->fill[i])->name);
  }
  CHECK_MSG(fa_tensors_guards_intact(&machine, where, sizeof where), "%s: %s", name, where);
  fa_tensors_free(&cpu);
  fa_tensors_free(&machine);
}

static void compare_random(const char *profile, int64_t n, seen *to) {
  for (int64_t i = 0; i < n; ++i) {
    fa_case c;
    fa_error err = {""};
    char name[64];
    snprintf(name, sizeof name, "%s %lld", profile, (long long)i);
    REQUIRE(fa_generate(profile, 3, (uint64_t)i, &c, &err) == FA_OK);
    compare(&c, name, to);
    fa_case_free(&c);
  }
}

static bool is_of_inputs(fa_fill fill) {
  const fa_fill_info *info = fa_fill_describe(fill);
  return !info->bias_only && !info->lse_only && !info->sinks_only;
}

/* Every fill in every type, that many rows of 64 elements in each tensor; of dO alone where it is made for that. */
static void compare_fill(fa_fill fill, fa_dtype dtype, int64_t rows, seen *to) {
  const fa_fill_info *info = fa_fill_describe(fill);
  const setup s = {dtype, 3, 2, 2, rows / 6, rows / 6, 64, 64, 0};
  fa_case c = make_case(&s, info->do_only ? FA_FILL_NORMAL : fill);
  char name[64];
  c.problem.backward = true;
  c.fill[FA_T_DO] = fill;
  snprintf(name, sizeof name, "%s of %s", info->name, fa_dtype_name(dtype));
  compare(&c, name, to);
  fa_case_free(&c);
}

static void compare_fills(int64_t rows, seen *to) {
  static const fa_dtype types[] = {FA_F16, FA_BF16, FA_F32};
  for (int f = 0; f < FA_N_FILLS; ++f)
    for (int k = 0; k < 3 && is_of_inputs((fa_fill)f); ++k) compare_fill((fa_fill)f, types[k], rows, to);
}

/* ---- in use ---- */

/* A machine that changes a byte of what comes down, and fails at this download. */
typedef struct liar {
  fa_judge_machine machine;
  fa_judge_machine *honest;
  int fails, n_downloads; /* fails, from 1; 0: at none */
} liar;

static fa_status lie_reserve(void *self, size_t bytes, char **memory, fa_error *err) {
  fa_judge_machine *m = ((liar *)self)->honest;
  return m->reserve(m->self, bytes, memory, err);
}

static fa_status lie_stage(void *self, size_t bytes, char **memory, fa_error *err) {
  fa_judge_machine *m = ((liar *)self)->honest;
  return m->stage(m->self, bytes, memory, err);
}

static fa_status lie_upload(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  fa_judge_machine *m = ((liar *)self)->honest;
  return m->upload(m->self, to, from, bytes, err);
}

static fa_status lie_launch(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err) {
  fa_judge_machine *m = ((liar *)self)->honest;
  return m->launch(m->self, kernel, job, err);
}

static fa_status lie_download(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  liar *x = self;
  const fa_status status = x->honest->download(x->honest->self, to, from, bytes, err);
  ((char *)to)[bytes / 3] ^= 1;
  return ++x->n_downloads == x->fails ? fa_fail(err, FA_ERR_DEVICE, "it fell over") : status;
}

static fa_status make(const fa_case *c, fa_judge_machine *m, fa_made_by by, fa_error *err) {
  const fa_data_config config = {.machine = m, .audit = true, .n_threads = 1};
  fa_tensors cpu, made;
  fa_made_by who;
  const fa_status status = fa_make_data(c, &config, &made, &who, err);
  CHECK(who == by);
  if (status != FA_OK) return status;
  REQUIRE(fa_case_build(c, &cpu, err) == FA_OK);
  for (int i = 0; i < FA_T_COUNT; ++i)
    CHECK(!cpu.buffer[i].base || first_difference(&cpu.buffer[i], &made.buffer[i]) < 0);
  fa_tensors_free(&cpu);
  fa_tensors_free(&made);
  return FA_OK;
}

static liar liar_beside(fa_judge_machine *m, int fails) {
  const fa_judge_machine lying = {.most_bytes = m->most_bytes,
                                  .reserve = lie_reserve,
                                  .stage = lie_stage,
                                  .upload = lie_upload,
                                  .download = lie_download,
                                  .launch = lie_launch};
  return (liar){.machine = lying, .honest = m, .fails = fails};
}

/* What came down before a machine failed is no more there: Q has so many gaps that it comes in two pieces, the first with a gap changed. */
static void test_fails_late(fa_judge_machine *m) {
  liar late = liar_beside(m, 2);
  fa_case c;
  fa_tensors cpu, made;
  fa_error err = {""};
  late.machine.self = &late;
  seen to = {.m = &late.machine};
  const fa_filler filler = {.self = &to, .fill = fill_here};
  REQUIRE(fa_case_from_text(
              "{\"seqlen_q\":2048,\"seqlen_k\":8,\"head_dim\":64,\"strides\":{\"q\":{\"gap\":[0,0,33000]}}}",
              &c, &err) == FA_OK);
  REQUIRE(fa_case_build(&c, &cpu, &err) == FA_OK);
  REQUIRE(fa_case_build_with(&c, 1, &filler, &made, &err) == FA_OK);
  CHECK(to.status == FA_ERR_DEVICE && late.n_downloads == 2);
  CHECK(first_difference(&cpu.buffer[FA_T_Q], &made.buffer[FA_T_Q]) < 0);
  fa_tensors_free(&cpu);
  fa_tensors_free(&made);
  fa_case_free(&c);
}

/* What comes of a machine with so much memory. */
static fa_status with_room(fa_judge_machine *m, size_t most_bytes, fa_error *err) {
  const setup small = {FA_BF16, 1, 2, 2, 64, 64, 64, 64, 0};
  fa_case c = make_case(&small, FA_FILL_NORMAL);
  liar little = liar_beside(m, 0);
  fa_tensors made;
  little.machine.self = &little;
  little.machine.most_bytes = most_bytes;
  seen to = {.m = &little.machine};
  const fa_filler filler = {.self = &to, .fill = fill_here};
  REQUIRE(fa_case_build_with(&c, 1, &filler, &made, err) == FA_OK);
  *err = to.err;
  fa_tensors_free(&made);
  fa_case_free(&c);
  return to.status;
}

/* Data may take half of a machine's memory. */
static void test_room(fa_judge_machine *m) {
  fa_error err = {""};
  size_t bytes = 0;
  CHECK(with_room(m, 1, &err) == FA_ERR_MEMORY);
  CHECK_MSG(sscanf(err.text, "no room for %zu bytes of data", &bytes) == 1, "%s", err.text);
  CHECK(with_room(m, 2 * bytes, &err) == FA_OK);
  CHECK(with_room(m, 2 * bytes - 1, &err) == FA_ERR_MEMORY);
}

static void test_use(fa_judge_machine *m) {
  const setup large = {FA_BF16, 1, 2, 2, 256, 256, 64, 64, 0}, small = {FA_BF16, 1, 2, 2, 64, 64, 64, 64, 0};
  liar wrong = liar_beside(m, 0), broken = liar_beside(m, 1);
  fa_error err = {""};
  fa_case c = make_case(&large, FA_FILL_NORMAL);
  wrong.machine.self = &wrong;
  broken.machine.self = &broken;
  CHECK(make(&c, m, FA_MADE_BY_GPU, &err) == FA_OK);
  CHECK(make(&c, NULL, FA_MADE_BY_CPU, &err) == FA_OK);
  CHECK(make(&c, &broken.machine, FA_MADE_AFTER_GPU, &err) == FA_OK);
  CHECK(make(&c, &wrong.machine, FA_MADE_BY_GPU, &err) == FA_ERR_DEVICE);
  CHECK_MSG(strstr(err.text, "other data than the CPU"), "%s", err.text);
  fa_case_free(&c);
  c = make_case(&small, FA_FILL_NORMAL);
  CHECK(make(&c, &wrong.machine, FA_MADE_BY_CPU, &err) == FA_OK);
  fa_case_free(&c);
}

/* Every fill of an input is made by the machine in some tensor, but for that of 8 bits. */
static void check_all_seen(const seen *to) {
  for (int f = 0; f < FA_N_FILLS; ++f)
    CHECK_MSG(!is_of_inputs((fa_fill)f) || fa_fill_describe((fa_fill)f)->reads_v || to->by_fill[f] > 0,
              "no element of %s", fa_fill_describe((fa_fill)f)->name);
}

/* One call's data in 1,000 is made by the CPU too. */
static void test_audited(void) {
  int n = 0;
  for (int i = 0; i < 100000; ++i) n += fa_is_audited();
  CHECK_MSG(n > 40 && n < 200, "%d of 100,000", n);
}

/*   test_device_fill [KERNELS.so]    with the kernels of that library: a copy with a planted fault, which is to be seen */
int main(int argc, char **argv) {
  fa_judge_machine *m = fa_judge_machine_host_new(load_kernels(argc > 1 ? argv[1] : NULL), 0);
  REQUIRE(m);
  seen to = {.m = m};
  compare_fills(600, &to);
  compare_random("fills", 60, &to);
  compare_random("layout", 60, &to);
  compare_random("varlen", 60, &to);
  compare_random("everything", 150, &to);
  compare_random("adversarial", 150, &to);
  check_all_seen(&to);
  test_use(m);
  test_fails_late(m);
  test_room(m);
  test_audited();
  printf("%lld cases, %.1f million elements\n", (long long)to.cases, 1e-6 * (double)to.elements);
  fa_judge_machine_host_free(m);
  return check_done();
}
