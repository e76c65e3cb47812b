#include "fuzz/session.h"

#include "fuzz/generate.h"
#include "fuzz/run_case.h"
#include "fuzz/worker.h"
#include "report/atomic_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fa_status fa_source_get(const fa_source *s, int64_t index, fa_case *out, fa_error *err) {
  if (!s->list) return fa_generate(s->profile, s->seed, index, out, err);
  fa_status status = fa_case_copy(out, &s->list->v[index]);
  return status == FA_OK ? FA_OK : fa_fail(err, status, "out of memory");
}

int fa_session_open(fa_session *s, const fa_cli *cli) {
  fa_error err = {""};
  fa_status status = FA_OK;
  memset(s, 0, sizeof *s);
  s->cli = cli;
  fa_line_style_from_cli(&s->style, cli);
  if (cli->report) status = fa_file_check_writable(cli->report, &err);
  if (status == FA_OK) status = fa_shard_read(cli->shard, &s->shard, &err);
  if (status == FA_OK && cli->backend.n > FA_MAX_BACKENDS)
    status = fa_fail(&err, FA_ERR_INPUT, "--backend: at most %d", FA_MAX_BACKENDS);
  for (int i = 0; status == FA_OK && i < cli->backend.n; ++i)
    status = fa_choose_backend(cli->backends, cli->backend.v[i], &s->choice[s->n_choices++], &err);
  if (status == FA_OK && cli->backend.n == 0 && strcmp(cli->command, "repro") != 0)
    status = fa_choose_default(cli->backends, cli->quiet, &s->choice[s->n_choices++], &err);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  if (s->shard.source && strcmp(s->shard.source, "--shard") != 0 && !cli->quiet)
    fprintf(stderr, "shard: %lld of %lld (%s)\n", (long long)s->shard.index, (long long)s->shard.total,
            s->shard.source);
  return 0;
}

void fa_session_free(fa_session *s) {
  for (int b = 0; b < s->n_choices; ++b) /* --no-isolate; workers just end */
    if (s->opened[b]) s->choice[b].backend->close(s->self[b]);
  free(s->item);
  fa_report_free(&s->report);
}

fa_status fa_session_add_item(fa_session *s, int64_t case_index, int backend, uint64_t schedule_seed) {
  if ((s->n_items & (s->n_items + 1)) == 0) { /* full at 1, 3, 7, ...: room for twice as many */
    fa_item *bigger = realloc(s->item, (size_t)(2 * s->n_items + 1) * sizeof *bigger);
    if (!bigger) return FA_ERR_MEMORY;
    s->item = bigger;
  }
  s->item[s->n_items++] = (fa_item){case_index, backend, schedule_seed};
  return FA_OK;
}

fa_status fa_session_select(fa_session *s, int64_t n, fa_error *err) {
  regex_t filter;
  bool has_filter;
  fa_status status = fa_filter_compile(s->cli, &filter, &has_filter, err);
  for (int b = 0; status == FA_OK && b < s->n_choices; ++b) {
    for (int64_t i = s->shard.index; status == FA_OK && i < n; i += s->shard.total) {
      bool wanted = true;
      if (has_filter) {
        fa_case c;
        status = fa_source_get(&s->source, i, &c, err);
        if (status != FA_OK) break;
        wanted = regexec(&filter, c.name, 0, NULL, 0) == 0;
        fa_case_free(&c);
      }
      if (wanted) status = fa_session_add_item(s, i, b, s->cli->schedule_seed);
      if (status == FA_ERR_MEMORY) fa_fail(err, status, "out of memory");
    }
  }
  if (has_filter) regfree(&filter);
  return status;
}

/* ---- called by the pool ---- */

static fa_item item_at(const fa_session *s, int64_t i) {
  if (s->item) return s->item[i];
  return (fa_item){s->shard.index + i / s->n_choices * s->shard.total, (int)(i % s->n_choices),
                   s->cli->schedule_seed};
}

static bool next_item(void *ctx, int64_t *item) {
  fa_session *s = ctx;
  if (s->give_up) return false;
  if (s->item || s->deadline == 0) {
    if (s->next_item >= s->n_items) return false;
  } else if (fa_seconds_now() >= s->deadline) {
    return false;
  }
  *item = s->next_item++;
  return true;
}

static void set_case(fa_result *r, const fa_case *c, int64_t index) {
  char number[40];
  snprintf(number, sizeof number, "#%lld", (long long)index);
  free(r->name);
  r->name = strdup(c->name[0] ? c->name : number);
  if (!r->case_line) r->case_line = fa_case_to_line(c);
}

static void set_error(fa_result *r, const fa_error *err) {
  r->state = FA_ERROR;
  snprintf(r->reason, sizeof r->reason, "%s", err->text);
}

