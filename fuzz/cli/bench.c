/* bench: speed of the reference, or of the kernels on a GPU. */
#include "fuzz/cli/commands.h"

#include "fuzz/bench/gpu.h"
#include "fuzz/bench/reference.h"
#include "fuzz/timing/foreign.h"
#include "fuzz/timing/null.h"

#include <string.h>

/* A program of its own. */
static bool is_foreign(const char *backend) {
  return strncmp(backend, "exec:", 5) == 0 || strncmp(backend, "py:", 3) == 0;
}

int fa_command_bench(const fa_cli *cli) {
  const char *backend = cli->backend.n ? cli->backend.v[0] : "cuda";
  if (cli->backend.n > 1) return fa_cli_usage_error("bench: one --backend at a time");
  if (cli->words.n)
    return fa_cli_usage_error("bench: what is %s? cases are named with --cases", cli->words.v[0]);
  if (strcmp(backend, "ref") == 0) {
    if (cli->cases.n || cli->case_text.n || cli->cold || cli->report)
      return fa_cli_usage_error("bench --backend ref: takes no cases and nothing but --jobs");
    return fa_bench_reference(stdout, (int)cli->jobs);
  }
  if (strncmp(backend, "judge", 5) == 0 && (!backend[5] || backend[5] == ':')) {
    if (cli->cases.n || cli->cold || cli->report)
      return fa_cli_usage_error(
          "bench --backend judge: takes no case files and nothing but --case, --jobs, --lanes and --judge");
    return fa_bench_rate(stdout, backend[5] ? backend + 6 : "ref-f32", fa_judge_choice_named(cli->judge),
                         &cli->case_text, (int)cli->jobs, cli->lanes);
  }
  if (cli->lanes) return fa_cli_usage_error("bench: --lanes goes with --backend judge:cuda");
  if (cli->judge) return fa_cli_usage_error("bench: --judge goes with --backend judge");
  if (strcmp(backend, "null") == 0) return fa_timing_null();
  if (is_foreign(backend)) {
    if (cli->cases.n == 0 && cli->case_text.n == 0)
      return fa_cli_usage_error("bench: --cases FILE... or --case JSON is needed");
    if (cli->cold)
      return fa_cli_usage_error("bench --backend %s: takes no --cold: data are always new", backend);
    return fa_bench_foreign(cli, backend);
  }
  if (cli->rival.n || cli->without.n || cli->untrusted)
    return fa_cli_usage_error(
        "bench: --rival, --untrusted and --without go with --backend exec:CMD or py:NAME");
  if (strncmp(backend, "cuda", 4) != 0 || (backend[4] && backend[4] != ':'))
    return fa_cli_usage_error(
        "bench --backend %s: this build times cuda, exec:CMD, py:NAME, ref (the reference), "
        "judge (all but the kernel; judge:cuda with it)",
        backend);
  if (cli->jobs)
    return fa_cli_usage_error("bench --backend cuda: takes no --jobs, the GPU runs one case at a time");
  if (cli->cases.n == 0 && cli->case_text.n == 0)
    return fa_cli_usage_error("bench: --cases FILE... or --case JSON is needed");
  return fa_bench_gpu(cli, backend);
}
