#include "tests/mutate/answer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int end_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

void answer_wait(pid_t child, int from, double seconds, answer *a) {
  struct pollfd p = {.fd = from, .events = POLLIN};
  const int ready = poll(&p, 1, 60000 + (int)(seconds * 20000));
  const bool whole = ready > 0 && read(from, a, sizeof *a) == sizeof *a;
  if (!whole) kill(child, SIGKILL);
  const int status = end_of(child);
  if (whole) return;
  const bool hangs = ready <= 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF);
  *a = (answer){.state = hangs ? FA_HANG : FA_CRASH, .seconds = seconds, .image = "-"};
  if (!hangs && WIFSIGNALED(status)) snprintf(a->reason, sizeof a->reason, "signal %d", WTERMSIG(status));
}

void answer_print(const answer *a) {
  static const char *const words[] = {[SAME] = "SAME", [WASTE] = "WASTE"};
  printf("%s\t%.4f\t%s\t%s\t%s\t%s\t", a->how == JUDGED ? fa_state_name(a->state) : words[a->how], a->seconds,
         a->image, a->kernels, a->reason, a->judge);
}
