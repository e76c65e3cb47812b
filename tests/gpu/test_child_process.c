/* What tests/gpu/test_exec.sh cannot time: stopping a child that has already ended. */
#include "gpu/child/process.h"
#include "tests/support/check.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/* Stopping when the supervisor is gone must not raise SIGPIPE in the caller. */
static void test_stop_behind_the_end(bool at_once) {
  fa_exec_process x;
  fa_error err = {""};
  char how[200] = "";
  REQUIRE(fa_exec_start(&x, "exit 3", -1, NULL, &err) == FA_OK);
  siginfo_t ended;
  CHECK(waitid(P_PID, (id_t)x.supervisor, &ended, WEXITED | WNOWAIT) == 0);
  CHECK(!fa_exec_send(&x.lines, "hello"));
  fa_exec_stop(&x, at_once, how, sizeof how);
  CHECK_MSG(strcmp(how, "ended with status 3") == 0, "%s", how);
  CHECK(x.supervisor == 0);
}

int main(void) {
  signal(SIGPIPE, SIG_DFL);
  test_stop_behind_the_end(false);
  test_stop_behind_the_end(true);
  return check_done();
}
