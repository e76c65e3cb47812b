#include "fuzz/campaign/session.h"

#include "cases/base/atomic_file.h"
#include "fuzz/generate/draw.h"
#include "fuzz/one/dump.h"
#include "fuzz/options/filter.h"
#include "fuzz/options/untrusted.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

bool fa_source_origin(const fa_source *s, int64_t index, fa_case_origin *out) {
  const int64_t at = s->laws.n ? index / s->laws.n : index;
  int64_t unused;
  if (s->hidden && index >= s->hidden_from)
    *out = (fa_case_origin){NULL, 0, 0};
  else if (s->tier)
    fa_tier_at(s->tier, at, &unused, out);
  else if (s->list)
    *out = s->origin ? s->origin[at] : (fa_case_origin){NULL, 0, 0};
  else
    *out = (fa_case_origin){s->profile, s->seed, at};
  return out->profile != NULL;
}

fa_status fa_source_get(const fa_source *s, int64_t index, int64_t draw, fa_case *out, fa_error *err) {
  const int n_laws = s->laws.n;
  int64_t at = n_laws ? index / n_laws : index;
  fa_case_origin origin;
  fa_status status;
  const bool drawn = fa_source_origin(s, index, &origin);
  if (s->tier) fa_tier_at(s->tier, at, &at, &origin);
  if (s->hidden && index >= s->hidden_from) {
    status = fa_case_copy(out, &s->hidden->v[index - s->hidden_from]);
    return status == FA_OK ? FA_OK : fa_fail(err, status, "out of memory");
  }
  if (!s->list || (drawn && (draw > 0 || s->tier)))
    status = fa_generate_draw(origin.profile, origin.seed, origin.index, draw, out, err);
  else if ((status = fa_case_copy(out, &s->list->v[at])) != FA_OK)
    fa_fail(err, status, "out of memory");
  if (status != FA_OK || n_laws == 0) return status;
  status = fa_law_apply(out, s->laws.v[index % n_laws]);
  return status == FA_OK ? FA_OK : fa_fail(err, status, "out of memory");
}

int64_t fa_source_count(const fa_source *s, int64_t n_cases) {
  return s->laws.n ? n_cases * s->laws.n : n_cases;
}

static fa_status load_waivers(fa_session *s, fa_error *err) {
  char today[16] = "";
  time_t now = time(NULL);
  struct tm utc;
  if (!s->cli->waivers) return FA_OK;
  if (gmtime_r(&now, &utc)) strftime(today, sizeof today, "%Y-%m-%d", &utc);
  return fa_waivers_load(s->cli->waivers, today, &s->waivers, err);
}

/* Those that the command line names, behind a wall if it says so. */
static fa_status choose_backends(fa_session *s, fa_error *err) {
  const fa_cli *cli = s->cli;
  fa_wall_terms its_terms;
  const fa_wall_terms *terms = NULL;
  fa_status status = fa_cli_terms(cli, &its_terms, &terms, err);
  for (int i = 0; status == FA_OK && i < cli->backend.n; ++i) {
    fa_choice *choice = &s->choice[s->n_choices++];
    if (!terms) fa_backend_share(cli->backends, cli->backend.v[i]);
    status = fa_choose_untrusted(cli->backends, cli->backend.v[i], terms, choice, err);
    if (status == FA_OK && terms && !cli->quiet) printf("untrusted: %s\n", choice->info.wall);
  }
  return status;
}

int fa_session_open(fa_session *s, const fa_cli *cli) {
  fa_error err = {""};
  fa_status status = FA_OK;
  memset(s, 0, sizeof *s);
  s->cli = cli;
  s->journal.fd = -1;
  s->preparing_slots.fd = -1;
  s->lane = calloc(FA_POOL_MAX_LANES, sizeof *s->lane);
  if (!s->lane) return fa_cli_fail(FA_ERR_MEMORY, &(fa_error){"out of memory"});
  fa_line_style_from_cli(&s->style, cli);
  s->style.report = cli->report;
  if (cli->resume && !cli->report) {
    fa_fail(&err, FA_ERR_INPUT, "--resume needs the --report OUT.json of the run that it goes on with");
    return fa_cli_fail(FA_ERR_INPUT, &err);
  }
  if (cli->report) status = fa_file_check_writable(cli->report, &err);
  if (status == FA_OK && cli->html) status = fa_file_check_writable(cli->html, &err);
  if (status == FA_OK && cli->emit) status = fa_file_check_writable(cli->emit, &err);
  if (status == FA_OK && cli->keep) status = fa_dump_check_folder(cli->keep, &err);
  if (status == FA_OK) status = load_waivers(s, &err);
  if (status == FA_OK) status = fa_shard_read(cli->shard, &s->shard, &err);
  if (status == FA_OK && cli->backend.n > FA_MAX_BACKENDS)
    status = fa_fail(&err, FA_ERR_INPUT, "--backend: at most %d", FA_MAX_BACKENDS);
  if (status == FA_OK) status = choose_backends(s, &err);
  if (status == FA_OK && cli->backend.n == 0 && strcmp(cli->command, "repro") != 0)
    status = fa_choose_default(cli->backends, cli->quiet, &s->choice[s->n_choices++], &err);
  if (status == FA_OK)
    status =
        fa_report_open_baseline(cli, s->n_choices ? &s->choice[0] : NULL, s->n_choices, &s->baseline, &err);
  for (int b = 0; status == FA_OK && cli->lanes > 1 && b < s->n_choices; ++b)
    if (!s->choice[b].backend->lanes || cli->no_isolate || cli->untrusted)
      status = fa_fail(&err, FA_ERR_INPUT, "--lanes: not with %s",
                       cli->no_isolate  ? "--no-isolate"
                       : cli->untrusted ? "--untrusted"
                                        : s->choice[b].spec);
  if (status == FA_OK) status = fa_session_open_rules(s, &err);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  if (s->shard.source && strcmp(s->shard.source, "--shard") != 0 && !cli->quiet)
    fprintf(stderr, "shard: %lld of %lld (%s)\n", (long long)s->shard.index, (long long)s->shard.total,
            s->shard.source);
  return 0;
}

