/* The backend py:NAME: an adapter of the Python package fa_verify, in a child of its own. Importing its library takes seconds, so
 * one process imports it and forks the children (gpu/child/forks.h); $FA_PY_FORK=off: each imports it for itself. */
#include "gpu/backends/exec_subject.h"
#include "gpu/backends/plugin_backend.h"
#include "gpu/child/forks.h"
#include "gpu/wall/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORK "--fork"   /* of the adapters' __main__: it serves nobody, and forks who does */
#define NO_PACKAGE "97" /* exit status of START if the package is not there */

/* Runs the adapters' __main__ in one go with the question whether there is one. */
#define START                                                                                                \
  "import importlib.util,runpy,sys\n"                                                                        \
  "try:\n"                                                                                                   \
  " found=importlib.util.find_spec(\"fa_verify.adapters\")\n"                                                \
  "except ModuleNotFoundError as error:\n"                                                                   \
  " if \"" FORK "\" not in sys.argv: print(error,file=sys.stderr)\n"                                         \
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

/* ---- the process that forks them ---- */

enum { MAX_SERVERS = 8, MAX_COMMAND = 4096 };
static struct server {
  char *arg;
  int socket;           /* -1: it could not be started */
} servers[MAX_SERVERS]; /* of this process, and those that are forked from it */
static int n_servers;

static const struct server *find_server(const char *arg) {
  for (int i = 0; i < n_servers; ++i)
    if (strcmp(servers[i].arg, arg) == 0) return &servers[i];
  return NULL;
}

static int server_of(const fa_exec_subject *x) {
  const struct server *s = find_server(x->name);
  return s ? s->socket : -1;
}

/* more: NULL, or the last argument. */
static bool put_command(char *command, size_t size, const char *arg, const char *more) {
  bool fits = fa_wall_quote(command, size, python(), strlen(python())) &&
              fa_wall_quote(command, size, "-c", 2) && fa_wall_quote(command, size, START, strlen(START));
  for (const char *at = arg; fits && *at;) { /* NAME, and after commas or spaces its arguments */
    const size_t n = strcspn(at, ", ");
    if (n > 0) fits = fa_wall_quote(command, size, at, n);
    at += n + (at[n] != 0);
  }
  return fits && (!more || fa_wall_quote(command, size, more, strlen(more)));
}

/* What is wrong with the Python is for the children to say, which are started without a server then. */
static void py_share(const char *arg) {
  char command[MAX_COMMAND + 100] = "command -v";
  const char *policy = getenv("FA_PY_FORK");
  if (!arg || !*arg || n_servers == MAX_SERVERS || find_server(arg) || (policy && strcmp(policy, "off") == 0))
    return;
  if (!fa_wall_quote(command, sizeof command, python(), strlen(python()))) return;
  strncat(command, " >/dev/null 2>&1 && exec", sizeof command - strlen(command) - 1);
  char *own = put_command(command, sizeof command, arg, FORK) ? strdup(arg) : NULL;
  if (own) servers[n_servers++] = (struct server){.arg = own, .socket = fa_forks_start(command)};
}

/* ---- the backend ---- */

static const fa_exec_reach reach = {.backend = "py",
                                    .what = "the adapter",
                                    .open = fa_exec_start_child,
                                    .close = fa_exec_stop_child,
                                    .explain = explain,
                                    .server = server_of};

static fa_status py_open_untrusted(const char *arg, const fa_wall_terms *terms, void **self, fa_error *err) {
  char command[MAX_COMMAND] = "exec";
  const char *policy = getenv("FA_PY_FORK");
  *self = NULL;
  if (!arg || !*arg) return fa_fail(err, FA_ERR_INPUT, "backend py needs an adapter's name: py:NAME");
  if (policy && *policy && strcmp(policy, "off") != 0 && strcmp(policy, "auto") != 0)
    return fa_fail(err, FA_ERR_INPUT, "FA_PY_FORK=%s: auto or off", policy);
  if (!put_command(command, sizeof command, arg, NULL))
    return fa_fail(err, FA_ERR_INPUT, "py:%.40s...: too long", arg);
  return fa_exec_open(&reach, arg, command, terms, self, err);
}

static fa_status py_open(const char *arg, void **self, fa_error *err) {
  return py_open_untrusted(arg, NULL, self, err);
}

const fa_backend fa_backend_py = {
    FA_EXEC_MEMBERS("py", "py:NAME, an adapter of the Python package", py_open, py_open_untrusted),
    .share = py_share};
