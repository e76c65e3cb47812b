/* The lines behind complete.fish. */
#include "fuzz/manual/parts.h"

#include <string.h>

/* -a and what it may be. */
static void put_choices(FILE *out, fa_value_kind kind, const char *one_of,
                        const fa_backend *const *backends) {
  static const char *const lists[] = {
      [FA_VALUE_CASES] = "(__fa_verify_cases)",
      [FA_VALUE_JSON] = "(__fa_verify_files .json)",
      [FA_VALUE_SAFETENSORS] = "(__fa_verify_files .safetensors)",
      [FA_VALUE_FILE] = "(__fish_complete_path)",
      [FA_VALUE_FOLDER] = "(__fish_complete_directories)",
      [FA_VALUE_BACKEND] = "(__fa_verify_mutants)",
      [FA_VALUE_LAYER] = NULL,
  };
  fputs(" -a '", out);
  fa_script_words(out, kind, one_of, backends);
  fprintf(out, "%s%s'", lists[kind] ? " " : "", lists[kind] ? lists[kind] : "");
}

static void put_description(FILE *out, const char *text) {
  fputs(" -d '", out);
  for (; *text; ++text) fprintf(out, "%s%c", strchr("'\\", *text) ? "\\" : "", *text);
  fputs("'\n", out);
}

static void put_option(FILE *out, const fa_option_row *o, const fa_backend *const *backends) {
  fputs("complete -c fa-verify -n '__fa_verify_is", out);
  for (int i = 0; i < fa_n_commands; ++i)
    if (fa_commands[i].bit & o->commands) fprintf(out, " %s", fa_commands[i].name);
  fprintf(out, "' -l %s", o->name);
  if (o->letter) fprintf(out, " -s %c", o->letter);
  if (o->kind != FA_KIND_FLAG) {
    fputs(" -x", out);
    put_choices(out, o->value, o->argument, backends);
  }
  put_description(out, o->does);
}

static void put_words(FILE *out, const fa_command_row *c, const fa_backend *const *backends) {
  for (int n = 0; n < FA_MAX_WORDS && c->words[n].kind; ++n) {
    fprintf(out, "complete -c fa-verify -n '__fa_verify_place %s %d%s'", c->name, n + 1,
            c->repeats ? " more" : "");
    put_choices(out, c->words[n].kind, c->words[n].one_of, backends);
    fputc('\n', out);
  }
}

void fa_script_print_fish(const fa_backend *const *backends, FILE *out) {
  fprintf(out, "%sset -g __fa_verify_valued", fa_script_fish);
  for (int i = 0; i < fa_n_options; ++i) {
    if (fa_options[i].kind == FA_KIND_FLAG) continue;
    fprintf(out, " --%s", fa_options[i].name);
    if (fa_options[i].letter) fprintf(out, " -%c", fa_options[i].letter);
  }
  fputc('\n', out);
  for (int i = 0; i < fa_n_commands; ++i) {
    fprintf(out, "complete -c fa-verify -n __fa_verify_first -a %s", fa_commands[i].name);
    put_description(out, fa_commands[i].does);
    put_words(out, &fa_commands[i], backends);
  }
  for (int i = 0; i < fa_n_options; ++i) put_option(out, &fa_options[i], backends);
}
