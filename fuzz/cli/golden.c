/* golden write|check DIR: stores or verifies the reference's outputs. */
#include "fuzz/one/golden.h"
#include "cases/codec/json.h"
#include "cases/tensors/safetensors.h"
#include "fuzz/campaign/session.h"
#include "fuzz/cli/commands.h"
#include "fuzz/one/dump.h"
#include "fuzz/options/filter.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FORWARD_SUFFIX ".forward.safetensors"

/* Without --cases: every case with a forward golden in the folder. */
static fa_status read_folder(const char *folder, fa_case_list *list, fa_error *err) {
  struct dirent **entry = NULL;
  int n = scandir(folder, &entry, NULL, alphasort);
  if (n < 0) return fa_fail(err, FA_ERR_INPUT, "%s: %s", folder, strerror(errno));
  fa_status status = FA_OK;
  for (int i = 0; i < n; ++i) {
    const char *name = entry[i]->d_name;
    size_t length = strlen(name), suffix = strlen(FORWARD_SUFFIX);
    if (status == FA_OK && length > suffix && strcmp(name + length - suffix, FORWARD_SUFFIX) == 0) {
      char path[4096], group[256];
      fa_safetensors f;
      fa_case c;
      snprintf(path, sizeof path, "%s/%s", folder, name);
      snprintf(group, sizeof group, "%.*s", (int)(length - suffix), name);
      status = fa_safetensors_open(path, &f, err);
      if (status == FA_OK) {
        const char *text = fa_safetensors_meta(&f, group);
        status = text ? fa_case_from_text(text, &c, err)
                      : fa_fail(err, FA_ERR_INPUT, "__metadata__ has no %s", group);
        if (status != FA_OK)
          fa_error_prefix(err, "%s", path);
        else
          status = fa_case_list_push(list, &c);
        fa_safetensors_close(&f);
      }
    }
    free(entry[i]);
  }
  free(entry);
  if (status == FA_OK && list->n == 0)
    status = fa_fail(err, FA_ERR_INPUT, "%s: no *%s in it; name cases with --cases", folder, FORWARD_SUFFIX);
  return status;
}

static fa_status load_cases(const fa_cli *cli, const char *folder, fa_case_list *list, fa_error *err) {
  if (cli->cases.n + cli->case_text.n == 0) return read_folder(folder, list, err);
  return fa_cli_load_cases(cli, list, NULL, err);
}

static void name_of(const fa_case *c, int64_t index, char *name, size_t size) {
  char number[40];
  snprintf(number, sizeof number, "case-%lld", (long long)index);
  fa_file_name_from(c->name[0] ? c->name : number, name, size);
}

/* Two cases with one file name would overwrite each other. */
static fa_status check_names(const fa_case_list *list, fa_error *err) {
  char a[128], b[128];
  for (int64_t i = 0; i < list->n; ++i) {
    name_of(&list->v[i], i, a, sizeof a);
    for (int64_t k = 0; k < i; ++k) {
      name_of(&list->v[k], k, b, sizeof b);
      if (strcmp(a, b) == 0)
        return fa_fail(err, FA_ERR_INPUT,
                       "cases %lld and %lld are both called %s; goldens need different names", (long long)k,
                       (long long)i, a);
    }
  }
  return FA_OK;
}

static fa_status do_case(const char *folder, const fa_case *c, int64_t index, bool write, fa_result *r,
                         fa_error *err) {
  char name[128];
  double start = fa_seconds_now();
  bool same = true;
  name_of(c, index, name, sizeof name);
  r->name = strdup(name);
  r->case_line = fa_case_to_line(c);
  r->passes = 1 | (c->problem.backward ? 2 : 0);
  snprintf(r->backend, sizeof r->backend, "golden");
  fa_status status = write ? fa_golden_write(folder, name, c, 0, err)
                           : fa_golden_check(folder, name, c, 0, &same, r->reason, sizeof r->reason, err);
  r->state = same ? FA_PASS : FA_FAIL;
  const bool no_value = write && status == FA_ERR_INPUT; /* an expression's, where its data are as they are */
  if (status == FA_ERR_UNSUPPORTED || no_value) {
    r->state = no_value ? FA_ERROR : FA_SKIP;
    r->malformed = no_value;
    snprintf(r->reason, sizeof r->reason, "%s", err->text);
    status = FA_OK;
  }
  snprintf(r->file, sizeof r->file, "%s", folder);
  r->seconds = fa_seconds_now() - start;
  return status;
}

static int run(const fa_cli *cli, const char *folder, const fa_case_list *list, bool write) {
  fa_filter filter;
  fa_error err = {""};
  fa_line_style style;
  fa_summary summary = {0};
  fa_result *r = malloc(sizeof *r);
  if (!r) return fa_cli_fail(FA_ERR_MEMORY, &(fa_error){"out of memory"});
  fa_line_style_from_cli(&style, cli);
  fa_status status = fa_filter_compile(cli, &filter, &err);
  for (int64_t i = 0; status == FA_OK && i < list->n; ++i) {
    if (!fa_filter_passes(&filter, list->v[i].name)) continue;
    fa_result_init(r);
    status = do_case(folder, &list->v[i], i, write, r, &err);
    if (status == FA_OK) {
      fa_summary_add(&summary, r);
      fa_line_print(stdout, r, &style);
    }
    fa_result_free(r);
  }
  free(r);
  if (status == FA_OK) fa_filter_report(&filter, list->n, 1);
  fa_filter_free(&filter);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  fa_line_summary(stdout, &summary, &style);
  return fa_summary_exit_code(&summary);
}

int fa_command_golden(const fa_cli *cli) {
  bool write = cli->words.n > 0 && strcmp(cli->words.v[0], "write") == 0;
  bool check = cli->words.n > 0 && strcmp(cli->words.v[0], "check") == 0;
  if (cli->words.n != 2 || (!write && !check))
    return fa_cli_usage_error("golden: write DIR or check DIR is needed, and --cases FILE...");
  if (write && cli->cases.n + cli->case_text.n == 0)
    return fa_cli_usage_error("golden write: --cases FILE... is needed");
  const char *folder = cli->words.v[1];
  fa_error err = {""};
  fa_case_list list = {0};
  fa_status status = load_cases(cli, folder, &list, &err);
  if (status == FA_OK) status = check_names(&list, &err);
  if (status == FA_OK && write && mkdir(folder, 0777) != 0 && errno != EEXIST)
    status = fa_fail(&err, FA_ERR_IO, "%s: %s", folder, strerror(errno));
  int code = status == FA_OK ? run(cli, folder, &list, write) : fa_cli_fail(status, &err);
  fa_case_list_free(&list);
  return code;
}
