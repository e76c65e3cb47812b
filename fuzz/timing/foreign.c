#include "fuzz/timing/foreign.h"

#include "cases/base/atomic_file.h"
#include "cases/threads/processors.h"
#include "fuzz/options/cases_select.h"
#include "fuzz/options/filter.h"
#include "fuzz/options/untrusted.h"
#include "fuzz/options/version.h"
#include "fuzz/timing/print.h"
#include "gpu/wall/terms.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct session {
  const fa_cli *cli;
  fa_case_list list;
  fa_filter filter;
  fa_participant who[FA_MOST_PARTICIPANTS];
  fa_race_config config;
  fa_wall_terms of_wall;
  const fa_wall_terms *terms; /* NULL: the candidate is trusted */
  char no_rival[300];         /* why there is none; "" = there are */
  cJSON *cases;
  int n_timed, n_bad;
} session;

/* ---- who takes part ---- */

/* Workers are forked first, before this process has children of whose pipes they would get copies. */
static fa_status open_rivals(session *s, fa_error *err) {
  const fa_words *named = &s->cli->rival;
  fa_error why = {""};
  int n = 2;
  if (named->n > FA_MOST_RIVALS)
    return fa_fail(err, FA_ERR_INPUT, "bench: at most %d rivals", FA_MOST_RIVALS);
  for (int i = 0; i < named->n; ++i) {
    const fa_status status =
        fa_participant_open(&s->who[n], FA_ROLE_RIVAL, named->v[i], s->cli->backends, s->terms, err);
    if (status != FA_OK) return status;
    ++n;
  }
  static const char *const usual[] = {"cuda", "ref-f32"};
  for (int i = 0; named->n == 0 && i < 2 && n == 2; ++i)
    if (fa_participant_open(&s->who[n], FA_ROLE_RIVAL, usual[i], s->cli->backends, NULL, &why) == FA_OK) ++n;
  if (n == 2) snprintf(s->no_rival, sizeof s->no_rival, "%s", why.text);
  s->config.n = n;
  return FA_OK;
}

static fa_status open_all(session *s, const char *backend, fa_error *err) {
  s->config.participant = s->who;
  s->config.n = 2;
  fa_status status = open_rivals(s, err);
  if (status == FA_OK)
    status = fa_participant_open(&s->who[0], FA_ROLE_CANDIDATE, backend, s->cli->backends, s->terms, err);
  if (status == FA_OK)
    status = fa_participant_open(&s->who[1], FA_ROLE_NOTHING, NULL, s->cli->backends, NULL, err);
  return status;
}

/* Names of --without that are none of the defences are the wall's. */
static fa_status read_defences(session *s, fa_error *err) {
  const fa_words *without = &s->cli->without;
  fa_cli rest = *s->cli;
  rest.without = (fa_words){.v = calloc((size_t)without->n + 1, sizeof *without->v), .n = 0};
  if (!rest.without.v) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  s->config.defences = FA_ALL_DEFENCES;
  for (int i = 0; i < without->n; ++i)
    if (!fa_defence_leave_out(&s->config.defences, without->v[i]))
      rest.without.v[rest.without.n++] = without->v[i];
  const fa_status status = fa_cli_terms(&rest, &s->of_wall, &s->terms, err);
  free(rest.without.v);
  return status;
}

static void look_at_machine(session *s) {
  fa_gpu_state gpu;
  fa_gpu_state_read(&gpu);
  s->config.chip = gpu.known ? fa_chip_find(gpu.name) : NULL;
  s->config.cache_bytes = fa_last_cache_bytes();
  if (s->config.chip && s->config.chip->l2_mib * 1048576 > s->config.cache_bytes)
    s->config.cache_bytes = s->config.chip->l2_mib * 1048576;
  s->config.n_threads = s->cli->jobs ? (int)s->cli->jobs : fa_processors();
  s->config.trusted = !s->cli->untrusted;
}

/* ---- the head ---- */

/* The layers of the wall alone: those of the judge are about verdicts. */
static void print_wall(const session *s) {
  char layers[400];
  fa_layer_set wall = 0;
  if (!s->terms) return;
  for (int l = 0; l < FA_N_LAYERS; ++l)
    if (fa_layers[l].kind == FA_LAYER_OF_WALL) wall |= 1u << l;
  fa_layers_text(s->terms->layers & wall, layers, sizeof layers);
  printf("untrusted, behind a wall of: %s\n", layers);
  printf("untrusted: %s\n", s->who[0].choice.info.wall);
  printf("stands still in others' turns by %s\n",
         fa_participant_has_freezer(&s->who[0])
             ? "its control group"
             : "SIGSTOP: no group can be frozen here, and processes that live but shortly get away");
  for (int i = 2; i < s->config.n; ++i)
    printf("rival %s: %s\n", s->who[i].label,
           s->who[i].choice.untrusted ? "behind the same wall, and judged like the candidate"
                                      : "a kernel of this program, trusted; it is not judged");
}

