/* The functions that complete.zsh asks. */
#include "fuzz/manual/parts.h"

#include <string.h>

/* What _arguments does to complete the value: what stands behind ":NAME:". */
static void put_action(FILE *out, fa_value_kind kind, const char *one_of, const fa_backend *const *backends) {
  static const char *const actions[] = {
      [FA_VALUE_ANY] = " ",
      [FA_VALUE_CASES] = "_fa_verify_cases",
      [FA_VALUE_SAFETENSORS] = "_files -g \"*.safetensors\"",
      [FA_VALUE_FILE] = "_files",
      [FA_VALUE_FOLDER] = "_files -/",
      [FA_VALUE_BACKEND] = "_fa_verify_backends",
      [FA_VALUE_PROFILE] = "_fa_verify_profiles",
      [FA_VALUE_LAW] = "_fa_verify_laws",
      [FA_VALUE_LAYER] = "_fa_verify_layers",
  };
  if (kind == FA_VALUE_ONE_OF || kind == FA_VALUE_JSON) {
    fputs(kind == FA_VALUE_JSON ? "_fa_verify_json " : "(", out);
    fa_script_words(out, kind, one_of, backends);
    fputs(kind == FA_VALUE_JSON ? "" : ")", out);
  } else {
    fputs(actions[kind], out);
  }
}

/* One way to write the option; other: the other way, which it excludes, or "". */
static void put_spec(FILE *out, const fa_option_row *o, const char *form, const char *other,
                     const fa_backend *const *backends) {
  const bool repeats = o->kind == FA_KIND_WORD || o->kind == FA_KIND_WORDS;
  fputs("    '", out);
  if (repeats)
    fputc('*', out);
  else
    fprintf(out, "(%s%s%s)", form, *other ? " " : "", other);
  const char *joint = o->kind == FA_KIND_FLAG || o->kind == FA_KIND_WORDS ? "" : form[1] == '-' ? "=" : "+";
  fprintf(out, "%s%s[", form, joint);
  fa_script_escaped(out, o->does, "[]:\\");
  fputc(']', out);
  if (o->kind != FA_KIND_FLAG) {
    fputs(o->kind == FA_KIND_WORDS ? ":*-*:" : ":", out);
    fa_script_escaped(out, o->argument, "[]:\\");
    fputc(':', out);
    put_action(out, o->value, o->argument, backends);
  }
  fputs("'\n", out);
}

static void put_option(FILE *out, const fa_option_row *o, const fa_backend *const *backends) {
  char with_name[64], with_letter[4] = "";
  snprintf(with_name, sizeof with_name, "--%s", o->name);
  if (o->letter) snprintf(with_letter, sizeof with_letter, "-%c", o->letter);
  put_spec(out, o, with_name, with_letter, backends);
  if (o->letter) put_spec(out, o, with_letter, with_name, backends);
}

static void put_words(FILE *out, const fa_command_row *c, const fa_backend *const *backends) {
  for (int n = 0; n < FA_MAX_WORDS && c->words[n].kind; ++n) {
    char place[16];
    snprintf(place, sizeof place, "%d", n + 1);
    fprintf(out, "    '%s: :", c->repeats ? "*" : place);
    put_action(out, c->words[n].kind, c->words[n].one_of, backends);
    fputs("'\n", out);
  }
}

static void put_specs(FILE *out, const fa_backend *const *backends) {
  fputs("_fa_verify_specs() {\n  case $1 in\n", out);
  for (int i = 0; i < fa_n_commands; ++i) {
    fprintf(out, "  %s) specs=(\n", fa_commands[i].name);
    for (int k = 0; k < fa_n_options; ++k)
      if (fa_options[k].commands & fa_commands[i].bit) put_option(out, &fa_options[k], backends);
    put_words(out, &fa_commands[i], backends);
    fputs("    ) ;;\n", out);
  }
  fputs("  esac\n}\n", out);
}

/* 'name:what it is' for _describe. */
static void put_described(FILE *out, const char *name, const char *what) {
  fputs("    '", out);
  fa_script_escaped(out, name, ":\\");
  fputc(':', out);
  fa_script_escaped(out, what, "\\");
  fputs("'\n", out);
}

static void put_list(FILE *out, const char *function, const char *tag, fa_value_kind kind, const char *how,
                     const fa_backend *const *backends) {
  fa_choices choices;
  fa_choices_of(kind, NULL, backends, &choices);
  fprintf(out, "%s() {\n  local -a names=(\n", function);
  for (int i = 0; i < choices.n; ++i) {
    char name[48];
    snprintf(name, sizeof name, "%s%s", choices.v[i].name,
             fa_script_colon(kind, choices.v[i].name, choices.v[i].what));
    put_described(out, name, choices.v[i].what);
  }
  fprintf(out, "  )\n  _describe %s names%s\n}\n", tag, how);
}

void fa_script_print_zsh(const fa_backend *const *backends, FILE *out) {
  fputs("#compdef fa-verify\n# zsh completion of fa-verify, printed by fa-verify completion zsh.\n\n"
        "_fa_verify_commands() {\n  local -a names=(\n",
        out);
  for (int i = 0; i < fa_n_commands; ++i) put_described(out, fa_commands[i].name, fa_commands[i].does);
  fputs("  )\n  _describe command names\n}\n", out);
  put_list(out, "_fa_verify_backend_names", "backend", FA_VALUE_BACKEND, " -S ''", backends);
  put_list(out, "_fa_verify_profiles", "profile", FA_VALUE_PROFILE, "", backends);
  put_list(out, "_fa_verify_laws", "law", FA_VALUE_LAW, "", backends);
  put_list(out, "_fa_verify_layers", "layer", FA_VALUE_LAYER, "", backends);
  fputs("_fa_verify_valued=(", out);
  for (int i = 0; i < fa_n_options; ++i) {
    if (fa_options[i].kind == FA_KIND_FLAG) continue;
    fprintf(out, " --%s", fa_options[i].name);
    if (fa_options[i].letter) fprintf(out, " -%c", fa_options[i].letter);
  }
  fputs(" )\n", out);
  put_specs(out, backends);
  fputs(fa_script_zsh, out);
}
