/* From argv to a command's exit code. */
#include "fuzz/cli/commands.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

static int dispatch(const fa_cli *cli) {
  static const struct {
    const char *name;
    int (*run)(const fa_cli *cli);
  } commands[] = {
      {"run", fa_command_run},     {"random", fa_command_random},         {"repro", fa_command_repro},
      {"check", fa_command_check}, {"golden", fa_command_golden},         {"bench", fa_command_bench},
      {"list", fa_command_list},   {"report", fa_command_report},         {"shrink", fa_command_shrink},
      {"probe", fa_command_probe}, {"completion", fa_command_completion}, {"man", fa_command_man},
      {"serve", fa_command_serve},
  };
  for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i)
    if (strcmp(commands[i].name, cli->command) == 0) return commands[i].run(cli);
  return fa_cli_usage_error("unknown command %s", cli->command);
}

/* If a standard stream is closed, the next file to be opened, the journal for example, would take its number
 * and receive what is printed. A descriptor on which I/O fails takes its place; for stderr, whose errors
 * could not be reported, one that accepts everything. */
static void occupy_standard_streams(void) {
  static const int mode[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int fd = 0; fd < 3; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode[fd]) < 0) return;
}

int fa_cli_main(int argc, char **argv, const fa_backend *const *backends) {
  fa_cli cli = {.backends = backends};
  occupy_standard_streams();
  signal(SIGXFSZ, SIG_IGN); /* a file size limit then gives a failed write, which has a message */
  int code = fa_cli_parse(&cli, argc, argv);
  if (code == 0) {
    if (cli.help)
      fa_cli_print_help(&cli, stdout);
    else if (cli.version)
      fa_cli_print_version(stdout);
    else
      code = dispatch(&cli);
  }
  fa_cli_free(&cli);
  /* A full disk must not look like success. */
  if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
    fputs("fa-verify: cannot write the results to stdout\n", stderr);
    code = FA_EXIT_INFRASTRUCTURE;
  }
  return code;
}
