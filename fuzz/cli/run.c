/* run and random: many cases through one session. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "fuzz/campaign/session.h"
#include "fuzz/cli/commands.h"
#include "fuzz/generate/draw.h"
#include "fuzz/options/cases_select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int fa_command_run(const fa_cli *cli) {
  fa_error err = {""};
  fa_case_list list = {0};
  if (cli->words.n)
    return fa_cli_usage_error("run: what is %s? cases are named with --cases", cli->words.v[0]);
  if (cli->cases.n == 0 && cli->case_text.n == 0)
    return fa_cli_usage_error("run: --cases FILE... or --case JSON is needed");
  fa_status status = fa_cli_load_cases(cli, &list, &err);
  fa_session *s = malloc(sizeof *s);
  if (status == FA_OK && !s) status = fa_fail(&err, FA_ERR_MEMORY, "out of memory");
  if (status != FA_OK) {
    fa_case_list_free(&list);
    free(s);
    return fa_cli_fail(status, &err);
  }
  int code = fa_session_open(s, cli);
  if (code == 0) {
    s->source = (fa_source){.list = &list};
    status = fa_law_select(cli, &s->source.laws, &err);
    if (status == FA_OK) status = fa_session_select(s, fa_source_count(&s->source, list.n), &err);
    code = status == FA_OK ? fa_session_run(s) : fa_cli_fail(status, &err);
  }
  fa_session_free(s);
  free(s);
  fa_case_list_free(&list);
  return code;
}

/* Writes this process's cases as a case file. */
static fa_status emit_cases(const fa_session *s, const char *path, fa_error *err) {
  fa_case_list list = {0};
  fa_status status = FA_OK;
  int64_t n = s->item ? s->n_items : s->next_item;
  for (int64_t i = 0; status == FA_OK && i < n; ++i) {
    int64_t index = s->item ? s->item[i].case_index : s->shard.index + i / s->n_choices * s->shard.total;
    bool again = s->item ? s->item[i].backend != 0 : i % s->n_choices != 0; /* the same on the next backend */
    if (again) continue;
    fa_case c;
    status = fa_source_get(&s->source, index, &c, err);
    if (status == FA_OK) status = fa_case_list_push(&list, &c);
  }
  if (status == FA_OK) status = fa_case_file_save(path, list.v, list.n, err);
  fa_case_list_free(&list);
  return status;
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
    else
      s->deadline = fa_seconds_now() + cli->seconds;
    bool first = cli->count && cli->emit; /* then a case that kills the program is already written */
    if (status == FA_OK && first) status = emit_cases(s, cli->emit, &err);
    code = status == FA_OK ? fa_session_run(s) : fa_cli_fail(status, &err);
    if (status == FA_OK && cli->emit && !first && (status = emit_cases(s, cli->emit, &err)) != FA_OK)
      code = fa_cli_fail(status, &err);
  }
  fa_session_free(s);
  free(s);
  return code;
}
