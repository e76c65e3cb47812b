/* The cases of every_kernel.json come to every kernel of the judge on a device, which compute-sanitizer then sees
 * (tests/sanitizer/judge.sh), products in both forms. */
#include "cases/codec/file.h"
#include "fuzz/generate/draw.h"
#include "fuzz/judging/data.h"
#include "gpu/backend.h"
#include "tests/device/subject.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define FA_JUDGE_KERNEL(name, kind) #name,
#include "ref/cuda/kernels.def"
#undef FA_JUDGE_KERNEL
};

/* The machine of this processor, which writes down what it launches. */
typedef struct watched {
  fa_judge_machine machine, *of;
  bool launched[FA_JUDGE_N_KERNELS];
} watched;

static fa_status watched_reserve(void *self, size_t bytes, char **memory, fa_error *err) {
  const watched *w = self;
  return w->of->reserve(w->of->self, bytes, memory, err);
}
static fa_status watched_stage(void *self, size_t bytes, char **memory, fa_error *err) {
  const watched *w = self;
  return w->of->stage(w->of->self, bytes, memory, err);
}
static fa_status watched_upload(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  const watched *w = self;
  return w->of->upload(w->of->self, to, from, bytes, err);
}
static fa_status watched_download(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  const watched *w = self;
  return w->of->download(w->of->self, to, from, bytes, err);
}
static fa_status watched_clear(void *self, void *at, size_t bytes, fa_error *err) {
  const watched *w = self;
  return w->of->clear(w->of->self, at, bytes, err);
}
static fa_status watched_launch(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err) {
  watched *w = self;
  if (job->n > 0) w->launched[kernel] = true;
  return w->of->launch(w->of->self, kernel, job, err);
}

static void watch(fa_judge_machine *of, watched *w) {
  *w = (watched){.machine = {.self = w,
                             .most_bytes = of->most_bytes,
                             .reserve = watched_reserve,
                             .stage = watched_stage,
                             .upload = watched_upload,
                             .download = watched_download,
                             .clear = watched_clear,
                             .launch = watched_launch},
                 .of = of};
}

/* Roundings of any kernel that is recorded, some of which cost kernels of their own, or of ours for queries of 8 bits. */
static void claim(const fa_problem *p, fa_profile *out) {
  if (p->quantized.queries)
    fa_backend_host.profile(NULL, p, out);
  else
    *out = fa_profile_get(p->dtype == FA_F32 ? "3xtf32" : "recorded", p->dtype);
}

/* Its data and its verdict, by both, as if the kernel had such roundings. */
static void judge_by(watched *w, fa_case *c) {
  const fa_data_config data = {.machine = &w->machine, .audit = true, .n_threads = 1};
  w->machine.wide_from = strcmp(c->name, "wide_tiles") == 0; /* else as many pairs as pay on a device */
  subject s = {.c = *c};
  fa_result *r = malloc(sizeof *r);
  fa_made_by made;
  fa_error err = {""};
  REQUIRE(r);
  CHECK_MSG(fa_make_data(c, &data, &s.in, &made, &err) == FA_OK, "%s: %s", c->name, err.text);
  run_made(&s);
  claim(&c->problem, &s.profile);
  CHECK_MSG(judge_subject(&s, &w->machine, true, r, &err) == FA_OK, "%s: %s", c->name, err.text);
  CHECK_MSG(r->state != FA_FAIL, "%s: %s", c->name, r->reason);
  fa_result_free(r);
  free(r);
  fa_tensors_free(&s.got);
  fa_tensors_free(&s.in);
}

static void add(const watched *one, bool *all, const char *name, bool tells) {
  if (tells) printf("%s:", name);
  for (int k = 0; k < FA_JUDGE_N_KERNELS; ++k) {
    if (tells && one->launched[k]) printf(" %s", names[k]);
    all[k] |= one->launched[k];
  }
  if (tells) puts("");
}

/* test_every_kernel [FILE.json]    with a file: tells what its cases come to */
int main(int argc, char **argv) {
  fa_judge_machine *m = fa_judge_machine_host_new(NULL, 0);
  fa_case_list cases = {0};
  bool all[FA_JUDGE_N_KERNELS] = {false};
  fa_error err = {""};
  REQUIRE(m);
  REQUIRE(fa_case_file_load(argc > 1 ? argv[1] : "tests/device/every_kernel.json", fa_generate, &cases,
                            &err) == FA_OK);
  for (int64_t i = 0; i < cases.n; ++i) {
    watched one;
    watch(m, &one);
    judge_by(&one, &cases.v[i]);
    add(&one, all, cases.v[i].name, argc > 1);
  }
  for (int k = 0; k < FA_JUDGE_N_KERNELS; ++k) CHECK_MSG(all[k], "%s is not launched", names[k]);
  fa_case_list_free(&cases);
  fa_judge_machine_host_free(m);
  return check_done();
}
