/* Applies other projects' acceptance rules to the mutants: the kernels run on the same cases, and every rule
 * is asked whether it would notice the bug.
 *
 *   rival_rules [--zeroed] [--device hopper] [--names FILE] [--switched] FILE.json... -- NAME...
 *
 * Runs every case on mutant:unchanged and on each mutant:NAME. A line per mutant and rule:
 *   name <tab> rule <tab> first case that the rule rejects, or - <tab> runs compared <tab> runs stopped
 * and one per rule for `unchanged` with a number instead of a name: how many cases the rule rejects for
 * kernels without a bug. Such cases say nothing about mutants and are skipped for that rule.
 *
 *   --zeroed  outputs hold zeros before the run, as fresh memory usually does, instead of NaN
 *   --device  mutants that need host:hopper, and unchanged_hopper instead of `unchanged`; its lines are
 *             named `unchanged` too
 *   --switched  names are numbers of mutants that tests/mutate has made in this program's own kernels; each runs in a
 *             process of its own, because it may end it or never end, and only where a case reaches it
 *
 * The rules compare with attention in float64, gradients end to end:
 *   fa2x       max|got - exact| <= 2 max|rounded - exact|, rounded: standard attention in the element type;
 *              gradients 3 times with groups of heads or variable length, 8 times with ALiBi; no LSE, no f32.
 *              Over a cache 3 times, 5 with ALiBi, and 1e-5; appended keys within 1e-3, values and everything
 *              else bit for bit
 *   allclose   |got - exact| <= 1e-2 + 1e-2 |exact|, LSE too
 *   xformers   fixed tolerances: forward f16 4e-3 + 4e-4 |exact|, bf16 2e-2 + 5e-3 |exact|, f32 3e-4 +
 *              2e-5 |exact|, LSE 2e-4; gradients f16 9e-2 + 2e-2 |exact|, bf16 0.7 + 0.1 |exact|, f32 5e-4 +
 *              1e-4 |exact|
 *   xformers2  the same after gradients were loosened to f16 0.2, bf16 0.9
 * and, of calls with operands of 8 bits alone, for which projects loosen their tests:
 *   allclose5  |got - exact| <= 5e-2 + 5e-2 |exact|: between the numbers of FlashInfer's and of FBGEMM's
 *   cosine     cosine similarity of got and exact, each tensor a vector, at least 0.99
 *   norm2      2-norm of got - exact at most 5e-2 of exact's
 */
#include "cases/codec/file.h"
#include "cases/data/build.h"
#include "fuzz/generate/draw.h"
#include "gpu/backend.h"
#include "tests/mutants/rules.h"
#include "tests/mutate/switch.h"
#include "tests/support/standard_attention.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SUBJECTS = 512, MOST_SECONDS = 10 };
static const char *const rule_name[] = {"fa2x",      "allclose", "xformers", "xformers2",
                                        "allclose5", "cosine",   "norm2"};
#pragma weak fa_mutant /* programs without mutants of their own have neither */
#pragma weak fa_mutant_reached

static const fa_backend *backend;
static bool switched;
static uint64_t schedule_seed; /* of the executor; odd: kernels for sm_90a fetch tiles in any order */

typedef struct subject {
  const char *name;
  void *self;
  char killer[N_RULES][256]; /* "" = none yet */
  int64_t n_rejected[N_RULES], n_compared, n_stopped;
} subject;

/* ---- one case ---- */

typedef struct trial {
  const fa_case *c;
  fa_tensors pristine;
  standard_outputs exact, rounded;
  bool *ignore[FA_T_COUNT]; /* elements that the unchanged kernels leave unwritten */
  bool useless[N_RULES];    /* the rule rejects the unchanged kernels */
  bool zeroed;
} trial;

/* K and V: the caches of a call that appends. */
static const fa_tensor_id outputs[] = {FA_T_O,
                                       FA_T_LSE,
                                       FA_T_DQ,
                                       FA_T_DK,
                                       FA_T_DV,
                                       FA_T_DBIAS,
                                       FA_T_K,
                                       FA_T_V,
                                       FA_T_DBUFFER_0,
                                       FA_T_DBUFFER_0 + 1,
                                       FA_T_DBUFFER_0 + 2,
                                       FA_T_DBUFFER_0 + 3,
                                       FA_T_DBUFFER_0 + 4,
                                       FA_T_DBUFFER_0 + 5,
                                       FA_T_DBUFFER_0 + 6,
                                       FA_T_DBUFFER_0 + 7};
enum { N_OUTPUTS = sizeof outputs / sizeof *outputs };

static const double *array_of(const standard_outputs *s, fa_tensor_id id) {
  const double *const all[N_OUTPUTS] = {s->o, s->lse, s->dq, s->dk, s->dv, s->dbias, s->k, s->v};
  if (id >= FA_T_DBUFFER_0 && id <= FA_T_DBUFFER_LAST) return s->dbuffer[id - FA_T_DBUFFER_0];
  for (int i = 0; i < N_OUTPUTS; ++i)
    if (outputs[i] == id) return all[i];
  return NULL;
}

