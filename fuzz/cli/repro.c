/* repro: repeats failures of a report, on the backend and with the schedule of the report. */
#include "fuzz/campaign/session.h"
#include "fuzz/cli/commands.h"
#include "fuzz/cli/repeat.h"
#include "fuzz/one/failure_word.h"
#include "fuzz/options/filter.h"
#include "report/sampling/record.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

static fa_status find_choice(fa_session *s, const cJSON *failure, int *choice, fa_error *err) {
  const char *spec = fa_failure_backend(failure);
  for (int i = 0; i < s->n_choices; ++i) {
    *choice = i;
    if (strcmp(s->choice[i].spec, spec) == 0) return FA_OK;
  }
  if (s->n_choices == FA_MAX_BACKENDS) return fa_fail(err, FA_ERR_INPUT, "too many different backends");
  if (s->rules)
    return fa_fail(err, FA_ERR_INPUT, "one candidate at a time, where it is not trusted: %s is another",
                   spec);
  *choice = s->n_choices++;
  return fa_choose_backend(s->cli->backends, spec, &s->choice[*choice], err);
}

typedef struct repro {
  fa_session *s;
  fa_case_list list;
  fa_filter filter;
  int64_t n_asked; /* failures that were named */
} repro;

/* --backend, --schedule-seed and --sample override the report's. --shrunk: uses the shrunk case if there is one. */
static fa_status add_failure(void *ctx, const cJSON *failure, bool shrunk, fa_error *err) {
  repro *x = ctx;
  fa_session *s = x->s;
  uint64_t schedule_seed = 0;
  int first = 0, last = s->cli->backend.n - 1;
  fa_case c;
  if (s->cli->shrunk && cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(failure, "shrunk"))) shrunk = true;
  fa_sample sample;
  fa_status status = fa_sampled_read(failure, &sample, err);
  if (status == FA_OK) status = fa_failure_read(failure, shrunk, &c, &schedule_seed, err);
  if (status != FA_OK) return status;
  if (fa_sample_is_asked(&s->cli->sample)) sample = s->cli->sample;
  ++x->n_asked;
  if (!fa_filter_passes(&x->filter, c.name)) {
    fa_case_free(&c);
    return FA_OK;
  }
  status = fa_case_list_push(&x->list, &c);
  if (status == FA_OK && (s->cli->backend.n == 0 || s->rules)) {
    status = find_choice(s, failure, &first, err);
    last = first;
  }
  if (s->cli->schedule_seed) schedule_seed = s->cli->schedule_seed;
  for (int b = first; status == FA_OK && b <= last; ++b) {
    status = fa_session_add_item(s, x->list.n - 1, b, schedule_seed);
    if (status != FA_OK) break;
    s->item[s->n_items - 1].sample = sample;
    s->item[s->n_items - 1].number = s->rules ? fa_repeat_number(failure) : FA_ITEM_OWN_NUMBER;
  }
  return status;
}

/* The failures are to be run by the rules of their report. */
static fa_status begin_rules(fa_session *s, const fa_repeat *repeat, fa_error *err) {
  if (!s->rules) return FA_OK;
  s->repeats = true;
  s->rules->n_items = s->n_items;
  fa_status status = FA_OK;
  if (fa_rules_have(s->rules, FA_LAYER_CONTRACT))
    status = fa_repeat_check_contract(repeat, s->rules->contract_sha256, err);
  return status == FA_OK ? fa_session_begin_rules(s, err) : status;
}

int fa_command_repro(const fa_cli *given) {
  const fa_cli *cli = given;
  if (cli->words.n == 0) return fa_cli_usage_error("repro: REPORT.json or REPORT.json:K is needed");
  fa_error err = {""};
  fa_repeat repeat;
  repro x = {.s = calloc(1, sizeof *x.s)};
  if (!x.s) return fa_cli_fail(FA_ERR_MEMORY, &(fa_error){"out of memory"});
  const fa_status opened = fa_repeat_open(given, &repeat, &err);
  cli = &repeat.cli;
  int code = opened == FA_OK ? fa_session_open(x.s, cli) : fa_cli_fail(opened, &err);
  if (code == 0) {
    fa_status status = fa_filter_compile(cli, &x.filter, &err);
    for (int i = 0; status == FA_OK && i < cli->words.n; ++i)
      status = fa_failures_visit(cli->words.v[i], add_failure, &x, &err);
    if (status == FA_OK) fa_filter_report(&x.filter, x.n_asked, 1);
    fa_filter_free(&x.filter);
    x.s->source = (fa_source){.list = &x.list};
    if (status == FA_OK) status = begin_rules(x.s, &repeat, &err);
    code = status == FA_OK ? fa_session_run(x.s) : fa_cli_fail(status, &err);
  }
  fa_session_free(x.s);
  fa_repeat_free(&repeat);
  free(x.s);
  fa_case_list_free(&x.list);
  return code;
}
