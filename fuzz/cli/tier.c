/* run --tier: what is worth most in a given time. */
#include "fuzz/campaign/session.h"
#include "fuzz/cli/commands.h"
#include "fuzz/options/case_files.h"
#include "fuzz/options/cases_select.h"

#include <stdlib.h>

static int check(const fa_cli *cli) {
  if (cli->words.n)
    return fa_cli_usage_error("run: what is %s? cases are named with --cases", cli->words.v[0]);
  if (!fa_tier_find(cli->tier))
    return fa_cli_usage_error("--tier %s: smoke, standard or nightly is allowed", cli->tier);
  return 0;
}

/* The cases that are named; without names, those of all files that came with the program. */
static fa_status load_cases(const fa_cli *cli, fa_case_list *list, fa_error *err) {
  fa_cli all = *cli;
  fa_case_files files = {0};
  fa_status status = FA_OK;
  if (cli->cases.n == 0 && cli->case_text.n == 0) {
    status = fa_case_files_list(&files, err);
    if (status == FA_OK && files.n == 0)
      status =
          fa_fail(err, FA_ERR_INPUT, "--tier: no case files are beside the program; name some with --cases");
    all.cases = (fa_words){(const char **)files.path, files.n};
  }
  if (status == FA_OK) status = fa_cli_load_cases(&all, list, NULL, err);
  fa_case_files_free(&files);
  return status;
}

static int run(fa_session *s, fa_tier *tier, const fa_case_list *list) {
  fa_error err = {""};
  s->source = (fa_source){.tier = tier, .list = list};
  fa_status status = fa_law_select(s->cli, &s->source.laws, &err);
  if (status == FA_OK) status = fa_tier_choose(tier, s, list, &err);
  if (status == FA_OK) status = fa_session_draw_begin(s, &err);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  if (!s->cli->quiet) fa_tier_print_choice(stderr, tier);
  s->deadline = tier->started + tier->seconds;
  return fa_session_run(s);
}

int fa_command_tier(const fa_cli *cli) {
  fa_error err = {""};
  fa_case_list list = {0};
  fa_tier tier = {.name = NULL};
  int code = check(cli);
  if (code) return code;
  fa_session *s = malloc(sizeof *s);
  fa_status status = s ? load_cases(cli, &list, &err) : fa_fail(&err, FA_ERR_MEMORY, "out of memory");
  if (status == FA_OK) {
    code = fa_session_open(s, cli);
    if (code == 0) code = run(s, &tier, &list);
    fa_session_free(s);
  } else {
    code = fa_cli_fail(status, &err);
  }
  free(s);
  fa_tier_free(&tier);
  fa_case_list_free(&list);
  return code;
}