static void print_head(const session *s) {
  const fa_backend_info *info = &s->who[0].choice.info;
  printf("%s: %s%s%s\n", s->who[0].label, info->device, info->driver[0] ? ", driver " : "", info->driver);
  print_wall(s);
  for (int d = 0; d < FA_N_DEFENCES; ++d)
    if (!fa_defence_in(s->config.defences, (fa_defence)d))
      printf("WITHOUT %s: these times prove nothing\n", fa_defence_name((fa_defence)d));
  if (s->no_rival[0]) printf("no rival: %s\n", s->no_rival);
  fa_race_print_head();
}

/* ---- cases ---- */

static fa_status run_case(session *s, const fa_case *c, fa_error *err) {
  static fa_race race;
  fa_status status = FA_OK;
  for (int backward = 0; status == FA_OK && backward <= c->problem.backward; ++backward) {
    const unsigned passes = FA_PASS_FORWARD | (backward ? FA_PASS_BACKWARD : 0);
    status = fa_race_run(&race, &s->config, c, passes, err);
    if (status == FA_OK) {
      fa_race_print(&race, &s->config);
      cJSON_AddItemToArray(s->cases, fa_race_json(&race, &s->config));
      s->n_bad += !race.course[0].none && race.course[0].why[0];
      s->n_timed += !race.course[0].none;
    }
    fa_race_free(&race, s->config.n);
  }
  return status;
}

/* ---- the report ---- */

static cJSON *names_left_out(const session *s) {
  cJSON *names = cJSON_CreateArray();
  for (int d = 0; d < FA_N_DEFENCES; ++d)
    if (!fa_defence_in(s->config.defences, (fa_defence)d))
      cJSON_AddItemToArray(names, cJSON_CreateString(fa_defence_name((fa_defence)d)));
  return names;
}

static fa_status write_report(session *s, fa_error *err) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "fa_bench", 1);
  cJSON *tool = cJSON_AddObjectToObject(o, "tool");
  cJSON_AddStringToObject(tool, "version", fa_version());
  cJSON_AddStringToObject(tool, "git", fa_git_revision());
  cJSON *backend = cJSON_AddObjectToObject(o, "backend");
  cJSON_AddStringToObject(backend, "name", s->who[0].label);
  cJSON_AddStringToObject(backend, "device", s->who[0].choice.info.device);
  cJSON_AddStringToObject(backend, "driver", s->who[0].choice.info.driver);
  cJSON *bench = cJSON_AddObjectToObject(o, "bench");
  cJSON_AddBoolToObject(bench, "untrusted", !s->config.trusted);
  cJSON_AddItemToObject(bench, "without", names_left_out(s));
  if (s->terms)
    cJSON_AddStringToObject(bench, "stopped_by",
                            fa_participant_has_freezer(&s->who[0]) ? "cgroup" : "signals");
  if (s->no_rival[0]) cJSON_AddStringToObject(bench, "no_rival", s->no_rival);
  cJSON_AddItemToObject(bench, "cases", cJSON_Duplicate(s->cases, true));
  char *text = cJSON_Print(o);
  cJSON_Delete(o);
  const fa_status status = text ? fa_file_write_atomic(s->cli->report, text, strlen(text), err)
                                : fa_fail(err, FA_ERR_MEMORY, "out of memory");
  free(text);
  return status;
}

/* ---- the whole ---- */

static fa_status run_all(session *s, const char *backend, fa_error *err) {
  fa_status status = read_defences(s, err);
  if (status == FA_OK) status = fa_cli_load_cases(s->cli, &s->list, NULL, err);
  if (status == FA_OK) status = fa_filter_compile(s->cli, &s->filter, err);
  if (status == FA_OK && s->cli->report) status = fa_file_check_writable(s->cli->report, err);
  if (status == FA_OK) status = open_all(s, backend, err);
  if (status != FA_OK) return status;
  look_at_machine(s);
  print_head(s);
  for (int64_t i = 0; status == FA_OK && i < s->list.n; ++i)
    if (fa_filter_passes(&s->filter, s->list.v[i].name)) status = run_case(s, &s->list.v[i], err);
  if (status == FA_OK) fa_filter_report(&s->filter, s->list.n, 1);
  if (status == FA_OK && s->cli->report) status = write_report(s, err);
  return status;
}

int fa_bench_foreign(const fa_cli *cli, const char *backend) {
  static session s;
  fa_error err = {""};
  memset(&s, 0, sizeof s);
  s.cli = cli;
  s.cases = cJSON_CreateArray();
  const fa_status status = run_all(&s, backend, &err);
  for (int i = 0; i < s.config.n; ++i) fa_participant_close(&s.who[i]);
  cJSON_Delete(s.cases);
  fa_case_list_free(&s.list);
  fa_filter_free(&s.filter);
  if (status != FA_OK) return fa_cli_fail(status == FA_ERR_UNSUPPORTED ? FA_ERR_INPUT : status, &err);
  return s.n_bad ? FA_EXIT_MISMATCH : s.n_timed ? FA_EXIT_PASSED : FA_EXIT_NOTHING_JUDGED;
}
