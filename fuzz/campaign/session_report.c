/* Common to all judging commands: the report's header, the style of the lines, the summary line. */
#include "fuzz/campaign/session.h"

#include "cases/threads/processors.h"
#include "fuzz/coverage/words.h"
#include "fuzz/options/version.h"
#include "fuzz/untrusted/mode.h"
#include "gpu/contract/claims.h"
#include "ref/math/blas.h"
#include "report/ci/annotations.h"
#include "report/claims.h"
#include "report/html/page.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void read_cpu_model(char *text, size_t size) {
  char line[512];
  snprintf(text, size, "unknown");
  FILE *f = fopen("/proc/cpuinfo", "r");
  while (f && fgets(line, sizeof line, f)) {
    if (strncmp(line, "model name", 10) != 0) continue;
    const char *colon = strchr(line, ':');
    if (!colon) continue;
    snprintf(text, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
    text[strcspn(text, "\n")] = 0;
    break;
  }
  if (f) fclose(f);
}

static char *command_line(const fa_cli *cli) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  if (!out) return NULL;
  for (int i = 0; i < cli->argc; ++i) {
    if (i) fputc(' ', out);
    fa_print_shell_word(out, cli->argv[i]);
  }
  fclose(out);
  return text;
}

static fa_status read_required(fa_report *r, const char *text, fa_error *err) {
  r->require = calloc(1, sizeof *r->require);
  if (!r->require) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  return fa_require_read(text, fa_word_at, r->require, err);
}

fa_status fa_report_start(fa_report *r, const fa_cli *cli, const fa_choice *choice, fa_error *err) {
  char cpu[256], cores[32], system[512] = "", fills[2048] = "";
  struct utsname u;
  read_cpu_model(cpu, sizeof cpu);
  snprintf(cores, sizeof cores, "%d", fa_processors());
  if (uname(&u) == 0) snprintf(system, sizeof system, "%s %s %s", u.sysname, u.release, u.machine);
  for (int f = 0; f < FA_N_FILLS; ++f) {
    size_t n = strlen(fills);
    snprintf(fills + n, sizeof fills - n, "%s%s", f ? " " : "", fa_fill_describe((fa_fill)f)->name);
  }
  const fa_report_pair host[] = {{"cpu", cpu},
                                 {"processors", cores},
                                 {"system", system},
                                 {"compiler", COMPILER},
                                 {"blas_core", fa_blas_core()},
                                 {"fills", fills},
                                 {NULL, NULL}};
  char *command = command_line(cli);
  fa_report_head head = {.version = fa_version(),
                         .git = fa_git_revision(),
                         .command = command ? command : "",
                         .backend_name = choice ? choice->spec : "recorded",
                         .backend_device = choice ? choice->info.device : "",
                         .backend_driver = choice ? choice->info.driver : "",
                         .host = host};
  fa_status status = fa_report_init(r, &head, err);
  free(command);
  return status == FA_OK && cli->require ? read_required(r, cli->require, err) : status;
}

int fa_report_conclude_required(const fa_report *r, int64_t n_cases, int code) {
  if (!r->require || n_cases == 0 || fa_require_unmet(r->require) == 0) return code;
  fa_require_print(r->require, stderr);
  return code == FA_EXIT_PASSED || code == FA_EXIT_NOTHING_JUDGED ? FA_EXIT_MISMATCH : code;
}

