/* Cases against mutants, each in a process of its own that is forked from one that has read all the cases.
 *
 *   serve JUDGE FILE.json...      JUDGE: as --judge has it
 *
 * Prints "case FILE/NAME" for every case, then "ready". A line "backend NAME" on its input says where cases run from then on: host,
 * host:ARGUMENT, or mutant:NAME[,ARGUMENT] for a planted one. For a line "MUTANT CASE SECONDS IMAGE" it answers
 *   STATE <tab> seconds <tab> IMAGE <tab> kernels <tab> reason <tab> the GPU's judge <tab> numbers of the mutants reached
 * Seconds are the processor's. STATE is a result's, or CRASH, or HANG after so many. Mutant 0 is the program as it is:
 * each case is asked of it first, which tells the mutants that the case reaches, and the image of what the run leaves in
 * memory and how much it works ("-": the case has to be judged). A mutant with that image is "SAME" and one that leaves
 * the same but works more or less is "WASTE", without being judged; "-MUTANT" judges it all the same, also "-0". An ERROR is a
 * fault of the judge: with JUDGE "host" or "both" also that the two judges contradict each other. Of the GPU's judge there is PASS,
 * or why the case was left to the CPU's. */
#include "cases/codec/file.h"
#include "fuzz/generate/draw.h"
#include "fuzz/one/judges.h"
#include "fuzz/one/run_case.h"
#include "fuzz/workers/memory.h"
#include "gpu/backends/plugin_backend.h"
#include "ref/math/blas.h"
#include "tests/mutate/answer.h"
#include "tests/mutate/image.h"
#include "tests/mutate/switch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef struct server {
  const fa_backend *backend;
  void *self;
  fa_judge_choice judge;
  fa_case_list cases;
} server;

typedef struct question {
  int mutant;
  bool judged;
  long long number; /* of the case */
  double seconds;
  char image[IMAGE_CHARS]; /* of mutant 0 */
} question;

static void clean(char *text) {
  for (; *text; ++text)
    if (*text == '\t' || *text == '\n') *text = ' ';
}

/* The last fields of an image, which the work of a result has too. */
static void print_work(const fa_work *w, char *to, size_t size) {
  snprintf(to, size, "%lld,%lld,%lld,%lld", (long long)w->products, (long long)w->loaded,
           (long long)w->stored, (long long)w->barriers);
}

static void call_waste(const question *q, const char *work, answer *a) {
  const char *was = strchr(q->image, ':');
  if (q->mutant == 0 || a->state != FA_PASS || !was || strcmp(was + 1, work) == 0) return;
  a->how = WASTE;
  snprintf(a->reason, sizeof a->reason, "products, loaded, stored, barriers: %s, not %s", work, was + 1);
}

/* Without the judge. False: the judge has to say. */
static bool look(const server *s, const question *q, answer *a) {
  static const fa_state state[] = {
      [FA_SUBJECT_OK] = FA_PASS,           [FA_SUBJECT_OOB] = FA_OOB,     [FA_SUBJECT_RACE] = FA_RACE,
      [FA_SUBJECT_DEADLOCK] = FA_DEADLOCK, [FA_SUBJECT_CRASH] = FA_CRASH, [FA_SUBJECT_REJECTED] = FA_FAIL};
  static fa_image now;
  char work[IMAGE_CHARS - 20];
  if (!fa_image_take(&s->cases.v[q->number], s->backend, s->self, &now)) return false;
  a->state = state[now.outcome.state];
  snprintf(a->kernels, sizeof a->kernels, "%.100s %.32s", now.outcome.kernel, now.outcome.backward_kernel);
  snprintf(a->reason, sizeof a->reason, "%.199s", now.outcome.text);
  clean(a->reason);
  print_work(&now.outcome.work, work, sizeof work);
  snprintf(a->image, sizeof a->image, "%016llx:%s", (unsigned long long)now.memory, work);
  if (q->mutant == 0 || a->state != FA_PASS) return true;
  if (strncmp(a->image, q->image, 17) != 0) return false;
  a->how = SAME;
  call_waste(q, work, a);
  return true;
}

static void say_who_judged(const fa_judged_how *how, answer *a) {
  snprintf(a->judge, sizeof a->judge, "%s", how->by == FA_JUDGED_BY_CPU ? how->left : "PASS");
  clean(a->judge);
}

/* The work is that of one more run, as mutant 0 had it: the judge's two runs have other schedules, which decide where the numbers of
 * dropout come from. */
static void judge(const server *s, const question *q, answer *a) {
  static fa_result r;
  static fa_image now;
  fa_error err = {""};
  char work[IMAGE_CHARS];
  const fa_run_config config = {
      .backend = s->backend, .backend_self = s->self, .judge = s->judge, .n_threads = 1, .schedule_seed = 1};
  *a = (answer){.state = FA_UNTESTED, .image = "-"};
  fa_result_init(&r);
  fa_run_case(&s->cases.v[q->number], &config, &r, &err);
  a->state = r.state;
  snprintf(a->kernels, sizeof a->kernels, "%s %.32s", r.kernel, r.backward_kernel);
  snprintf(a->reason, sizeof a->reason, "%.199s", r.reason[0] ? r.reason : r.notes);
  clean(a->reason);
  say_who_judged(&r.judged, a);
  if (a->state != FA_PASS || !fa_image_take(&s->cases.v[q->number], s->backend, s->self, &now)) return;
  print_work(&now.outcome.work, work, sizeof work);
  call_waste(q, work, a);
}

