/* --help. */
#include "fuzz/options/table.h"

void fa_cli_print_help(FILE *out) {
  fputs("fa-verify: judges attention kernels against a float64 reference, element by element.\n\n"
        "  fa-verify --cases cases/causal.json       short for: fa-verify run --cases ...\n\ncommands:\n",
        out);
  for (int i = 0; i < fa_n_commands; ++i)
    fprintf(out, "  %-7s %-37s %s\n", fa_commands[i].name, fa_commands[i].arguments, fa_commands[i].does);
  fputs("\noptions:\n", out);
  for (int i = 0; i < fa_n_options; ++i) {
    char text[64];
    snprintf(text, sizeof text, "%s%c%s--%s %s", fa_options[i].letter ? "-" : "",
             fa_options[i].letter ? fa_options[i].letter : ' ', fa_options[i].letter ? ", " : "   ",
             fa_options[i].name, fa_options[i].argument ? fa_options[i].argument : "");
    fprintf(out, "  %-28s %s\n", text, fa_options[i].does);
  }
  fputs(
      "\nA shard may also come from FA_SHARD_INDEX and FA_SHARD_TOTAL, TEST_SHARD_INDEX and "
      "TEST_TOTAL_SHARDS,\n"
      "GTEST_SHARD_INDEX and GTEST_TOTAL_SHARDS, or Slurm's SLURM_ARRAY_TASK_ID, _MIN and _COUNT.\n\n"
      "Exit codes: 0 all judged cases passed and at least one was judged; 1 a mismatch, or --require is not "
      "met;\n"
      "2 usage or malformed input; 3 infrastructure (device lost, out of memory, I/O); 4 nothing was "
      "judged.\n"
      "An interrupt (^C) finishes the running cases, reports what is done, keeps the journal for --resume, "
      "and\n"
      "gives 130; a second one stops at once.\n",
      out);
}
