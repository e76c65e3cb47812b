#include "fuzz/bench/gpu.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"

#include "cases/base/atomic_file.h"
#include "cases/recipe/case.h"
#include "fuzz/bench/work.h"
#include "fuzz/options/cases_select.h"
#include "fuzz/options/choose_backend.h"
#include "fuzz/options/filter.h"
#include "fuzz/options/version.h"
#include "gpu/cuda_backend/bench.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

enum { WARM_RUNS = 10, TIMED_RUNS = 50 };

/* ---- one case ---- */

static void print_row(const char *name, bool backward, const fa_bench_result *r, double tflops, double gbs) {
  printf("%-40s %s %10.1f us  (%.1f .. %.1f of %d)  %7.1f TFLOP/s  %7.0f GB/s\n", name,
         backward ? "bwd" : "fwd", r->median_us, r->min_us, r->max_us, r->n_runs, tflops, gbs);
  fflush(stdout);
}

static void add_row(cJSON *rows, const fa_case *c, bool backward, const fa_bench_options *opt,
                    const fa_bench_result *r, double tflops, double gbs) {
  cJSON *o = cJSON_CreateObject();
  char *line = fa_case_to_line(c);
  cJSON_AddStringToObject(o, "name", c->name);
  if (line) cJSON_AddItemToObject(o, "case", cJSON_Parse(line));
  free(line);
  cJSON_AddStringToObject(o, "pass", backward ? "backward" : "forward");
  cJSON_AddStringToObject(o, "kernel", r->kernel);
  cJSON_AddBoolToObject(o, "cold", opt->cold);
  cJSON_AddNumberToObject(o, "runs", r->n_runs);
  cJSON_AddNumberToObject(o, "median_us", r->median_us);
  cJSON_AddNumberToObject(o, "min_us", r->min_us);
  cJSON_AddNumberToObject(o, "max_us", r->max_us);
  cJSON_AddNumberToObject(o, "tflops", tflops);
  cJSON_AddNumberToObject(o, "gb_per_s", gbs);
  cJSON_AddItemToArray(rows, o);
}

/* FA_ERR_UNSUPPORTED: skipped, with a line that says why. */
static fa_status bench_case(const fa_case *c, const fa_bench_options *base, cJSON *rows,
                            fa_bench_result *last, int *n_timed, fa_error *err) {
  fa_tensors t;
  fa_status status = fa_case_build(c, &t, err);
  for (int backward = 0; status == FA_OK && backward <= c->problem.backward; ++backward) {
    fa_bench_options opt = *base;
    fa_bench_result r;
    opt.backward = backward;
    status = fa_cuda_bench(&c->problem, &t, &opt, &r, err);
    if (status == FA_ERR_UNSUPPORTED) {
      printf("%-40s %s left out: %s\n", c->name, backward ? "bwd" : "fwd", err->text);
      status = FA_OK;
      continue;
    }
    if (status != FA_OK) break;
    const double tflops = fa_bench_flops(&c->problem, &t, backward) / r.median_us * 1e-6;
    const double gbs = fa_bench_bytes(&c->problem, &t, backward) / r.median_us * 1e-3;
    print_row(c->name, backward, &r, tflops, gbs);
    add_row(rows, c, backward, &opt, &r, tflops, gbs);
    *last = r;
    ++*n_timed;
  }
  fa_tensors_free(&t);
  return status;
}

/* ---- all of them ---- */

static fa_status write_report(const char *path, const cJSON *rows, const fa_bench_result *last,
                              fa_error *err) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "fa_bench", 1);
  cJSON *tool = cJSON_AddObjectToObject(o, "tool");
  cJSON_AddStringToObject(tool, "version", fa_version());
  cJSON_AddStringToObject(tool, "git", fa_git_revision());
  cJSON *backend = cJSON_AddObjectToObject(o, "backend");
  cJSON_AddStringToObject(backend, "name", "cuda");
  cJSON_AddStringToObject(backend, "device", last->device);
  cJSON_AddStringToObject(backend, "driver", last->driver);
  cJSON_AddItemToObject(o, "rows", cJSON_Duplicate(rows, true));
  char *text = cJSON_Print(o);
  cJSON_Delete(o);
  const fa_status status = text ? fa_file_write_atomic(path, text, strlen(text), err)
                                : fa_fail(err, FA_ERR_MEMORY, "out of memory");
  free(text);
  return status;
}

int fa_bench_gpu(const fa_cli *cli, const char *backend) {
  fa_error err = {""};
  fa_case_list list = {0};
  fa_choice choice;
  fa_bench_result last = {.device = ""};
  int n_timed = 0;
  fa_filter filter = {.text = NULL};
  cJSON *rows = cJSON_CreateArray();
  fa_status status = fa_cli_load_cases(cli, &list, NULL, &err);
  if (status == FA_OK) status = fa_filter_compile(cli, &filter, &err);
  if (status == FA_OK && cli->report) status = fa_file_check_writable(cli->report, &err);
  if (status == FA_OK) status = fa_choose_backend(cli->backends, backend, &choice, &err);
  if (status == FA_OK)
    printf("%s, driver %s%s\n", choice.info.device, choice.info.driver, cli->cold ? ", cold" : "");
  const char *number = strchr(backend, ':');
  const fa_bench_options opt = {
      .device = number ? atoi(number + 1) : 0, .n_warm = WARM_RUNS, .n_runs = TIMED_RUNS, .cold = cli->cold};
  for (int64_t i = 0; status == FA_OK && i < list.n; ++i)
    if (fa_filter_passes(&filter, list.v[i].name))
      status = bench_case(&list.v[i], &opt, rows, &last, &n_timed, &err);
  if (status == FA_OK) fa_filter_report(&filter, list.n, 1);
  if (status == FA_OK && cli->report) status = write_report(cli->report, rows, &last, &err);
  cJSON_Delete(rows);
  fa_case_list_free(&list);
  fa_filter_free(&filter);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  return n_timed ? FA_EXIT_PASSED : FA_EXIT_NOTHING_JUDGED;
}
