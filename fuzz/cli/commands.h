/* The commands, and the whole program. */
#ifndef FA_FUZZ_CLI_COMMANDS_H
#define FA_FUZZ_CLI_COMMANDS_H

#include "fuzz/options/command.h"

/* Each returns the exit code. */
int fa_command_run(const fa_cli *cli);
int fa_command_tier(const fa_cli *cli); /* run --tier */
int fa_command_random(const fa_cli *cli);
int fa_command_repro(const fa_cli *cli);
int fa_command_check(const fa_cli *cli);
int fa_command_golden(const fa_cli *cli);
int fa_command_bench(const fa_cli *cli);
int fa_command_list(const fa_cli *cli);
int fa_command_report(const fa_cli *cli);
int fa_command_shrink(const fa_cli *cli);
int fa_command_probe(const fa_cli *cli);
int fa_command_serve(const fa_cli *cli);
int fa_command_completion(const fa_cli *cli);
int fa_command_man(const fa_cli *cli);

/* The program's version, and those of what it speaks and reads: docs/reference/versions.md. */
void fa_cli_print_version(FILE *out);

/* The whole program. backends: what --backend can choose, NULL-terminated. */
int fa_cli_main(int argc, char **argv, const fa_backend *const *backends);

#endif
