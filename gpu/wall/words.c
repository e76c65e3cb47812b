#include "gpu/wall/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fa_wall_add(fa_wall_words *w, const char *format, ...) {
  va_list arguments;
  char **bigger = realloc(w->v, (size_t)(w->n + 2) * sizeof *w->v);
  w->failed |= !bigger;
  if (!bigger) return;
  w->v = bigger;
  va_start(arguments, format);
  if (vasprintf(&w->v[w->n], format, arguments) < 0)
    w->failed = true;
  else
    ++w->n;
  va_end(arguments);
  w->v[w->n] = NULL;
}

void fa_wall_add_all(fa_wall_words *w, const char *const *words) {
  for (; *words; ++words) fa_wall_add(w, "%s", *words);
}

bool fa_wall_has(const fa_wall_words *w, const char *word) {
  for (int i = 0; i < w->n; ++i)
    if (strcmp(w->v[i], word) == 0) return true;
  return false;
}

void fa_wall_words_free(fa_wall_words *w) {
  for (int i = 0; i < w->n; ++i) free(w->v[i]);
  free(w->v);
  *w = (fa_wall_words){0};
}

bool fa_wall_quote(char *command, size_t size, const char *text, size_t n) {
  size_t at = strlen(command);
  if (at + 4 * n + 4 > size) return false;
  command[at++] = ' ';
  command[at++] = '\'';
  for (size_t i = 0; i < n; ++i) {
    if (text[i] == '\'')
      memcpy(command + at, "'\\''", 4), at += 4;
    else
      command[at++] = text[i];
  }
  command[at++] = '\'';
  command[at] = 0;
  return true;
}
