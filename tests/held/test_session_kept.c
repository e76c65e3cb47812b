/* Commands, one after the other in one process: each gives back its memory, its files and its subjects, however it ends; and what it has
 * of both while it runs. */
#include "cases/threads/processors.h"
#include "fuzz/cli/commands.h"
#include "tests/held/guarded.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int n_open; /* subjects */

/* Of the runs that are wrong, in order: blocks that are taken, and how many threads they may use. */
enum { SEEN = 100 };
static struct {
  long live[SEEN];
  int threads, n;
} seen;

static fa_status open_subject(const char *arg, void **self, fa_error *err) {
  ++n_open;
  return fa_backend_ref_f32.open(arg ? NULL : arg, self, err);
}

static void close_subject(void *self) {
  --n_open;
  fa_backend_ref_f32.close(self);
}

static fa_status run_wrong(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                           fa_outcome *out, fa_error *err) {
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  const int64_t first[FA_MAX_RANK] = {0};
  seen.threads = opt->n_threads;
  if (p->seqlen_q == 13 && seen.n < SEEN) seen.live[seen.n++] = guarded_live();
  if (status == FA_OK && p->seqlen_q == 13) fa_tensor_set(&t->t[FA_T_O], first, 99);
  return status;
}

#define CASES                                                                                                \
  " --case {\"name\":\"a\",\"seqlen_q\":3,\"head_dim\":8,\"backward\":false}"                                \
  " --case {\"name\":\"b\",\"seqlen_q\":13,\"head_dim\":8,\"backward\":false}"

/* Each after those before it; words are separated by spaces. */
static const char *const commands[] = {
    "run -q --no-isolate --backend wrong" CASES,
    "run -q --no-isolate --backend ref-f32 --report r.json --html h.html --filter a" CASES,
    "run -q --no-isolate --backend wrong --report r.json --html h.html --keep kept --no-explain" CASES,
    "run -q --no-isolate --backend wrong --report r.json --resume --no-explain" CASES,
    "run -q --no-isolate --backend wrong --report r.json --resume --backend ref-f32" CASES,
    "run -q --no-isolate --backend wrong --baseline r.json --annotations github --require all "
    "--no-explain" CASES,
    "run -q --no-isolate --backend wrong --report x.json -x --no-explain" CASES
    " --case {\"name\":\"c\",\"seqlen_q\":2,\"head_dim\":8,\"backward\":false}",
    "run -q --no-isolate --backend wrong --report x.json --resume --no-explain --waivers w.json" CASES
    " --case {\"name\":\"c\",\"seqlen_q\":2,\"head_dim\":8,\"backward\":false}",
    "run -q --no-isolate --backend wrong --waivers torn.json" CASES,
    "run -q --no-isolate --backend wrong --waivers w.json --shrink --no-explain" CASES,
    "run -q --no-isolate --backend wrong --backend ref-f32 --law repeat --law head-permutation" CASES,
    "random -q --no-isolate --count 3 --profile causal --backend ref-f32 --emit e.json --coverage --report "
    "q.json",
    "random -q --no-isolate --count 3 --profile causal --backend ref-f32 --as-drawn --filter 1-1 --emit "
    "e.json",
    "random -q --no-isolate --seconds 0.01 --profile causal --backend ref-f32 --emit e.json --report q.json",
    "repro -q --no-isolate r.json --no-explain --report y.json",
    "run -q --no-isolate --backend wrong --sample rows=2,strips=1 --no-explain" CASES,
    "run -q --backend nobody" CASES,
    "run -q --backend ref-f32 --report nowhere/r.json" CASES,
};

static int n_files(void) {
  int n = 0;
  DIR *d = opendir("/proc/self/fd");
  REQUIRE(d);
  while (readdir(d)) ++n;
  closedir(d);
  return n;
}