static void run_item(void *ctx, int64_t number, fa_result *out) {
  fa_session *s = ctx;
  fa_item item = item_at(s, number);
  const fa_choice *choice = &s->choice[item.backend];
  fa_error err = {""};
  fa_case c;
  if (fa_source_get(&s->source, item.case_index, &c, &err) != FA_OK) {
    set_error(out, &err);
  } else {
    if (!s->opened[item.backend]) {
      if (choice->backend->open(choice->arg, &s->self[item.backend], &err) == FA_OK)
        s->opened[item.backend] = true;
    }
    if (s->opened[item.backend]) {
      fa_run_config config = {.backend = choice->backend,
                              .backend_self = s->self[item.backend],
                              .n_threads = s->n_threads,
                              .schedule_seed = item.schedule_seed,
                              .end_to_end = s->cli->end_to_end,
                              .keep_dir = s->cli->keep};
      if (fa_run_case(&c, &config, out, &err) != FA_OK) set_error(out, &err);
    } else {
      set_error(out, &err);
    }
    set_case(out, &c, item.case_index);
    fa_case_free(&c);
  }
  out->schedule_seed = item.schedule_seed;
  snprintf(out->backend, sizeof out->backend, "%s", choice->spec);
}

static bool backends_are_spent(void *ctx) {
  fa_session *s = ctx;
  for (int b = 0; b < s->n_choices; ++b) {
    const fa_backend *backend = s->choice[b].backend;
    if (s->opened[b] && backend->spent && backend->spent(s->self[b])) return true;
  }
  return false;
}

static void identify_item(void *ctx, int64_t number, fa_result *out) {
  fa_session *s = ctx;
  fa_item item = item_at(s, number);
  fa_error err = {""};
  fa_case c;
  out->schedule_seed = item.schedule_seed;
  snprintf(out->backend, sizeof out->backend, "%s", s->choice[item.backend].spec);
  if (fa_source_get(&s->source, item.case_index, &c, &err) != FA_OK) return;
  set_case(out, &c, item.case_index);
  fa_case_free(&c);
}

static void write_journal(FILE *journal, const fa_result *r) {
  char *line = fa_report_journal_line(r);
  if (line) fprintf(journal, "%s\n", line);
  free(line);
  fflush(journal);
}

static bool item_done(void *ctx, int64_t number, fa_result *r) {
  (void)number;
  fa_session *s = ctx;
  fa_progress_clear(&s->progress);
  fa_line_print(stdout, r, &s->style);
  fflush(stdout);
  if (s->journal) write_journal(s->journal, r);
  fa_status status = fa_report_add(&s->report, r, &s->error);
  if (status != FA_OK) {
    s->status = status;
    s->give_up = true;
  }
  if (s->cli->fail_fast && fa_state_is_failure(r->state)) s->give_up = true;
  return !s->give_up;
}

static void tick(void *ctx) {
  fa_session *s = ctx;
  fa_progress_show(&s->progress, &s->report.summary);
}

/* OUT.json.journal: what is done so far. It goes away when the report itself is written. */
static void journal_path(const fa_session *s, char *path, size_t size) {
  snprintf(path, size, "%s.journal", s->cli->report);
}

static fa_status open_journal(fa_session *s, fa_error *err) {
  char path[4200];
  if (!s->cli->report) return FA_OK;
  journal_path(s, path, sizeof path);
  s->journal = fopen(path, "we");
  return s->journal ? FA_OK : fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
}

static void close_journal(fa_session *s, bool remove_it) {
  char path[4200];
  if (!s->journal) return;
  fclose(s->journal);
  journal_path(s, path, sizeof path);
  if (remove_it) unlink(path);
}

static int64_t n_processors(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? n : 1;
}

int fa_session_run(fa_session *s) {
  fa_error err = {""};
  double start = fa_seconds_now();
  int64_t jobs = s->cli->jobs ? s->cli->jobs : n_processors();
  if (jobs > 256) jobs = 256;
  if (s->item && jobs > s->n_items) jobs = s->n_items > 0 ? s->n_items : 1;
  if (s->cli->no_isolate) jobs = 1;
  s->n_threads = (int)(n_processors() > jobs ? n_processors() / jobs : 1);
  fa_status status = fa_report_start(&s->report, s->cli, s->n_choices ? &s->choice[0] : NULL, &err);
  if (status == FA_OK) status = open_journal(s, &err);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  fa_progress_init(&s->progress, !s->cli->no_progress && !s->cli->quiet, s->item ? s->n_items : -1);
  fa_pool_config pool = {.n_workers = (int)jobs,
                         .timeout_s = s->cli->timeout_s,
                         .in_process = s->cli->no_isolate,
                         .ctx = s,
                         .next = next_item,
                         .run = run_item,
                         .spent = backends_are_spent,
                         .identify = identify_item,
                         .done = item_done,
                         .tick = tick};
  int interrupted = 0;
  status = fa_pool_run(&pool, &interrupted, &err);
  fa_progress_clear(&s->progress);
  if (status == FA_OK && s->status != FA_OK) {
    status = s->status;
    err = s->error;
  }
  if (status != FA_OK) fa_cli_fail(status, &err);
  if (interrupted)
    fprintf(stderr, "fa-verify: interrupted after %lld cases\n", (long long)s->report.summary.total);
  int code = fa_report_finish(&s->report, s->cli, &s->style, fa_seconds_now() - start, interrupted);
  close_journal(s, status == FA_OK && code != FA_EXIT_INFRASTRUCTURE);
  return status != FA_OK ? FA_EXIT_INFRASTRUCTURE : code;
}
