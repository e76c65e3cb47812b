/* The rows of the tables: every example is a command line that this program takes, for the command under which it stands,
 * and names case files that there are; names, letters and kinds are as parsing and completions need them. */
#include "fuzz/options/choices.h"
#include "gpu/backend.h"
#include "tests/support/check.h"

#include <string.h>
#include <unistd.h>
#include <wordexp.h>

/* Whether a file of the folder cases/ has this name. */
static bool is_case_file(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "cases/%s.json", name);
  return strchr(name, '/') || strchr(name, '.') || access(path, R_OK) == 0;
}

/* Why the example is wrong; "" if it is right. What stands behind > and | is the shell's. */
static const char *fault_of(const char *command, const char *example) {
  char text[512];
  wordexp_t w;
  snprintf(text, sizeof text, "%s", example);
  if (strstr(text, " >")) *strstr(text, " >") = 0;
  if (strstr(text, " | ")) *strstr(text, " | ") = 0;
  if (wordexp(text, &w, WRDE_NOCMD | WRDE_UNDEF) != 0) return "no shell would take it";
  const char *fault = "";
  fa_cli cli = {.backends = fa_backends};
  if (strcmp(w.we_wordv[0], "fa-verify") != 0)
    fault = "it does not begin with fa-verify";
  else if (fa_cli_parse(&cli, (int)w.we_wordc, w.we_wordv) != 0)
    fault = "it is refused";
  else if (strcmp(command, "help") != 0 && strcmp(cli.command, command) != 0)
    fault = "it is another command";
  for (int i = 0; i < cli.cases.n && !*fault; ++i)
    if (!is_case_file(cli.cases.v[i])) fault = "there is no such case file";
  fa_cli_free(&cli);
  wordfree(&w);
  return fault;
}

static void test_examples(void) {
  for (int i = 0; i < fa_n_commands; ++i) {
    const fa_command_row *c = &fa_commands[i];
    int n = 0;
    for (; n < FA_MAX_EXAMPLES && c->examples[n].command; ++n) {
      const char *fault = fault_of(c->name, c->examples[n].command);
      CHECK_MSG(!*fault, "%s: %s", c->examples[n].command, fault);
      CHECK_MSG(c->examples[n].shows, "%s", c->examples[n].command);
    }
    CHECK_MSG(n >= (c->bit == FA_ON_ABOUT ? 1 : 2), "%s has %d examples", c->name, n);
  }
}

/* The check itself can fail. */
static void test_faulty_examples(void) {
  CHECK(strcmp(fault_of("run", "fa-verify run --cases causal --fliter x"), "it is refused") == 0);
  CHECK(strcmp(fault_of("run", "fa-verify run --cases causal --count 3"), "it is refused") == 0);
  CHECK(strcmp(fault_of("random", "fa-verify random --count 3 --profile cuasal"), "it is refused") == 0);
  CHECK(strcmp(fault_of("random", "fa-verify --cases causal"), "it is another command") == 0);
  CHECK(strcmp(fault_of("run", "fa-verify --cases cuasal"), "there is no such case file") == 0);
  CHECK(strcmp(fault_of("run", "fa-verify run --case '{"), "no shell would take it") == 0);
  CHECK(strcmp(fault_of("run", "verify --cases causal"), "it does not begin with fa-verify") == 0);
}

static void test_options(void) {
  for (int i = 0; i < fa_n_options; ++i) {
    const fa_option_row *o = &fa_options[i];
    fa_choices choices;
    fa_choices_of(o->value, o->argument, fa_backends, &choices);
    CHECK_MSG((o->kind == FA_KIND_FLAG) == !o->argument, "--%s", o->name);
    CHECK_MSG(o->value != FA_VALUE_ONE_OF || choices.n > 0, "--%s", o->name);
    CHECK_MSG(o->commands && o->theme < FA_N_THEMES && *o->does, "--%s", o->name);
    for (int k = 0; k < i; ++k) {
      CHECK_MSG(strcmp(o->name, fa_options[k].name) != 0, "--%s", o->name);
      CHECK_MSG(!o->letter || o->letter != fa_options[k].letter, "-%c", o->letter);
      CHECK_MSG(o->offset != fa_options[k].offset, "--%s and --%s set one member", o->name,
                fa_options[k].name);
      CHECK_MSG(o->theme >= fa_options[k].theme, "--%s stands among other themes", o->name);
    }
  }
}

static void test_commands(void) {
  fa_choices choices;
  fa_choices_of(FA_VALUE_ONE_OF, fa_command_find("help")->words[0].one_of, fa_backends, &choices);
  CHECK(choices.n == fa_n_commands); /* help's list has them all */
  for (int i = 0; i < fa_n_commands; ++i) {
    CHECK_MSG(fa_command_find(choices.v[i].name), "%s", choices.v[i].name);
    CHECK_MSG(fa_commands[i].forms[0] && *fa_commands[i].about && *fa_commands[i].does, "%s",
              fa_commands[i].name);
    for (int k = 0; k < i; ++k) CHECK(strcmp(fa_commands[i].name, fa_commands[k].name) != 0);
  }
}

static void test_choices(void) {
  fa_choices choices;
  fa_choices_of(FA_VALUE_ANY, "all|N%|FILE", fa_backends, &choices);
  CHECK(choices.n == 1 && strcmp(choices.v[0].name, "all") == 0 && !choices.is_all);
  fa_choices_of(FA_VALUE_ONE_OF, "auto|always|never", fa_backends, &choices);
  CHECK(choices.n == 3 && choices.is_all);
  CHECK(strcmp(fa_choices_nearest(&choices, "alwys"), "always") == 0);
  CHECK(!fa_choices_nearest(&choices, "x"));
  CHECK(fa_choices_check(&choices, "--color", "never") == 0);
  CHECK(fa_choices_check(&choices, "--color", "Never") == FA_EXIT_USAGE);
}

int main(void) {
  test_examples();
  test_faulty_examples();
  test_options();
  test_commands();
  test_choices();
  return check_done();
}
