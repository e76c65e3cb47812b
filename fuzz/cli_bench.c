/* bench: how fast the reference is. */
#include "fuzz/cli.h"

#include "fuzz/bench.h"

#include <string.h>

int fa_command_bench(const fa_cli *cli) {
  if (cli->backend.n != 1 || strcmp(cli->backend.v[0], "ref") != 0)
    return fa_cli_usage_error("bench: this build times the reference only: bench --backend ref");
  if (cli->cases.n || cli->words.n) return fa_cli_usage_error("bench --backend ref: takes no cases");
  return fa_bench_reference(stdout, (int)cli->jobs);
}