void fa_session_free(fa_session *s) {
  for (int b = 0; b < s->n_choices; ++b) { /* --no-isolate; workers just exit */
    if (!s->lane) continue;
    fa_preparing_wait(&s->lane->preparing[b]);
    if (s->lane->opened[b]) s->choice[b].backend->close(s->lane->self[b]);
  }
  fa_process_slots_free(&s->preparing_slots);
  fa_session_draw_end(s);
  free(s->lane);
  free(s->item);
  free(s->coverage);
  free(s->tried);
  free(s->kept_draw);
  cJSON_Delete(s->run);
  fa_resume_free(&s->resume);
  fa_waivers_free(s->waivers);
  fa_baseline_free(s->baseline);
  fa_case_list_free(&s->hidden);
  free(s->rules);
  free(s->mode);
  fa_causes_free(s->causes);
  fa_report_free(&s->report);
}

fa_status fa_session_add_item(fa_session *s, int64_t case_index, int backend, uint64_t schedule_seed) {
  if ((s->n_items & (s->n_items + 1)) == 0) { /* full at 1, 3, 7, ...: double the capacity */
    fa_item *bigger = realloc(s->item, (size_t)(2 * s->n_items + 1) * sizeof *bigger);
    if (!bigger) return FA_ERR_MEMORY;
    s->item = bigger;
  }
  s->item[s->n_items++] = (fa_item){.case_index = case_index,
                                    .backend = backend,
                                    .schedule_seed = schedule_seed,
                                    .draw = s->draws ? FA_DRAW_LATER : 0,
                                    .sample = s->cli->sample,
                                    .number = FA_ITEM_OWN_NUMBER};
  return FA_OK;
}

fa_status fa_session_open_backend(fa_session *s, int lane, int backend, fa_error *err) {
  fa_lane *x = &s->lane[lane];
  if (x->opened[backend]) return FA_OK;
  const fa_choice *choice = &s->choice[backend];
  fa_status status = fa_choice_open(choice, &x->self[backend], err);
  x->opened[backend] = status == FA_OK;
  return status == FA_OK ? fa_rules_hold(s->rules, choice->backend, x->self[backend], err) : status;
}

/* Keeps the items whose case's name matches. */
static fa_status apply_filter(fa_session *s, fa_filter *filter, fa_error *err) {
  const int64_t n_cases = s->n_choices ? s->n_items / s->n_choices : 0;
  int64_t n = 0;
  for (int64_t i = 0; i < s->n_items; ++i) {
    const fa_item item = s->item[i];
    fa_case c;
    const fa_status status =
        fa_source_get(&s->source, item.case_index, item.draw > 0 ? item.draw : 0, &c, err);
    if (status != FA_OK) return status;
    if (fa_filter_passes(filter, c.name)) s->item[n++] = item;
    fa_case_free(&c);
  }
  s->n_items = n;
  fa_filter_report(filter, n_cases, s->shard.total);
  return FA_OK;
}

fa_status fa_session_select(fa_session *s, int64_t n, fa_error *err) {
  fa_filter filter;
  fa_status status = fa_filter_compile(s->cli, &filter, err);
  s->source.hidden_from = n;
  if (status == FA_OK) status = fa_session_draw_begin(s, err);
  for (int b = 0; status == FA_OK && b < s->n_choices; ++b)
    for (int64_t i = s->shard.index; status == FA_OK && i < n; i += s->shard.total)
      status = fa_session_add_item(s, i, b, s->cli->schedule_seed);
  if (status == FA_ERR_MEMORY) fa_fail(err, status, "out of memory");
  /* A filter needs the names, and --emit the cases, before anything runs. */
  if (status == FA_OK && (filter.text || s->cli->emit || s->rules)) status = fa_session_draw_ahead(s, err);
  if (status == FA_OK && filter.text) status = apply_filter(s, &filter, err);
  fa_filter_free(&filter);
  if (status == FA_OK) status = fa_session_hide(s, err);
  return status;
}
