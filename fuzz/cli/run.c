/* run and random: many cases through one session. */
#include "fuzz/campaign/session.h"
#include "fuzz/cli/commands.h"
#include "fuzz/generate/draw.h"
#include "fuzz/options/cases_select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int check_run(const fa_cli *cli) {
  if (cli->words.n)
    return fa_cli_usage_error("run: what is %s? cases are named with --cases", cli->words.v[0]);
  if (cli->seconds > 0) return fa_cli_usage_error("run: --seconds needs --tier NAME, whose time it is");
  if (cli->seed != 1)
    return fa_cli_usage_error("run: --seed needs --tier NAME, whose random cases it is for");
  if (cli->cases.n == 0 && cli->case_text.n == 0)
    return fa_cli_usage_error("run: --cases FILE..., --case JSON or --tier NAME is needed");
  return 0;
}

int fa_command_run(const fa_cli *cli) {
  fa_error err = {""};
  fa_case_list list = {0};
  fa_case_origin *origins = NULL;
  if (cli->tier) return fa_command_tier(cli);
  const int wrong = check_run(cli);
  if (wrong) return wrong;
  fa_status status = fa_cli_load_cases(cli, &list, &origins, &err);
  fa_session *s = malloc(sizeof *s);
  if (status == FA_OK && !s) status = fa_fail(&err, FA_ERR_MEMORY, "out of memory");
  if (status != FA_OK) {
    fa_case_list_free(&list);
    free(origins);
    free(s);
    return fa_cli_fail(status, &err);
  }
  int code = fa_session_open(s, cli);
  if (code == 0) {
    s->source = (fa_source){.list = &list, .origin = origins};
    status = fa_law_select(cli, &s->source.laws, &err);
    if (status == FA_OK) status = fa_session_select(s, fa_source_count(&s->source, list.n), &err);
    code = status == FA_OK ? fa_session_run(s) : fa_cli_fail(status, &err);
  }
  fa_session_free(s);
  free(s);
  fa_case_list_free(&list);
  free(origins);
  return code;
}

static int check_random(const fa_cli *cli) {
  if (cli->words.n) return fa_cli_usage_error("random: what is %s?", cli->words.v[0]);
  if ((cli->count > 0) == (cli->seconds > 0))
    return fa_cli_usage_error("random: one of --count N and --seconds T is needed");
  if (cli->seconds > 0 && cli->filter)
    return fa_cli_usage_error(
        "random: --filter needs --count: an endless run would look for a match for ever");
  return 0;
}

int fa_command_random(const fa_cli *cli) {
  fa_error err = {""};
  fa_case probe;
  int code = check_random(cli);
  if (code) return code;
  const char *profile = cli->profile ? cli->profile : fa_generate_profiles[0].name;
  fa_status status = fa_generate(profile, cli->seed, 0, &probe, &err);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  fa_case_free(&probe);
  fa_session *s = malloc(sizeof *s);
  if (!s) return fa_cli_fail(FA_ERR_MEMORY, &(fa_error){"out of memory"});
  code = fa_session_open(s, cli);
  if (code == 0) {
    s->source = (fa_source){.profile = profile, .seed = cli->seed};
    if (!cli->quiet)
      fprintf(stderr, "random: profile %s, seed %llu\n", profile, (unsigned long long)cli->seed);
    status = fa_law_select(cli, &s->source.laws, &err);
    if (status == FA_OK && cli->count)
      status = fa_session_select(s, fa_source_count(&s->source, cli->count), &err);
    else if (status == FA_OK)
      status = fa_session_draw_begin(s, &err);
    if (!cli->count) s->deadline = fa_seconds_now() + cli->seconds;
    bool first = cli->count && cli->emit; /* then a case that kills the program is already written */
    if (status == FA_OK && first) status = fa_session_emit(s, cli->emit, &err);
    code = status == FA_OK ? fa_session_run(s) : fa_cli_fail(status, &err);
    if (status == FA_OK && cli->emit && !first && (status = fa_session_emit(s, cli->emit, &err)) != FA_OK)
      code = fa_cli_fail(status, &err);
  }
  fa_session_free(s);
  free(s);
  return code;
}