static void clear_outputs(const trial *t, fa_tensors *set) {
  for (int i = 0; t->zeroed && i < N_OUTPUTS; ++i) {
    const fa_tensor *x = &set->t[outputs[i]];
    if (!fa_tensor_id_is_output(outputs[i])) continue;
    int64_t index[FA_MAX_RANK];
    for (int64_t e = 0; e < fa_tensor_count(x); ++e) {
      fa_tensor_unravel(x, e, index);
      fa_tensor_set(x, index, 0);
    }
  }
}

/* Runs the case. False: the executor stopped it. */
static bool run(const trial *t, subject *s, fa_tensors *out) {
  const fa_run_options options = {.passes = FA_PASS_FORWARD | (t->c->problem.backward ? FA_PASS_BACKWARD : 0),
                                  .n_threads = 1,
                                  .schedule_seed = schedule_seed};
  fa_outcome outcome = {0};
  fa_error err;
  FA_ASSERT(fa_tensors_clone(out, &t->pristine, &err) == FA_OK);
  clear_outputs(t, out);
  const fa_status status = backend->run(s->self, &t->c->problem, out, &options, &outcome, &err);
  return status == FA_OK && outcome.state == FA_SUBJECT_OK;
}

static void find_unwritten(trial *t, const fa_tensors *got) {
  for (int i = 0; i < N_OUTPUTS; ++i) {
    const fa_tensor *x = &got->t[outputs[i]];
    const int64_t n = fa_tensor_count(x);
    int64_t index[FA_MAX_RANK];
    if (!fa_tensor_id_is_output(outputs[i])) continue; /* a cache */
    t->ignore[outputs[i]] = calloc((size_t)n + 1, 1);
    FA_ASSERT(t->ignore[outputs[i]]);
    for (int64_t e = 0; e < n; ++e) {
      fa_tensor_unravel(x, e, index);
      t->ignore[outputs[i]][e] = fa_tensor_is_poison(x, index, FA_POISON_A);
    }
  }
}

static void judge(const trial *t, const fa_tensors *got, bool *rejects) {
  for (int i = 0; i < N_OUTPUTS; ++i) {
    const fa_tensor_id id = outputs[i];
    if (!got->t[id].data || !array_of(&t->exact, id)) continue;
    fa_rules_judge(&t->c->problem, id, &got->t[id], array_of(&t->exact, id), array_of(&t->rounded, id),
                   t->ignore[id], rejects);
  }
}

/* What the rules say of one run. */
typedef struct finding {
  bool compared, rejects[N_RULES];
} finding;

static finding look(trial *t, subject *s, bool is_control) {
  fa_tensors got = {0};
  finding f = {.compared = run(t, s, &got)};
  if (f.compared && is_control) find_unwritten(t, &got);
  if (f.compared) judge(t, &got, f.rejects);
  fa_tensors_free(&got);
  return f;
}

/* The same of a mutant of the program's own kernels, in a process of its own. */
static finding look_switched(trial *t, subject *s) {
  finding f = {false};
  int pipes[2];
  FA_ASSERT(pipe(pipes) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const struct itimerval limit = {.it_value = {MOST_SECONDS, 0}};
    signal(SIGPROF, SIG_DFL);
    setitimer(ITIMER_PROF, &limit, NULL);
    fa_mutant = atoi(s->name);
    f = look(t, s, false);
    _exit(write(pipes[1], &f, sizeof f) == sizeof f ? 0 : 1);
  }
  close(pipes[1]);
  if (child < 0 || read(pipes[0], &f, sizeof f) != sizeof f) f = (finding){false};
  close(pipes[0]);
  waitpid(child, NULL, 0);
  return f;
}

static bool is_wanted(const trial *t, const subject *s) {
  if (switched && !fa_mutant_reached[atoi(s->name)]) return false;
  for (int rule = 0; rule < N_RULES; ++rule)
    if (!s->killer[rule][0] && !t->useless[rule]) return true;
  return false;
}

static void try_subject(trial *t, subject *s, bool is_control) {
  if (!is_control && !is_wanted(t, s)) return;
  const finding f = switched && !is_control ? look_switched(t, s) : look(t, s, is_control);
  if (!f.compared) {
    s->n_stopped++;
    return;
  }
  s->n_compared++;
  for (int rule = 0; rule < N_RULES; ++rule) {
    if (!f.rejects[rule] || t->useless[rule]) continue;
    if (is_control) t->useless[rule] = true;
    if (s->n_rejected[rule]++ == 0) snprintf(s->killer[rule], sizeof s->killer[rule], "%s", t->c->name);
  }
}

