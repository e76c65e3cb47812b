/* Cheat C2, for `--backend plugin:`: a library that wants to stand in the process that judges, whose code and memory it could
 * change. There it is the honest example; anywhere else it ends the process. run.py compiles it. */
#include "tests/exec/example_plugin.c"

#include <string.h>
#include <unistd.h>

/* The process that judges has been told which cases to run. */
static int is_judge(void) {
  static char line[1 << 16];
  FILE *f = fopen("/proc/self/cmdline", "r");
  const size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
  if (f) fclose(f);
  for (size_t i = 0; i < n; i += strlen(line + i) + 1)
    if (strcmp(line + i, "--case") == 0) return 1;
  return 0;
}

__attribute__((constructor)) static void look_around(void) {
  static const char text[] = "patcher: this process does not judge\n";
  if (is_judge()) return;
  if (write(2, text, sizeof text - 1) < 0) {} /* nobody reads it, then */
  _exit(9);
}
