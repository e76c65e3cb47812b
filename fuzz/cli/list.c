/* list: what this build and this machine offer. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "cases/vocabulary/fill.h"
#include "fuzz/cli/commands.h"
#include "fuzz/explain/hypothesis.h"
#include "fuzz/generate/draw.h"
#include "fuzz/options/case_files.h"
#include "fuzz/options/cases_select.h"
#include "fuzz/options/choose_backend.h"
#include "fuzz/options/filter.h"
#include "gpu/backends/mutant.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void list_backends(const fa_cli *cli) {
  for (int i = 0; cli->backends[i]; ++i) {
    fa_backend_info info;
    fa_backend_probe(cli->backends[i], NULL, &info, NULL);
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
           info->bias_only    ? " (bias only)"
           : info->do_only    ? " (do only)"
           : info->lse_only   ? " (lse_parts only)"
           : info->sinks_only ? " (sinks only)"
                              : "");
  }
}

static void list_hypotheses(void) {
  for (const fa_hypothesis *const *table = fa_hypotheses; *table; ++table)
    for (const fa_hypothesis *h = *table; h->name; ++h) {
      char tensors[64];
      fa_hypothesis_tensors(h, tensors, sizeof tensors);
      printf("%-28s %-12s %s\n", h->name, tensors, h->what);
    }
}

/* A line per mutant, as written by the build (tests/mutants/CMakeLists.txt). */
static void list_mutants(void) {
  char folder[4096], path[4096 + 100], *line = NULL;
  size_t size = 0;
  fa_mutant_folder(folder, sizeof folder);
  snprintf(path, sizeof path, "%s/list.tsv", folder);
  FILE *list = fopen(path, "re");
  if (!list) {
    printf("no mutants: there is no %s; the folder of a build has them, an installed program has none\n",
           path);
    return;
  }
  while (getline(&line, &size, list) > 0) {
    char *rest = line;
    line[strcspn(line, "\n")] = 0;
    const char *name = strsep(&rest, "\t"), *class = strsep(&rest, "\t"), *stands_for = strsep(&rest, "\t");
    if (!rest) continue; /* not in our format */
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    printf("%-39s %-11s %-26s %s%s\n", name, class, stands_for, rest,
           access(path, R_OK) == 0 ? "" : " (not built)");
  }
  free(line);
  fclose(list);
}

static fa_status count_cases(const char *path, int64_t *n, fa_error *err) {
  fa_case_list list = {0};
  const fa_status status = fa_case_file_load(path, fa_generate, &list, err);
  *n = list.n;
  fa_case_list_free(&list);
  return status;
}

/* The files that --cases takes by their names. */
static int list_case_files(void) {
  fa_error err = {""};
  fa_case_files files;
  fa_status status = fa_case_files_list(&files, &err);
  if (status == FA_OK && files.n == 0)
    puts("no case files came with this program: --cases needs their paths");
  for (int i = 0; status == FA_OK && i < files.n; ++i) {
    char name[256];
    int64_t n = 0;
    fa_case_files_name(files.path[i], name, sizeof name);
    status = count_cases(files.path[i], &n, &err);
    if (status == FA_OK) printf("%-16s %6lld cases  %s\n", name, (long long)n, files.path[i]);
  }
  fa_case_files_free(&files);
  return status == FA_OK ? 0 : fa_cli_fail(status, &err);
}

/* A line of JSON for each case of the files, sweeps written out: for programs that run cases one by one. */
static int list_cases(const fa_cli *cli) {
  fa_error err = {""};
  fa_case_list list = {0};
  fa_filter filter;
  if (cli->cases.n == 0 && cli->case_text.n == 0) {
    if (cli->filter) return fa_cli_usage_error("list cases: --filter is for the cases of --cases");
    return list_case_files();
  }
  fa_status status = fa_filter_compile(cli, &filter, &err);
  if (status == FA_OK) status = fa_cli_load_cases(cli, &list, NULL, &err);
  for (int64_t i = 0; status == FA_OK && i < list.n; ++i) {
    if (!fa_filter_passes(&filter, list.v[i].name)) continue;
    char *line = fa_case_to_line(&list.v[i]);
    if (line)
      puts(line);
    else
      status = fa_fail(&err, FA_ERR_MEMORY, "out of memory");
    free(line);
  }
  if (status == FA_OK) fa_filter_report(&filter, list.n, 1);
  fa_filter_free(&filter);
  fa_case_list_free(&list);
  return status == FA_OK ? 0 : fa_cli_fail(status, &err);
}

int fa_command_list(const fa_cli *cli) {
  const char *what = cli->words.n == 1 ? cli->words.v[0] : "";
  const bool selects = cli->cases.n || cli->case_text.n || cli->filter;
  if (*what && strcmp(what, "cases") != 0 && selects)
    return fa_cli_usage_error("list %s: --cases, --case and --filter are for list cases", what);
  if (strcmp(what, "backends") == 0)
    list_backends(cli);
  else if (strcmp(what, "profiles") == 0)
    list_profiles();
  else if (strcmp(what, "fills") == 0)
    list_fills();
  else if (strcmp(what, "hypotheses") == 0)
    list_hypotheses();
  else if (strcmp(what, "mutants") == 0)
    list_mutants();
  else if (strcmp(what, "cases") == 0)
    return list_cases(cli);
  else
    return fa_cli_usage_error("list: one of backends, profiles, fills, hypotheses, mutants, cases is needed");
  return 0;
}