/* subjects[0]: the control. */
static void try_case(const fa_case *c, bool zeroed, subject *subjects, int n_subjects) {
  trial t = {.c = c, .zeroed = zeroed};
  fa_error err;
  for (int rule = ALLCLOSE_EIGHT; rule < N_RULES; ++rule) t.useless[rule] = !c->problem.quantized.present;
  char reason[256];
  const unsigned passes = backend->supports(subjects[0].self, &c->problem, reason, sizeof reason);
  const unsigned wanted = FA_PASS_FORWARD | (c->problem.backward ? FA_PASS_BACKWARD : 0);
  if ((passes & wanted) != wanted || c->expect == FA_EXPECT_REJECT) return;
  FA_ASSERT(fa_case_build(c, &t.pristine, &err) == FA_OK);
  standard_attention(&c->problem, &t.pristine, false, &t.exact);
  standard_attention(&c->problem, &t.pristine, true, &t.rounded);
  if (switched) memset(fa_mutant_reached, 0, FA_MUTANTS_MAX);
  for (int i = 0; i < n_subjects; ++i) try_subject(&t, &subjects[i], i == 0);
  standard_outputs_free(&t.exact);
  standard_outputs_free(&t.rounded);
  fa_tensors_free(&t.pristine);
  for (int i = 0; i < FA_T_COUNT; ++i) free(t.ignore[i]);
}

static void print(const subject *subjects, int n) {
  for (int i = 0; i < n; ++i)
    for (int rule = 0; rule < N_RULES; ++rule) {
      const subject *s = &subjects[i];
      char count[32];
      snprintf(count, sizeof count, "%lld", (long long)s->n_rejected[rule]);
      printf("%s\t%s\t%s\t%lld\t%lld\n", s->name, rule_name[rule],
             i == 0               ? count
             : s->killer[rule][0] ? s->killer[rule]
                                  : "-",
             (long long)s->n_compared, (long long)s->n_stopped);
    }
}

/* Uses the table of backends, so that the host executor, which mutants call, is linked into the program. */
static void find_backend(const char *name) {
  for (int i = 0; fa_backends[i]; ++i)
    if (strcmp(fa_backends[i]->name, name) == 0) backend = fa_backends[i];
  FA_ASSERT(backend);
}

/* True if the case's name is a line of the file, or there is no file. */
static bool is_named(const char *path, const char *name) {
  char line[1200];
  bool found = !path;
  FILE *f = path ? fopen(path, "re") : NULL;
  FA_ASSERT(f || !path);
  while (f && !found && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    found = strcmp(line, name) == 0;
  }
  if (f) fclose(f);
  return found;
}

static fa_status open_subject(subject *s, const char *device, fa_error *err) {
  char name[128];
  if (switched) return backend->open(device, &s->self, err);
  const bool control = strcmp(s->name, "unchanged") == 0;
  /* without a bug, the variants of a device's kernels are in one library */
  snprintf(name, sizeof name, "%s%s%.*s%s%s", s->name, device && control ? "_" : "",
           device && control ? (int)strcspn(device, "=") : 0, device ? device : "", device ? "," : "",
           device ? device : "");
  return backend->open(name, &s->self, err);
}

int main(int argc, char **argv) {
  static subject subjects[MAX_SUBJECTS];
  fa_case_list cases = {0};
  fa_error err = {""};
  const char *names = NULL, *device = NULL;
  bool zeroed = false;
  int n = 0, i = 1;
  for (; i < argc && strcmp(argv[i], "--") != 0; ++i) {
    if (strcmp(argv[i], "--zeroed") == 0)
      zeroed = true;
    else if (strcmp(argv[i], "--switched") == 0)
      switched = true;
    else if (strcmp(argv[i], "--names") == 0 && i + 1 < argc)
      names = argv[++i];
    else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
      device = argv[++i], schedule_seed = 1;
    else if (fa_case_file_load(argv[i], fa_generate, &cases, &err) != FA_OK)
      goto failed;
  }
  find_backend(switched ? "host" : "mutant");
  FA_ASSERT(!switched || (&fa_mutant && &fa_mutant_reached));
  subjects[n++].name = "unchanged";
  for (++i; i < argc && n < MAX_SUBJECTS; ++i) subjects[n++].name = argv[i];
  for (int k = 0; k < n; ++k)
    if (open_subject(&subjects[k], device, &err) != FA_OK) goto failed;
  for (int64_t k = 0; k < cases.n; ++k)
    if (is_named(names, cases.v[k].name)) try_case(&cases.v[k], zeroed, subjects, n);
  print(subjects, n);
  for (int k = 0; k < n; ++k) backend->close(subjects[k].self);
  fa_case_list_free(&cases);
  return 0;
failed:
  fprintf(stderr, "rival_rules: %s\n", err.text);
  return 2;
}
