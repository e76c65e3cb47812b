/* serve: a backend for another fa-verify, as its child. */
#include "fuzz/cli/commands.h"
#include "gpu/serve/session.h"

#include <string.h>
#include <unistd.h>

static const fa_backend *find(const fa_cli *cli, const char *spec) {
  const size_t n = strcspn(spec, ":");
  for (int i = 0; cli->backends[i]; ++i)
    if (strlen(cli->backends[i]->name) == n && strncmp(cli->backends[i]->name, spec, n) == 0)
      return cli->backends[i];
  return NULL;
}

/* These speak the protocol already: there would be a process between two that understand each other. */
static bool is_served_elsewhere(const fa_backend *backend) {
  static const char *const names[] = {"exec", "connect", "py"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (strcmp(backend->name, names[i]) == 0) return true;
  return false;
}

/* A stream of our own where answers go, while everything that the kernel prints goes to stderr. */
static FILE *answers(void) {
  const int fd = dup(STDOUT_FILENO);
  return fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 ? fdopen(fd, "w") : NULL;
}

/* The next request finds a new process behind the same streams: what ended this one, a lost context of a GPU, is no
 * reason to fail the case that comes next. */
static int start_again(const fa_cli *cli, FILE *out) {
  if (dup2(fileno(out), STDOUT_FILENO) >= 0) execv("/proc/self/exe", cli->argv);
  return FA_EXIT_INFRASTRUCTURE;
}

static int serve(const fa_cli *cli, const fa_backend *backend, const char *arg) {
  void *self = NULL;
  fa_error err = {""};
  FILE *out = answers();
  if (!out) return fa_cli_usage_error("serve: stdout is closed");
  const fa_status status = backend->open(arg, &self, &err);
  if (status == FA_ERR_INPUT) return fclose(out), fa_cli_fail(status, &err);
  const fa_serve_end end = fa_serve_session(backend, self, status == FA_OK ? NULL : err.text, stdin, out);
  if (end == FA_SERVE_SPENT) return start_again(cli, out);
  if (status == FA_OK) backend->close(self);
  fclose(out);
  return end == FA_SERVE_CLOSED ? FA_EXIT_PASSED : FA_EXIT_INFRASTRUCTURE;
}

int fa_command_serve(const fa_cli *cli) {
  if (cli->words.n) return fa_cli_usage_error("serve: what is %s? It takes --backend NAME", cli->words.v[0]);
  if (cli->backend.n != 1) return fa_cli_usage_error("serve: one --backend is needed");
  const char *spec = cli->backend.v[0], *colon = strchr(spec, ':');
  const fa_backend *backend = find(cli, spec);
  if (!backend)
    return fa_cli_usage_error("serve: --backend %s: unknown; fa-verify list backends has them", spec);
  if (is_served_elsewhere(backend))
    return fa_cli_usage_error("serve: --backend %s: it is a process of its own already", spec);
  return serve(cli, backend, colon ? colon + 1 : NULL);
}
