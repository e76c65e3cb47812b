/* What --version prints: a line for the program, which scripts read, then one for each interface and format. */
#include "fuzz/options/version.h"

#include "cases/codec/file.h"
#include "fuzz/campaign/resume.h"
#include "fuzz/campaign/waivers.h"
#include "fuzz/cli/commands.h"
#include "gpu/contract/hello.h"
#include "gpu/plugin.h"
#include "report/json.h"
#include "report/score/document.h"

typedef struct interface {
  const char *name;
  int newest, oldest; /* what is written or preferred, and the first that is still understood */
} interface;

static const interface interfaces[] = {
    {"plugin interface", FA_PLUGIN_VERSION, 1},
    {"exec protocol", FA_HELLO_VERSION, 1},
    {"case file", FA_CASES_VERSION, 1},
    {"report", FA_REPORT_VERSION, 1},
    {"score", FA_SCORE_VERSION, 1},
    {"journal", FA_JOURNAL_VERSION, 1},
    {"waivers", FA_WAIVERS_VERSION, 1},
};

void fa_cli_print_version(FILE *out) {
  fprintf(out, "fa-verify %s (%s)\n", fa_version(), fa_git_revision());
  for (size_t i = 0; i < sizeof interfaces / sizeof *interfaces; ++i) {
    const interface *x = &interfaces[i];
    fprintf(out, "%s %d", x->name, x->newest);
    if (x->oldest < x->newest) fprintf(out, ", and from %d on", x->oldest);
    fputc('\n', out);
  }
}
