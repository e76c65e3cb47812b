/* The command line that serves a backend: whatever is in its words, a shell takes them as they are. */
#include "gpu/serve/command.h"
#include "tests/support/check.h"

#include <limits.h>
#include <string.h>

/* What sh makes of the command's words, an x behind each. */
static void through_shell(const char *words, char *out, size_t size) {
  char command[1024];
  snprintf(command, sizeof command, "printf '%%sx' %s", words);
  FILE *shell = popen(command, "r");
  REQUIRE(shell != NULL);
  out[fread(out, 1, size - 1, shell)] = 0;
  CHECK(pclose(shell) == 0);
}

static void test_words(void) {
  static const char *const words[] = {"plain", "two words", "it's",      "$(echo no)", "a\"b`c\\d", "''", "",
                                      "*",     "~",         "line\nend", "\xff\xfe;",  "-n",        "#"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    char command[256] = "", got[256], want[64];
    CHECK(fa_serve_add_word(command, sizeof command, words[i]));
    CHECK(fa_serve_add_word(command, sizeof command, "behind"));
    through_shell(command, got, sizeof got);
    snprintf(want, sizeof want, "%sxbehindx", words[i]);
    CHECK_MSG(strcmp(got, want) == 0, "%s: %s", command, got);
  }
}

static void test_room(void) {
  for (size_t size = 1; size < 20; ++size) {
    char command[20] = "";
    const bool fits = fa_serve_add_word(command, size, "it's");
    CHECK_MSG(fits == (size >= 11) || command[0] == 0, "%zu: %s", size, command);
    CHECK_MSG(strlen(command) < size && (fits || command[0] == 0), "%zu: %s", size, command);
  }
}

static void test_command(void) {
  char command[PATH_MAX + 100], program[PATH_MAX], want[PATH_MAX + 100] = "exec";
  const char *argv[5];
  CHECK(fa_serve_words("plugin:./it's.so", program, argv));
  CHECK(argv[0] == program && program[0] == '/' && strstr(program, "serve_command") && !argv[4]);
  CHECK(strcmp(argv[1], "serve") == 0 && strcmp(argv[2], "--backend") == 0);
  CHECK(strcmp(argv[3], "plugin:./it's.so") == 0);
  CHECK(fa_serve_command("plugin:./it's.so", command, sizeof command));
  CHECK(fa_serve_add_word(want, sizeof want, program));
  strcat(want, " 'serve' '--backend' 'plugin:./it'\\''s.so'");
  CHECK_MSG(strcmp(command, want) == 0, "%s", command);
  CHECK(!fa_serve_command("plugin:./it's.so", command, 20));
}

int main(void) {
  test_words();
  test_room();
  test_command();
  return check_done();
}
