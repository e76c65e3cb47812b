/* --help: all commands, or one with its options. */
#include "fuzz/options/parts.h"

#include <string.h>

enum { WIDTH = 80, OPTION_COLUMN = 28, COMMAND_COLUMN = 30 };

/* Prints the text in lines that begin at a column. at: where the first one stands already. */
static void print_wrapped(FILE *out, const char *text, int column, int at) {
  for (const char *word = text + strspn(text, " "); *word; word += strspn(word, " ")) {
    const int n = (int)strcspn(word, " ");
    if (at > column && at + 1 + n > WIDTH) {
      fputc('\n', out);
      at = 0;
    }
    if (at < column)
      at += fprintf(out, "%*s", column - at, "");
    else if (at > column)
      at += fprintf(out, " ");
    at += fprintf(out, "%.*s", n, word);
    word += n;
  }
  fputc('\n', out);
}

/* A name and what it means; under it where the name is long. */
static void print_row(FILE *out, const char *name, const char *means, int column) {
  int at = fprintf(out, "  %s", name);
  if (at + 2 > column) {
    fputc('\n', out);
    at = 0;
  }
  print_wrapped(out, means, column, at);
}

static void print_option(FILE *out, const fa_option_row *o) {
  char name[64];
  snprintf(name, sizeof name, "%s%c%s--%s%s%s", o->letter ? "-" : "", o->letter ? o->letter : ' ',
           o->letter ? ", " : "   ", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
  print_row(out, name, o->does, OPTION_COLUMN);
}

static void print_options(FILE *out, unsigned bit) {
  for (int theme = 0; theme < FA_N_THEMES; ++theme) {
    bool has_title = false;
    for (int i = 0; i < fa_n_options; ++i) {
      if ((int)fa_options[i].theme != theme || !(fa_options[i].commands & bit)) continue;
      if (!has_title) fprintf(out, "\n%s:\n", fa_theme_title((fa_theme)theme));
      has_title = true;
      print_option(out, &fa_options[i]);
    }
  }
}

static void print_command(FILE *out, const fa_command_row *c) {
  for (int i = 0; i < FA_MAX_FORMS && c->forms[i]; ++i)
    fprintf(out, "%s fa-verify %s%s%s\n", i ? "      " : "usage:", c->name, *c->forms[i] ? " " : "",
            c->forms[i]);
  fputc('\n', out);
  print_wrapped(out, c->about, 0, 0);
  print_options(out, c->bit);
  fputs("\nexamples:\n", out);
  for (int i = 0; i < FA_MAX_EXAMPLES && c->examples[i].command; ++i) {
    fprintf(out, "  %s\n", c->examples[i].command);
    print_wrapped(out, c->examples[i].shows, 6, 0);
  }
  if (!c->exit_codes) return;
  fputs("\nexit codes:\n", out);
  print_wrapped(out, c->exit_codes, 2, 0);
}

static void print_overview(FILE *out) {
  fputs("fa-verify: judges attention kernels against a float64 reference, element by element.\n\n"
        "usage: fa-verify COMMAND [OPTION...]\n"
        "       fa-verify --cases FILE...       short for: fa-verify run --cases FILE...\n\n"
        "commands:\n",
        out);
  for (int i = 0; i < fa_n_commands; ++i) {
    char name[64];
    snprintf(name, sizeof name, "%s %s", fa_commands[i].name, fa_commands[i].brief);
    print_row(out, name, fa_commands[i].does, COMMAND_COLUMN);
  }
  fputs("\nfa-verify COMMAND --help prints the command's options and examples. The whole\n"
        "manual: man fa-verify, or fa-verify man | man -l -\n\noptions of every command:\n",
        out);
  for (int i = 0; i < fa_n_options; ++i)
    if ((fa_options[i].commands & FA_ON_ALL) == FA_ON_ALL) print_option(out, &fa_options[i]);
  char codes[1024] = "Exit codes:";
  for (const fa_fact *f = fa_exit_codes; f->name; ++f) {
    const size_t n = strlen(codes);
    snprintf(codes + n, sizeof codes - n, " %s %s%s", f->name, f->means, f[1].name ? ";" : ".");
  }
  fputc('\n', out);
  print_wrapped(out, codes, 0, 0);
}

void fa_cli_print_help(const fa_cli *cli, FILE *out) {
  const fa_command_row *row = cli->command ? fa_command_find(cli->command) : NULL;
  if (row)
    print_command(out, row);
  else
    print_overview(out);
}
