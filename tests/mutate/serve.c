/* Cases against mutants, each in a process of its own that is forked from one that has read all the cases.
 *
 *   serve BACKEND FILE.json...      BACKEND: host, or host:ARGUMENT
 *
 * Prints "case NAME" for every case, then "ready". For a line "MUTANT CASE SECONDS" (numbers) on its input it answers
 *   STATE <tab> seconds <tab> kernels <tab> reason <tab> numbers of the mutants reached
 * STATE is a result's, or CRASH, or HANG after so many seconds. Mutant 0 is the program as it is: each case is asked of
 * it first, which tells the mutants that the case reaches and remembers what the run leaves in memory (image.h). A
 * mutant that leaves the same there gets "SAME" without being judged; "-MUTANT" judges it all the same. */
#include "cases/codec/file.h"
#include "fuzz/generate/draw.h"
#include "fuzz/one/run_case.h"
#include "fuzz/workers/memory.h"
#include "ref/math/blas.h"
#include "tests/mutate/image.h"
#include "tests/mutate/switch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct answer {
  fa_state state;
  bool same;
  uint64_t image; /* of mutant 0: what the run left in memory; 0: it has to be judged */
  double seconds;
  char kernels[200], reason[200];
} answer;

typedef struct server {
  const fa_backend *backend;
  void *self;
  fa_case_list cases;
  uint64_t *image; /* by case: of mutant 0 */
} server;

static void clean(char *text) {
  for (; *text; ++text)
    if (*text == '\t' || *text == '\n') *text = ' ';
}

/* Without the judge. False: the judge has to say. */
static bool look(const server *s, int64_t number, answer *a) {
  const fa_case *c = &s->cases.v[number];
  if (!fa_image_applies(c, s->backend, s->self)) return false;
  a->image = fa_image(c, s->backend, s->self, a->kernels, sizeof a->kernels);
  a->state = FA_PASS;
  a->same = a->image == s->image[number];
  return a->image && (fa_mutant == 0 || a->same);
}

static void judge(const server *s, int64_t number, answer *a) {
  static fa_result r;
  fa_error err = {""};
  const fa_run_config config = {
      .backend = s->backend, .backend_self = s->self, .n_threads = 1, .schedule_seed = 1};
  *a = (answer){.state = FA_UNTESTED};
  fa_result_init(&r);
  fa_run_case(&s->cases.v[number], &config, &r, &err);
  a->state = r.state;
  snprintf(a->kernels, sizeof a->kernels, "%s %.32s", r.kernel, r.backward_kernel);
  snprintf(a->reason, sizeof a->reason, "%.199s", r.reason[0] ? r.reason : r.notes);
  clean(a->reason);
}

static double processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the child. */
static void answer_to(const server *s, int64_t number, bool always_judge, int out) {
  answer a = {.state = FA_UNTESTED};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (always_judge || !look(s, number, &a)) judge(s, number, &a);
  a.seconds = processor_seconds();
  if (write(out, &a, sizeof a) != sizeof a) _exit(3);
  _exit(0);
}

static void wait_for(pid_t child, int from, double seconds, answer *a) {
  struct pollfd p = {.fd = from, .events = POLLIN};
  int status = 0;
  const int ready = poll(&p, 1, (int)(seconds * 1000));
  const bool whole = ready > 0 && read(from, a, sizeof *a) == sizeof *a;
  if (!whole) {
    *a = (answer){.state = ready > 0 ? FA_CRASH : FA_HANG, .seconds = seconds};
    kill(child, SIGKILL);
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (!whole && ready > 0 && WIFSIGNALED(status))
    snprintf(a->reason, sizeof a->reason, "signal %d", WTERMSIG(status));
}

static bool run(const server *s, int mutant, int64_t number, double seconds, bool always_judge, answer *a) {
  int pipes[2];
  if (pipe2(pipes, 0) != 0) return false;
  fflush(stdout);
  fa_mutant = mutant;
  const pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stderr)) _exit(3); /* what asserts say of a mutant that dies */
    answer_to(s, number, always_judge, pipes[1]);
  }
  close(pipes[1]);
  if (child > 0) wait_for(child, pipes[0], seconds, a);
  close(pipes[0]);
  return child > 0;
}

static void print_reached(void) {
  for (int i = 1; i < FA_MUTANTS_MAX; ++i)
    if (fa_mutant_reached[i]) printf(" %d", i);
}

static int serve(const server *s) {
  char line[200];
  while (fgets(line, sizeof line, stdin)) {
    answer a = {.state = FA_UNTESTED};
    int mutant = 0;
    long long number = 0;
    double seconds = 0;
    if (sscanf(line, "%d %lld %lf", &mutant, &number, &seconds) != 3 || number < 0 || number >= s->cases.n)
      return 2;
    if (mutant == 0) memset(fa_mutant_reached, 0, FA_MUTANTS_MAX);
    if (!run(s, abs(mutant), number, seconds, mutant < 0, &a)) return 3;
    if (mutant == 0) s->image[number] = a.image;
    printf("%s\t%.4f\t%s\t%s\t", mutant && a.same ? "SAME" : fa_state_name(a.state), a.seconds, a.kernels,
           a.reason);
    if (mutant == 0) print_reached();
    printf("\n");
    fflush(stdout);
  }
  return 0;
}

static int fail(const fa_error *err) {
  fprintf(stderr, "serve: %s\n", err->text);
  return 2;
}

int main(int argc, char **argv) {
  server s = {.backend = &fa_backend_host};
  fa_error err = {""};
  if (argc < 3 || strncmp(argv[1], "host", 4) != 0) return 2;
  fa_memory_startup();
  fa_blas_startup(argv);
  void *shared = mmap(NULL, FA_MUTANTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 3;
  fa_mutant_reached = shared;
  if (s.backend->open(argv[1][4] == ':' ? argv[1] + 5 : NULL, &s.self, &err) != FA_OK) return fail(&err);
  for (int i = 2; i < argc; ++i)
    if (fa_case_file_load(argv[i], fa_generate, &s.cases, &err) != FA_OK) return fail(&err);
  s.image = calloc((size_t)s.cases.n + 1, sizeof *s.image);
  if (!s.image) return 3;
  for (int64_t i = 0; i < s.cases.n; ++i) printf("case %s\n", s.cases.v[i].name);
  printf("ready\n");
  fflush(stdout);
  const int status = serve(&s);
  free(s.image);
  fa_case_list_free(&s.cases);
  s.backend->close(s.self);
  return status;
}