static double processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* SIGPROF after so much of the processor's time: it ends the process. */
static void limit(double seconds) {
  const struct itimerval t = {
      .it_value = {(time_t)seconds, 1 + (suseconds_t)(1e6 * (seconds - (double)(time_t)seconds))}};
  signal(SIGPROF, SIG_DFL);
  setitimer(ITIMER_PROF, &t, NULL);
}

/* Of the child. */
static void answer_to(const server *s, const question *q, int out) {
  answer a = {.state = FA_UNTESTED, .image = "-"};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!freopen("/dev/null", "w", stderr)) _exit(3); /* what asserts say of a mutant that dies */
  limit(q->seconds);
  const bool looks = !q->judged && (q->mutant == 0 || q->image[0] != '-');
  if (!looks || !fa_image_applies(&s->cases.v[q->number], s->backend, s->self) || !look(s, q, &a))
    judge(s, q, &a);
  a.seconds = processor_seconds();
  _exit(write(out, &a, sizeof a) == sizeof a ? 0 : 3);
}

static bool run(const server *s, const question *q, answer *a) {
  int pipes[2];
  if (pipe2(pipes, 0) != 0) return false;
  fflush(stdout);
  fa_mutant = q->mutant;
  const pid_t child = fork();
  if (child == 0) answer_to(s, q, pipes[1]);
  close(pipes[1]);
  if (child > 0) answer_wait(child, pipes[0], q->seconds, a);
  close(pipes[0]);
  return child > 0;
}

static bool read_question(const server *s, const char *line, question *q) {
  memset(q, 0, sizeof *q);
  if (sscanf(line, "%d %lld %lf %99s", &q->mutant, &q->number, &q->seconds, q->image) != 4) return false;
  q->judged = line[0] == '-';
  q->mutant = abs(q->mutant);
  return q->number >= 0 && q->number < s->cases.n;
}

static int fail(const fa_error *err) {
  fprintf(stderr, "serve: %s\n", err->text);
  return 2;
}

static void leave_backend(server *s) {
  if (s->self) s->backend->close(s->self);
  s->self = NULL;
}

/* text: what the line has behind "backend ". */
static fa_status enter_backend(server *s, char *text, fa_error *err) {
  text[strcspn(text, "\n")] = 0;
  char *arg = strchr(text, ':');
  if (arg) *arg++ = 0;
  leave_backend(s);
  s->backend = strcmp(text, fa_backend_mutant.name) == 0 ? &fa_backend_mutant : &fa_backend_host;
  return s->backend->open(arg, &s->self, err);
}

static int serve(server *s) {
  static const char enters[] = "backend ";
  char line[300];
  question q;
  fa_error err = {""};
  while (fgets(line, sizeof line, stdin)) {
    answer a = {.state = FA_UNTESTED};
    if (strncmp(line, enters, sizeof enters - 1) == 0) {
      if (enter_backend(s, line + sizeof enters - 1, &err) != FA_OK) return fail(&err);
      continue;
    }
    if (!s->self || !read_question(s, line, &q)) return 2;
    if (q.mutant == 0) memset(fa_mutant_reached, 0, FA_MUTANTS_MAX);
    if (!run(s, &q, &a)) return 3;
    answer_print(&a);
    for (int i = 1; q.mutant == 0 && i < FA_MUTANTS_MAX; ++i)
      if (fa_mutant_reached[i]) printf(" %d", i);
    printf("\n");
    fflush(stdout);
  }
  return 0;
}

static void print_case(const fa_case *c) {
  const char *place = c->place ? c->place : "", *slash = strrchr(place, '/');
  const char *file = slash ? slash + 1 : place;
  printf("case %.*s/%s\n", (int)strcspn(file, "."), file, c->name);
}

int main(int argc, char **argv) {
  server s = {.backend = &fa_backend_host};
  fa_error err = {""};
  if (argc < 3) return 2;
  s.judge = fa_judge_choice_named(argv[1]);
  fa_memory_startup();
  fa_blas_startup(argv);
  void *shared = mmap(NULL, FA_MUTANTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 3;
  fa_mutant_reached = shared;
  if (fa_judges_start(s.judge, 0, NULL, &err) != FA_OK) return fail(&err);
  for (int i = 2; i < argc; ++i)
    if (fa_case_file_load(argv[i], fa_generate, &s.cases, &err) != FA_OK) return fail(&err);
  for (int64_t i = 0; i < s.cases.n; ++i) print_case(&s.cases.v[i]);
  printf("ready\n");
  fflush(stdout);
  const int status = serve(&s);
  fa_case_list_free(&s.cases);
  leave_backend(&s);
  fa_judges_stop();
  return status;
}
