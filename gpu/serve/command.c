#include "gpu/serve/command.h"

#include "cases/base/program.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Single quotes hold everything but themselves. */
bool fa_serve_add_word(char *command, size_t size, const char *text) {
  const size_t begin = strlen(command);
  size_t at = begin, needed = begin + strlen(text) + 4; /* a space, two quotes, the end */
  for (const char *c = text; *c; ++c) needed += *c == '\'' ? 3 : 0;
  if (needed > size) return false;
  if (at) command[at++] = ' ';
  command[at++] = '\'';
  for (const char *c = text; *c; ++c) {
    const size_t n = *c == '\'' ? 4 : 1;
    memcpy(command + at, *c == '\'' ? "'\\''" : c, n);
    at += n;
  }
  command[at++] = '\'';
  command[at] = 0;
  return true;
}

bool fa_serve_words(const char *spec, char *program, const char *argv[5]) {
  if (!fa_program_path(program, PATH_MAX)) return false;
  argv[0] = program;
  argv[1] = "serve";
  argv[2] = "--backend";
  argv[3] = spec;
  argv[4] = NULL;
  return true;
}

bool fa_serve_command(const char *spec, char *command, size_t size) {
  char program[PATH_MAX];
  const char *argv[5];
  bool fits = fa_serve_words(spec, program, argv) && (size_t)snprintf(command, size, "exec") < size;
  for (int i = 0; fits && argv[i]; ++i) fits = fa_serve_add_word(command, size, argv[i]);
  return fits;
}
