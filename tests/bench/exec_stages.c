/* What a case costs through exec:CMD, stage by stage; tests/bench/exec.py runs it:
 * bench_exec CASES.json ROUNDS BACKEND...
 * bench_exec CASES.json OUT.safetensors writes outputs of the first case, which a child may then replay.
 * Every backend runs all cases, in turn with the others, ROUNDS times; a stage's time is the median over rounds. Prints a
 * table as JSON: {BACKEND: {STAGE: microseconds a case, [elapsed, of this process on a
 * processor]}}. */
#include "cases/codec/file.h"
#include "cases/data/build.h"
#include "cases/tensors/safetensors.h"
#include "fuzz/judging/stage.h"
#include "fuzz/one/run_case.h"
#include "fuzz/options/choose_backend.h"
#include "fuzz/workers/memory.h"
#include "ref/math/blas.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 99 };

typedef struct subject {
  fa_choice choice;
  void *self;
  double us[FA_N_STAGES + 1][2][MAX_ROUNDS]; /* a case, elapsed and on a processor; the last: all of them */
} subject;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "bench_exec: %s: %s\n", what, why);
  exit(1);
}

static void run(const subject *s, const fa_case *c) {
  fa_error err = {""};
  fa_result *r = malloc(sizeof *r);
  if (!r) fail(c->name, "out of memory");
  fa_result_init(r);
  const fa_run_config config = {.backend = s->choice.backend, .backend_self = s->self, .n_threads = 1};
  if (fa_run_case(c, &config, r, &err) != FA_OK || r->state != FA_PASS)
    fail(c->name, err.text[0] ? err.text : r->reason[0] ? r->reason : "it did not pass");
  fa_result_free(r);
  free(r);
}

static void run_round(subject *s, const fa_case_list *list, int round) {
  fa_stage_clock clock = {{0}, {0}};
  fa_stage_clock_start(&clock);
  for (int64_t i = 0; i < list->n; ++i) run(s, &list->v[i]);
  fa_stage_clock_start(NULL);
  for (int how = 0; how < 2; ++how) {
    double *all = &s->us[FA_N_STAGES][how][round];
    *all = 0;
    for (int k = 0; k < FA_N_STAGES; ++k) {
      s->us[k][how][round] = (how ? clock.cpu[k] : clock.wall[k]) * 1e6 / (double)list->n;
      *all += s->us[k][how][round];
    }
  }
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print(subject *s, int n, int rounds) {
  cJSON *all = cJSON_CreateObject();
  for (int i = 0; i < n; ++i) {
    cJSON *one = cJSON_AddObjectToObject(all, s[i].choice.spec);
    for (int k = 0; k <= FA_N_STAGES; ++k) {
      cJSON *both = cJSON_AddArrayToObject(one, k < FA_N_STAGES ? fa_stage_name((fa_stage)k) : "all");
      for (int how = 0; how < 2; ++how) {
        qsort(s[i].us[k][how], (size_t)rounds, sizeof(double), ascending);
        cJSON_AddItemToArray(both, cJSON_CreateNumber(s[i].us[k][how][rounds / 2]));
      }
    }
  }
  char *text = cJSON_Print(all);
  if (text) puts(text);
  free(text);
  cJSON_Delete(all);
}

static void write_answers(const fa_case *c, const char *path) {
  const fa_run_options opt = {.passes = FA_PASS_FORWARD | (c->problem.backward ? FA_PASS_BACKWARD : 0),
                              .n_threads = 1};
  const char *name[FA_T_COUNT];
  const fa_tensor *output[FA_T_COUNT];
  int64_t n = 0;
  void *self = NULL;
  fa_tensors t;
  fa_outcome outcome;
  fa_error err = {""};
  if (fa_case_build(c, &t, &err) != FA_OK || fa_backend_ref_f32.open(NULL, &self, &err) != FA_OK ||
      fa_backend_ref_f32.run(self, &c->problem, &t, &opt, &outcome, &err) != FA_OK)
    fail(c->name, err.text);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (t.t[id].data && fa_tensor_id_is_output((fa_tensor_id)id))
      name[n] = fa_tensor_id_name((fa_tensor_id)id), output[n++] = &t.t[id];
  if (fa_safetensors_write(path, name, output, n, NULL, NULL, 0, &err) != FA_OK) fail(path, err.text);
  fa_backend_ref_f32.close(self);
  fa_tensors_free(&t);
}

int main(int argc, char **argv) {
  fa_blas_startup(argv);
  fa_memory_startup();
  fa_error err = {""};
  fa_case_list list = {0};
  const int n = argc - 3, rounds = argc > 3 ? atoi(argv[2]) : 1;
  if (argc < 3 || rounds < 1 || rounds > MAX_ROUNDS) fail("usage", "bench_exec CASES.json ROUNDS BACKEND...");
  if (fa_case_file_load(argv[1], NULL, &list, &err) != FA_OK) fail(argv[1], err.text);
  if (argc == 3) write_answers(&list.v[0], argv[2]);
  subject *s = calloc((size_t)n + 1, sizeof *s);
  for (int i = 0; s && i < n; ++i)
    if (fa_choose_backend(fa_backends, argv[3 + i], &s[i].choice, &err) != FA_OK ||
        fa_choice_open(&s[i].choice, &s[i].self, &err) != FA_OK)
      fail(argv[3 + i], err.text);
  for (int round = -1; s && round < rounds; ++round) /* the first only warms up: the next one overwrites it */
    for (int i = 0; i < n; ++i) run_round(&s[i], &list, round < 0 ? 0 : round);
  if (s && n > 0) print(s, n, rounds);
  for (int i = 0; s && i < n; ++i) s[i].choice.backend->close(s[i].self);
  free(s);
  fa_case_list_free(&list);
  return 0;
}