static void run(const char *text) {
  static char words[2000];
  char *argv[40] = {"fa-verify"};
  static fa_backend wrong;
  static const fa_backend *const backends[] = {&wrong, &fa_backend_ref_f32, NULL};
  int argc = 1;
  wrong = fa_backend_ref_f32;
  wrong.name = "wrong", wrong.open = open_subject, wrong.close = close_subject, wrong.run = run_wrong;
  snprintf(words, sizeof words, "%s", text);
  for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
  argv[argc] = NULL;
  fa_cli_main(argc, argv, backends);
  fflush(stdout);
}

static void write_file(const char *name, const char *text) {
  FILE *f = fopen(name, "w");
  REQUIRE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void check_all(void) {
  for (size_t i = 0; i < sizeof commands / sizeof *commands; ++i) {
    const bool resumes = strstr(commands[i], "x.json --resume");
    for (int again = 0; again < 2; ++again) { /* the first keeps what the program keeps for ever */
      if (resumes && again) continue;         /* there is nothing left to go on with */
      const long before = guarded_live();
      const int files = n_files();
      run(commands[i]);
      CHECK_MSG((again == 0 && !resumes) || guarded_live() == before, "%s: %ld blocks are kept", commands[i],
                guarded_live() - before);
      CHECK_MSG(n_files() == files && n_open == 0, "%s: %d files, %d subjects", commands[i],
                n_files() - files, n_open);
    }
  }
}

enum { MANY = 40 };

/* Of a failure that no report is made of a few words are kept, of a report's much more. */
static void check_kept_of_failures(void) {
  enum { RUNS = 2 };
  for (int reported = 0; reported < 2; ++reported) {
    seen.n = 0;
    run(reported ? "run -q --no-isolate --backend wrong --no-explain --cases many.json --report many-r.json"
                 : "run -q --no-isolate --backend wrong --no-explain --cases many.json");
    REQUIRE(seen.n == RUNS * MANY);
    const long each = (seen.live[RUNS * MANY - 1] - seen.live[RUNS + 1]) / (MANY - 2);
    CHECK_MSG(reported ? each > 50 : each < 10, "%ld blocks", each);
  }
}

/* One case at a time has all processors. */
static void check_threads(void) {
  seen.threads = 0;
  run("run -q --no-isolate --backend wrong" CASES);
  CHECK_MSG(seen.threads == fa_processors(), "%d threads of %d", seen.threads, fa_processors());
}

static void write_many(void) {
  FILE *f = fopen("many.json", "w");
  REQUIRE(f && fputs("{\"fa_cases\":1,\"cases\":[", f) >= 0);
  for (int i = 0; i < MANY; ++i)
    fprintf(f, "%s{\"name\":\"m%d\",\"seqlen_q\":13,\"head_dim\":8,\"backward\":false}", i ? "," : "", i);
  REQUIRE(fputs("]}", f) >= 0 && fclose(f) == 0);
}

int main(void) {
  char folder[] = "/tmp/fa-test-kept-XXXXXX", line[100];
  cJSON_InitHooks(&(cJSON_Hooks){malloc, free}); /* a library of its own would take its memory elsewhere */
  const int out = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
  REQUIRE(mkdtemp(folder) && chdir(folder) == 0 && dup2(nowhere, STDOUT_FILENO) >= 0);
  write_file("w.json", "{\"fa_waivers\":1,\"waivers\":[{\"match\":{\"name\":\"b\"},\"states\":[\"FAIL\"],"
                       "\"reason\":\"known\",\"expires\":\"2999-01-01\"}]}");
  write_file("torn.json",
             "{\"fa_waivers\":1,\"waivers\":[{\"match\":{\"name\":\"b\"},\"states\":[\"FAIL\"]}]}");
  write_many();
  check_all();
  check_kept_of_failures();
  check_threads();
  REQUIRE(chdir("/") == 0);
  snprintf(line, sizeof line, "rm -r %s", folder);
  REQUIRE(system(line) == 0 && dup2(out, STDOUT_FILENO) >= 0);
  return check_done();
}
