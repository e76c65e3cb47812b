/* The backend py:NAME: an adapter of the Python package fa_verify, in a child of its own. */
#include "gpu/backends/exec_subject.h"
#include "gpu/backends/plugin_backend.h"
#include "gpu/wall/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_PACKAGE "97" /* exit status of START if the package is not there */

/* Runs the adapters' __main__ in one go with the question whether there is one. */
#define START                                                                                                \
  "import importlib.util,runpy,sys\n"                                                                        \
  "try:\n"                                                                                                   \
  " found=importlib.util.find_spec(\"fa_verify.adapters\")\n"                                                \
  "except ModuleNotFoundError as error:\n"                                                                   \
  " print(error,file=sys.stderr)\n"                                                                          \
  " found=None\n"                                                                                            \
  "if found is None:\n"                                                                                      \
  " sys.exit(" NO_PACKAGE ")\n"                                                                              \
  "runpy.run_module(\"fa_verify.adapters\",run_name=\"__main__\",alter_sys=True)"

static const char *python(void) {
  const char *value = getenv("FA_PYTHON");
  return value && *value ? value : "python3";
}

static bool ends_with(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static void explain(const fa_exec_subject *x, char *text, size_t size) {
  (void)x;
  if (ends_with(text, "ended with status 127"))
    snprintf(text, size, "there is no %s; set FA_PYTHON to the Python that has the package fa_verify",
             python());
  else if (ends_with(text, "ended with status " NO_PACKAGE))
    snprintf(text, size,
             "%s lacks the package fa_verify with its adapters, or numpy: pip install it, or set FA_PYTHON "
             "to the Python that has it",
             python());
}

static const fa_exec_reach reach = {.backend = "py",
                                    .what = "the adapter",
                                    .open = fa_exec_start_child,
                                    .close = fa_exec_stop_child,
                                    .explain = explain};

static fa_status py_open_untrusted(const char *arg, const fa_wall_terms *terms, void **self, fa_error *err) {
  char command[4096] = "exec";
  *self = NULL;
  if (!arg || !*arg) return fa_fail(err, FA_ERR_INPUT, "backend py needs an adapter's name: py:NAME");
  bool fits = fa_wall_quote(command, sizeof command, python(), strlen(python())) &&
              fa_wall_quote(command, sizeof command, "-c", 2) &&
              fa_wall_quote(command, sizeof command, START, strlen(START));
  for (const char *at = arg; fits && *at;) { /* NAME, and after commas or spaces its arguments */
    const size_t n = strcspn(at, ", ");
    if (n > 0) fits = fa_wall_quote(command, sizeof command, at, n);
    at += n + (at[n] != 0);
  }
  if (!fits) return fa_fail(err, FA_ERR_INPUT, "py:%.40s...: too long", arg);
  return fa_exec_open(&reach, arg, command, terms, self, err);
}

static fa_status py_open(const char *arg, void **self, fa_error *err) {
  return py_open_untrusted(arg, NULL, self, err);
}

const fa_backend fa_backend_py =
    FA_EXEC_BACKEND("py", "py:NAME, an adapter of the Python package", py_open, py_open_untrusted);
