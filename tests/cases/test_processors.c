/* As many processors count as the thread may run on, not as many as the machine has. */
#include "cases/threads/processors.h"
#include "tests/support/check.h"

#include <sched.h>
#include <unistd.h>

/* The first n of those in all. */
static void allow(int n, const cpu_set_t *all) {
  cpu_set_t some;
  CPU_ZERO(&some);
  for (int i = 0; i < CPU_SETSIZE && n > 0; ++i)
    if (CPU_ISSET(i, all)) CPU_SET(i, &some), --n;
  REQUIRE(sched_setaffinity(0, sizeof some, &some) == 0);
}

int main(void) {
  cpu_set_t all;
  if (sysconf(_SC_NPROCESSORS_CONF) > CPU_SETSIZE) {
    puts("skipped: more processors than a cpu_set_t holds");
    return 77;
  }
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  const int n = CPU_COUNT(&all);
  CHECK(fa_processors() == n);
  allow(1, &all);
  CHECK(fa_processors() == 1);
  allow(n < 2 ? n : 2, &all);
  CHECK(fa_processors() == (n < 2 ? n : 2));
  return check_done();
}
