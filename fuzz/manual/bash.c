/* The functions that complete.bash asks. */
#include "fuzz/manual/parts.h"

static const char *kind_name(fa_value_kind kind) {
  static const char *const names[] = {
      [FA_VALUE_ANY] = "any",
      [FA_VALUE_ONE_OF] = "one",
      [FA_VALUE_CASES] = "cases",
      [FA_VALUE_JSON] = "json",
      [FA_VALUE_SAFETENSORS] = "safetensors",
      [FA_VALUE_FILE] = "file",
      [FA_VALUE_FOLDER] = "folder",
      [FA_VALUE_BACKEND] = "backend",
      [FA_VALUE_PROFILE] = "one",
      [FA_VALUE_LAW] = "one",
      [FA_VALUE_LAYER] = "one",
  };
  return names[kind];
}

static void put_options(FILE *out) {
  fputs("_fa_verify_options() {\n  case $1 in\n", out);
  for (int i = 0; i < fa_n_commands; ++i) {
    fprintf(out, "  %s) options='", fa_commands[i].name);
    const char *blank = "";
    for (int k = 0; k < fa_n_options; ++k) {
      if (!(fa_options[k].commands & fa_commands[i].bit)) continue;
      fprintf(out, "%s--%s", blank, fa_options[k].name);
      if (fa_options[k].letter) fprintf(out, " -%c", fa_options[k].letter);
      blank = " ";
    }
    fputs("' ;;\n", out);
  }
  fputs("  esac\n}\n", out);
}

static void put_kind(FILE *out, fa_value_kind kind, const char *one_of, const fa_backend *const *backends) {
  fprintf(out, "kind=%s choices='", kind_name(kind));
  fa_script_words(out, kind, one_of, backends);
  fputs("' ;;\n", out);
}

static void put_values(FILE *out, const fa_backend *const *backends) {
  fputs("_fa_verify_value() {\n  case $1 in\n", out);
  for (int k = 0; k < fa_n_options; ++k) {
    const fa_option_row *o = &fa_options[k];
    if (o->kind == FA_KIND_FLAG) continue;
    fprintf(out, "  --%s", o->name);
    if (o->letter) fprintf(out, " | -%c", o->letter);
    fputs(") ", out);
    put_kind(out, o->value, o->argument, backends);
  }
  fputs("  esac\n}\n", out);
}

static void put_places(FILE *out, const fa_backend *const *backends) {
  fputs("_fa_verify_place() {\n  case $1:$2 in\n", out);
  for (int i = 0; i < fa_n_commands; ++i)
    for (int n = 0; n < FA_MAX_WORDS && fa_commands[i].words[n].kind; ++n) {
      if (fa_commands[i].repeats)
        fprintf(out, "  %s:*) ", fa_commands[i].name);
      else
        fprintf(out, "  %s:%d) ", fa_commands[i].name, n + 1);
      put_kind(out, fa_commands[i].words[n].kind, fa_commands[i].words[n].one_of, backends);
    }
  fputs("  esac\n}\n", out);
}

void fa_script_print_bash(const fa_backend *const *backends, FILE *out) {
  fputs("# bash completion of fa-verify, printed by fa-verify completion bash.\n\n_fa_verify_commands='",
        out);
  for (int i = 0; i < fa_n_commands; ++i) fprintf(out, "%s%s", i ? " " : "", fa_commands[i].name);
  fputs("'\n", out);
  put_options(out);
  put_values(out, backends);
  put_places(out, backends);
  fprintf(out, "\n%s", fa_script_bash);
}
