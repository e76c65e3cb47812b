/* Choices and texts, as scripts of all shells have them. */
#include "fuzz/manual/parts.h"
#include "fuzz/manual/print.h"

#include <string.h>

const char *fa_script_colon(fa_value_kind kind, const char *name, const char *what) {
  const size_t n = strlen(name);
  const bool needs_argument = kind == FA_VALUE_BACKEND && strncmp(what, name, n) == 0 && what[n] == ':';
  return needs_argument ? ":" : "";
}

void fa_script_words(FILE *out, fa_value_kind kind, const char *one_of, const fa_backend *const *backends) {
  fa_choices choices;
  fa_choices_of(kind, one_of, backends, &choices);
  for (int i = 0; i < choices.n; ++i)
    fprintf(out, "%s%s%s", i ? " " : "", choices.v[i].name,
            fa_script_colon(kind, choices.v[i].name, choices.v[i].what));
}

void fa_script_escaped(FILE *out, const char *text, const char *special) {
  for (; *text; ++text) {
    if (*text == '\'') fputs("'\\'", out);
    if (strchr(special, *text)) fputc('\\', out);
    fputc(*text, out);
  }
}

void fa_manual_completion(const char *shell, const fa_backend *const *backends, FILE *out) {
  if (strcmp(shell, "bash") == 0) fa_script_print_bash(backends, out);
  if (strcmp(shell, "fish") == 0) fa_script_print_fish(backends, out);
  if (strcmp(shell, "zsh") == 0) fa_script_print_zsh(backends, out);
}
