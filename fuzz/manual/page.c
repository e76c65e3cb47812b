/* fa-verify(1). */
#include "fuzz/manual/parts.h"
#include "fuzz/manual/print.h"
#include "fuzz/manual/roff.h"
#include "fuzz/options/choices.h"
#include "fuzz/options/version.h"

#include <ctype.h>
#include <string.h>

/* A sentence of a row's line: with a capital letter and a full stop. */
static void put_sentence(FILE *out, const char *text) {
  char sentence[1024];
  const size_t n = strlen(text);
  snprintf(sentence, sizeof sentence, "%s%s", text, n && text[n - 1] != '.' ? "." : "");
  const size_t word = strcspn(sentence, " :=,;.");
  bool is_name = false; /* such as fa-verify, and what is written with small letters alone must stay so */
  for (size_t i = 0; i < word; ++i) is_name |= !islower((unsigned char)sentence[i]);
  if (!is_name) sentence[0] = (char)toupper((unsigned char)sentence[0]);
  fa_roff_prose(out, sentence);
}

static void put_head(FILE *out) {
  fprintf(out,
          ".TH FA\\-VERIFY 1 %s \"fa\\-verify %s\" \"User Commands\"\n"
          ".nh\n.ad l\n" /* no hyphens in commands, no blanks between words */
          ".SH NAME\nfa\\-verify \\- judge attention kernels against a float64 reference\n"
          ".SH SYNOPSIS\n.nf\n",
          fa_version_date(), fa_version());
  fa_roff_usage(out, "fa-verify --cases FILE... [OPTION...]");
  for (int i = 0; i < fa_n_commands; ++i)
    for (int k = 0; k < FA_MAX_FORMS && fa_commands[i].forms[k]; ++k) {
      char usage[256];
      snprintf(usage, sizeof usage, "fa-verify %s %s", fa_commands[i].name, fa_commands[i].forms[k]);
      fa_roff_usage(out, usage);
    }
  fputs(".fi\n.SH DESCRIPTION\n", out);
  fa_roff_prose(
      out,
      "fa-verify runs attention kernels on cases, and compares each element of their outputs and gradients "
      "with what a reference computes in float64. An element is wrong if its error is above a bound that "
      "is derived for this element: what rounding in the kernel's own arithmetic can amount to.");
  fputs(".PP\n", out);
  fa_roff_prose(
      out, "Results go to stdout, a line for each case and five more for a failure, the last of which is a "
           "command that runs the case again; the counts come last. Progress and diagnostics go to stderr.");
  fputs(".PP\n", out);
  fa_roff_prose(
      out, "FILE is the path of a case file, or the name of an installed one, such as causal; - is stdin.");
}

static void put_commands(FILE *out) {
  fputs(".SH COMMANDS\n", out);
  for (int i = 0; i < fa_n_commands; ++i) {
    const fa_command_row *c = &fa_commands[i];
    fputs(".TP\n", out);
    char usage[256];
    snprintf(usage, sizeof usage, "%s %s", c->name, c->brief);
    fa_roff_usage(out, usage);
    fa_roff_prose(out, c->about);
    if (!c->exit_codes) continue;
    fputs(".IP\nExit status:\n", out);
    fa_roff_prose(out, c->exit_codes);
  }
}

/* "For run, random and repro." */
static void put_takers(FILE *out, const fa_option_row *o) {
  const char *name[32];
  char text[512] = "For ";
  int n = 0;
  if ((o->commands & FA_ON_ALL) == FA_ON_ALL) return;
  for (int i = 0; i < fa_n_commands; ++i)
    if (fa_commands[i].bit & o->commands) name[n++] = fa_commands[i].name;
  for (int i = 0; i < n; ++i) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", i == 0 ? "" : i == n - 1 ? " and " : ", ", name[i]);
  }
  strcat(text, ".");
  fa_roff_prose(out, text);
}

