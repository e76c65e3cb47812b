/* list: what this build and machine have. */
#include "cases/fill.h"
#include "fuzz/choose_backend.h"
#include "fuzz/cli.h"
#include "fuzz/generate.h"

#include <string.h>

static void list_backends(const fa_cli *cli) {
  for (int i = 0; cli->backends[i]; ++i) {
    fa_backend_info info;
    fa_backend_probe(cli->backends[i], NULL, &info);
    printf("%-10s %s\n", cli->backends[i]->name, cli->backends[i]->what);
    if (info.usable)
      printf("%-10s usable: %s%s%s\n", "", info.device, info.driver[0] ? ", driver " : "", info.driver);
    else
      printf("%-10s not usable: %s\n", "", info.why_not);
  }
}

static void list_profiles(void) {
  for (const fa_generate_profile *p = fa_generate_profiles; p->name; ++p)
    printf("%-16s %s\n", p->name, p->what);
}

static void list_fills(void) {
  for (int f = 0; f < FA_N_FILLS; ++f) {
    const fa_fill_info *info = fa_fill_describe((fa_fill)f);
    printf("%-16s %-11s %s%s\n", info->name, info->generic ? "generic" : "not generic", info->what,
           info->bias_only ? " (bias only)"
           : info->do_only ? " (do only)"
                           : "");
  }
}

int fa_command_list(const fa_cli *cli) {
  const char *what = cli->words.n == 1 ? cli->words.v[0] : "";
  if (strcmp(what, "backends") == 0)
    list_backends(cli);
  else if (strcmp(what, "profiles") == 0)
    list_profiles();
  else if (strcmp(what, "fills") == 0)
    list_fills();
  else if (strcmp(what, "mutants") == 0)
    puts("this build has no mutants");
  else
    return fa_cli_usage_error("list: one of backends, profiles, fills, mutants is needed");
  return 0;
}