void fa_line_style_from_cli(fa_line_style *style, const fa_cli *cli) {
  const char *color = cli->color ? cli->color : "auto";
  *style = (fa_line_style){.program = cli->program,
                           .verbosity = cli->quiet     ? -1
                                        : cli->verbose ? 1
                                                       : 0,
                           .unasked = cli->no_explain};
  style->color = strcmp(color, "always") == 0 ||
                 (strcmp(color, "auto") == 0 && isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
}

/* --report and --html. */
static fa_status write_files(fa_report *r, const fa_cli *cli, double seconds, fa_error *err) {
  fa_status status = FA_OK;
  if (cli->report)
    status = fa_report_write(r, cli->report, seconds, err);
  else if (cli->html)
    status = fa_report_complete(r, NULL, seconds, err);
  return status == FA_OK && cli->html ? fa_page_write_run(r, cli->html, err) : status;
}

fa_status fa_report_open_baseline(const fa_cli *cli, const fa_choice *choice, int n, fa_baseline **out,
                                  fa_error *err) {
  const fa_baseline_run run = {.version = fa_version(),
                               .backend = choice ? choice->spec : "recorded",
                               .device = choice ? choice->info.device : "",
                               .one_backend = n <= 1};
  *out = NULL;
  if (cli->slower && !cli->baseline)
    return fa_fail(err, FA_ERR_INPUT, "--slower needs --baseline REPORT.json");
  fa_status status = cli->annotations ? fa_annotations_check(cli->annotations, err) : FA_OK;
  if (status != FA_OK || !cli->baseline) return status;
  return fa_baseline_load(cli->baseline, cli->slower, &run, stderr, out, err);
}

void fa_report_add_sources(fa_report *r, const fa_choice *choice, int n) {
  cJSON *all = NULL;
  for (int b = 0; b < n; ++b) {
    if (!choice[b].info.source[0]) continue;
    if (!all) all = cJSON_AddObjectToObject(r->root, "sources");
    cJSON_DeleteItemFromObjectCaseSensitive(all, choice[b].spec);
    cJSON_AddStringToObject(all, choice[b].spec, choice[b].info.source);
  }
}

void fa_report_add_contracts(fa_report *r, const fa_choice *choice, int n) {
  cJSON *all = NULL;
  for (int b = 0; b < n; ++b) {
    if (!choice[b].said.greeted) continue;
    if (!all) all = cJSON_AddObjectToObject(r->root, "contracts");
    cJSON_DeleteItemFromObjectCaseSensitive(all, choice[b].spec);
    cJSON_AddItemToObject(all, choice[b].spec, fa_hello_claims(&choice[b].said.hello));
  }
}

void fa_report_add_walls(fa_report *r, const fa_choice *choice, int n) {
  for (int b = 0; b < n; ++b) {
    if (!choice[b].untrusted) continue;
    cJSON *all = cJSON_GetObjectItemCaseSensitive(r->root, "untrusted");
    if (!all) all = cJSON_AddObjectToObject(r->root, "untrusted");
    cJSON_DeleteItemFromObjectCaseSensitive(all, "wall");
    cJSON_AddStringToObject(all, "wall", choice[b].info.wall);
    fa_terms_add_to_report(&choice[b].terms, all);
  }
}

/* Groups, requirements and the baseline: what is said of all results together. */
static void add_conclusions(fa_report *r, fa_causes *causes, const fa_baseline *baseline, const fa_cli *cli) {
  fa_error err;
  const fa_status grouped = fa_report_find_causes(r, causes, cli, &err);
  if (grouped != FA_OK) fa_cli_fail(grouped, &err); /* the results are there without it */
  if (r->require) cJSON_AddItemToObject(r->root, "require", fa_require_to_json(r->require));
  if (!baseline) return;
  fa_baseline_print(stdout, baseline, cli->verbose);
  cJSON_AddItemToObject(r->root, "baseline", fa_baseline_to_json(baseline));
}

static void annotate(fa_report *r, const fa_cli *cli, double seconds) {
  fa_error err;
  fa_status status = fa_report_complete(r, cli->report, seconds, &err);
  if (status == FA_OK) status = fa_annotations_write(stdout, r->root, &err);
  if (status != FA_OK) fa_cli_fail(status, &err); /* the verdict does not hang on it */
}

int fa_report_finish(fa_report *r, fa_causes *causes, const fa_baseline *baseline, const fa_cli *cli,
                     const fa_line_style *style, double seconds, int interrupted) {
  fa_error err;
  int code = fa_summary_exit_code(&r->summary);
  add_conclusions(r, causes, baseline, cli);
  if (cli->annotations) annotate(r, cli, seconds);
  if (!cli->quiet && (cli->untrusted || fa_claims_matter(r->root))) fa_claims_print(stdout, r->root);
  fa_line_summary(stdout, &r->summary, style);
  fflush(stdout);
  if (code == FA_EXIT_NOTHING_JUDGED) fputs("fa-verify: nothing was judged\n", stderr);
  code = fa_report_conclude_required(r, r->summary.total, code);
  if (baseline && !fa_baseline_is_met(baseline) && (code == FA_EXIT_PASSED || code == FA_EXIT_NOTHING_JUDGED))
    code = FA_EXIT_MISMATCH;
  if (write_files(r, cli, seconds, &err) != FA_OK) {
    fa_cli_fail(FA_ERR_IO, &err);
    return FA_EXIT_INFRASTRUCTURE;
  }
  return interrupted ? 128 + interrupted : code;
}
