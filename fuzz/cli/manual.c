/* completion and man: what the program prints about itself for other programs. */
#include "fuzz/cli/commands.h"
#include "fuzz/manual/print.h"

int fa_command_completion(const fa_cli *cli) {
  if (cli->words.n != 1) return fa_cli_usage_error("completion: one of bash, zsh, fish is needed");
  fa_manual_completion(cli->words.v[0], cli->backends, stdout);
  return FA_EXIT_PASSED;
}

int fa_command_man(const fa_cli *cli) {
  if (cli->words.n) return fa_cli_usage_error("man: what is %s?", cli->words.v[0]);
  fa_manual_page(cli->backends, stdout);
  return FA_EXIT_PASSED;
}