/* The profiles, laws and layers, which the option's line does not name. */
static void put_choices(FILE *out, const fa_option_row *o, const fa_backend *const *backends) {
  fa_choices choices;
  char text[1024] = "There are: ";
  if (o->value != FA_VALUE_PROFILE && o->value != FA_VALUE_LAW && o->value != FA_VALUE_LAYER) return;
  fa_choices_of(o->value, o->argument, backends, &choices);
  for (int i = 0; i < choices.n; ++i) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", choices.v[i].name, i + 1 < choices.n ? ", " : ".");
  }
  fa_roff_prose(out, text);
}

static void put_option(FILE *out, const fa_option_row *o, const fa_backend *const *backends) {
  char usage[128];
  snprintf(usage, sizeof usage, "%s%c%s--%s%s%s", o->letter ? "-" : "", o->letter ? o->letter : ' ',
           o->letter ? ", " : "", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
  fputs(".TP\n", out);
  fa_roff_usage(out, usage + (o->letter ? 0 : 1));
  put_sentence(out, o->does);
  put_choices(out, o, backends);
  put_takers(out, o);
}

static void put_options(FILE *out, const fa_backend *const *backends) {
  fputs(".SH OPTIONS\n", out);
  fa_roff_prose(
      out, "A value may follow as the next word or behind =. An option that means nothing to a command is "
           "refused. Behind -- nothing is an option.");
  for (int theme = 0; theme < FA_N_THEMES; ++theme) {
    const char *title = fa_theme_title((fa_theme)theme);
    fprintf(out, ".SS %c%s\n", toupper((unsigned char)title[0]), title + 1);
    for (int i = 0; i < fa_n_options; ++i)
      if ((int)fa_options[i].theme == theme) put_option(out, &fa_options[i], backends);
  }
}

static void put_backends(FILE *out, const fa_backend *const *backends) {
  fputs(".SH BACKENDS\n", out);
  fa_roff_prose(
      out, "What --backend NAME may be in this build; fa-verify list backends says which are usable here. "
           "What a backend cannot do is skipped, with the reason.");
  for (int i = 0; backends[i]; ++i) {
    const char *what = backends[i]->what;
    const bool says_form =
        *fa_script_colon(FA_VALUE_BACKEND, backends[i]->name, what); /* "py:NAME, an adapter" */
    const char *rest = says_form ? strstr(what, ", ") : NULL;
    char form[128];
    snprintf(form, sizeof form, "%.*s", rest ? (int)(rest - what) : (int)sizeof form - 1,
             rest ? what : backends[i]->name);
    fputs(".TP\n", out);
    fa_roff_usage(out, form);
    put_sentence(out, rest ? rest + 2 : what);
  }
}

static void put_examples(FILE *out) {
  fputs(".SH EXAMPLES\n", out);
  for (int i = 0; i < fa_n_commands; ++i)
    for (int k = 0; k < FA_MAX_EXAMPLES && fa_commands[i].examples[k].command; ++k) {
      fputs(".TP\n", out);
      fa_roff_command(out, fa_commands[i].examples[k].command);
      put_sentence(out, fa_commands[i].examples[k].shows);
    }
}

static void put_facts(FILE *out, const char *title, const fa_fact *facts) {
  fprintf(out, ".SH %s\n", title);
  for (const fa_fact *f = facts; f->name; ++f) {
    fputs(".TP\n", out);
    fa_roff_command(out, f->name);
    put_sentence(out, f->means);
  }
}

void fa_manual_page(const fa_backend *const *backends, FILE *out) {
  put_head(out);
  put_commands(out);
  put_options(out, backends);
  put_backends(out, backends);
  put_examples(out);
  put_facts(out, "EXIT STATUS", fa_exit_codes);
  put_facts(out, "ENVIRONMENT", fa_environment);
  put_facts(out, "FILES", fa_files);
  fputs(".SH SEE ALSO\n", out);
  fa_roff_prose(out,
                "PREFIX/share/doc/fa-verify/, which has all pages: guide/first-verdict.md to begin with, "
                "guide/reading-a-failure.md, reference/command-line.md.");
}
