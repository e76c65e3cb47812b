/* One table defines the options, the commands that take them, and what --help prints about them. */
#include "fuzz/options/command.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
  RUN = 1,
  RANDOM = 2,
  REPRO = 4,
  CHECK = 8,
  GOLDEN = 16,
  BENCH = 32,
  LIST = 64,
  REPORT = 128,
  SHRINK = 256,
  PROBE = 512,
  RUNS = RUN | RANDOM | REPRO,
  JUDGES = RUNS | CHECK,
  ALL = 1023
};

static const struct {
  const char *name, *arguments, *does;
  unsigned bit;
} commands[] = {
    {"run", "--cases FILE...", "run every case of the files (- is stdin)", RUN},
    {"random", "--count N --seed S", "generate and run random cases; --seconds T runs a campaign", RANDOM},
    {"repro", "REPORT.json[:K]", "run failure K of a report again (default: all), exactly as reported",
     REPRO},
    {"check", "FILE.safetensors...", "judge recorded runs: outputs made elsewhere", CHECK},
    {"golden", "write|check DIR --cases FILE...",
     "write expected outputs, or verify that they still come out", GOLDEN},
    {"bench", "--cases FILE... | --backend ref",
     "time the kernels on the GPU, or the reference beside a matrix product", BENCH},
    {"list", "backends|profiles|fills|hypotheses|mutants|cases",
     "what this build and machine have; the cases of --cases", LIST},
    {"report", "FILE.json... [--html OUT ...]",
     "reports as one: its counts, also by kernel; or a page, JUnit XML, a merged report; --compare two",
     REPORT},
    {"shrink", "REPORT.json[:K] | CASE.json", "the smallest case that still fails in the same way", SHRINK},
    {"probe", "--backend NAME", "find out by asking what a kernel's conventions and arithmetic are", PROBE},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

typedef enum kind { FLAG, STRING, WORD, WORDS, COUNT, U64, SECONDS } kind;

static const struct option {
  const char *name;
  char letter; /* 0 = none */
  kind kind;
  const char *argument;
  unsigned commands;
  size_t offset;
  const char *does;
} options[] = {
#define FIELD(f) offsetof(fa_cli, f)
    {"cases", 0, WORDS, "FILE...", RUN | GOLDEN | BENCH | LIST, FIELD(cases), "case files; - is stdin"},
    {"case", 0, WORD, "JSON", RUN | GOLDEN | BENCH | SHRINK | LIST, FIELD(case_text),
     "one case, as its JSON object; repeatable"},
    {"backend", 0, WORD, "NAME", RUNS | BENCH | SHRINK | PROBE, FIELD(backend),
     "repeatable; default: cuda if usable, else host"},
    {"count", 0, COUNT, "N", RANDOM, FIELD(count), "how many cases"},
    {"seconds", 0, SECONDS, "T", RANDOM | SHRINK, FIELD(seconds), "go on for so long instead"},
    {"seed", 0, U64, "S", RANDOM, FIELD(seed), "64 bits (default 1); same seed, same cases"},
    {"profile", 0, STRING, "NAME", RANDOM, FIELD(profile), "kind of cases: list profiles"},
    {"as-drawn", 0, FLAG, NULL, RUN | RANDOM, FIELD(as_drawn),
     "skip random cases that the backend cannot run; else they are drawn again"},
    {"laws", 0, FLAG, NULL, RUN | RANDOM, FIELD(laws), "judge by laws between runs, not by the reference"},
    {"law", 0, WORD, "NAME", RUN | RANDOM, FIELD(law), "only this law; repeatable"},
    {"coverage", 0, FLAG, NULL, RUN | RANDOM, FIELD(coverage),
     "say how often each feature was among the cases"},
    {"emit", 0, STRING, "FILE", RANDOM, FIELD(emit), "write the cases that were made"},
    {"report", 0, STRING, "OUT.json", JUDGES | BENCH, FIELD(report), "write a JSON report"},
    {"resume", 0, FLAG, NULL, RUNS, FIELD(resume), "go on with the run that left OUT.json.journal"},
    {"require", 0, STRING, "all|N%|FILE", JUDGES | REPORT, FIELD(require),
     "fail unless all, so many, or what the file says were judged"},
    {"waivers", 0, STRING, "FILE", RUNS, FIELD(waivers), "known failures: reported, not failed"},
    {"filter", 0, STRING, "REGEX", JUDGES | GOLDEN | BENCH, FIELD(filter),
     "only cases whose name matches (POSIX extended)"},
    {"shard", 0, STRING, "I/N", RUN | RANDOM | CHECK, FIELD(shard), "every N-th case from I, 0 <= I < N"},
    {"jobs", 'j', COUNT, "N", RUNS | BENCH | SHRINK, FIELD(jobs), "worker processes (default: processors)"},
    {"timeout", 0, SECONDS, "SEC", RUNS | SHRINK | PROBE, FIELD(timeout_s),
     "per case (default 300), then HANG"},
    {"fail-fast", 'x', FLAG, NULL, JUDGES, FIELD(fail_fast), "stop after the first failure"},
    {"keep", 0, STRING, "DIR", RUNS, FIELD(keep), "dump the tensors of failures as recorded runs"},
    {"end-to-end", 0, FLAG, NULL, JUDGES | SHRINK, FIELD(end_to_end),
     "also judge gradients from the reference's forward"},
    {"schedule-seed", 0, U64, "S", RUNS | SHRINK, FIELD(schedule_seed),
     "host: order of fibers and of completions"},
    {"no-isolate", 0, FLAG, NULL, RUNS | SHRINK, FIELD(no_isolate),
     "run in this process: no crash guard, no timeout"},
    {"cold", 0, FLAG, NULL, BENCH, FIELD(cold), "empty the GPU's L2 cache before every run"},
    {"shrink", 0, FLAG, NULL, RUN | RANDOM, FIELD(shrink), "afterwards, shrink a few failures of each kind"},
    {"shrunk", 0, FLAG, NULL, REPRO, FIELD(shrunk), "what the failures were shrunk to, where they were"},
    {"out", 'o', STRING, "FILE", SHRINK, FIELD(out), "write the shrunk cases as a case file"},
    {"html", 0, STRING, "OUT.html", JUDGES | REPORT, FIELD(html), "write a page that needs nothing else"},
    {"junit", 0, STRING, "OUT.xml", REPORT, FIELD(junit), "write JUnit XML"},
    {"compare", 0, FLAG, NULL, REPORT, FIELD(compare),
     "two reports: what is new, fixed or slower in the second"},
    {"no-times", 0, FLAG, NULL, REPORT, FIELD(no_times), "set every time to 0, to compare runs"},
    {"merge", 0, STRING, "OUT.json", REPORT, FIELD(merge), "write one report of all"},
    {"dtype", 0, WORD, "NAME", PROBE, FIELD(dtype), "f16, bf16 or f32; repeatable; default: all"},
    {"json", 0, STRING, "FILE", PROBE, FIELD(json), "write the findings"},
    {"strict", 0, FLAG, NULL, PROBE, FIELD(strict),
     "exit 1 if a finding contradicts what is declared or asked for"},
    {"no-probe", 0, FLAG, NULL, RUNS | SHRINK, FIELD(no_probe),
     "take what a kernel has not declared as usual, instead of finding it out"},
    {"no-explain", 0, FLAG, NULL, RUNS, FIELD(no_explain),
     "do not look for what a failing kernel computed instead"},
    {"verbose", 'v', FLAG, NULL, ALL, FIELD(verbose),
     "all of a failure; statistics, notes, skips by reason, counts by kernel"},
    {"quiet", 'q', FLAG, NULL, ALL, FIELD(quiet), "only failures and the last line"},
    {"color", 0, STRING, "WHEN", ALL, FIELD(color), "auto, always, never"},
    {"no-progress", 0, FLAG, NULL, ALL, FIELD(no_progress), "no line that shows how the run is going"},
    {"version", 0, FLAG, NULL, ALL, FIELD(version), "print the version"},
    {"help", 'h', FLAG, NULL, ALL, FIELD(help), "print this"},
#undef FIELD
};
enum { N_OPTIONS = sizeof options / sizeof *options };
_Static_assert(N_OPTIONS <= 64, "fa_cli.given has a bit for each");

void fa_cli_print_help(FILE *out) {
  fputs("fa-verify: judges attention kernels against a float64 reference, element by element.\n\n"
        "  fa-verify --cases cases/causal.json       short for: fa-verify run --cases ...\n\ncommands:\n",
        out);
  for (int i = 0; i < N_COMMANDS; ++i)
    fprintf(out, "  %-7s %-37s %s\n", commands[i].name, commands[i].arguments, commands[i].does);
  fputs("\noptions:\n", out);
  for (int i = 0; i < N_OPTIONS; ++i) {
    char text[64];
    snprintf(text, sizeof text, "%s%c%s--%s %s", options[i].letter ? "-" : "",
             options[i].letter ? options[i].letter : ' ', options[i].letter ? ", " : "   ", options[i].name,
             options[i].argument ? options[i].argument : "");
    fprintf(out, "  %-28s %s\n", text, options[i].does);
  }
  fputs(
      "\nA shard may also come from FA_SHARD_INDEX and FA_SHARD_TOTAL, TEST_SHARD_INDEX and "
      "TEST_TOTAL_SHARDS,\n"
      "GTEST_SHARD_INDEX and GTEST_TOTAL_SHARDS, or Slurm's SLURM_ARRAY_TASK_ID, _MIN and _COUNT.\n\n"
      "Exit codes: 0 all judged cases passed and at least one was judged; 1 a mismatch, or --require is not "
      "met;\n"
      "2 usage or malformed input; 3 infrastructure (device lost, out of memory, I/O); 4 nothing was "
      "judged.\n"
      "An interrupt (^C) finishes the running cases, reports what is done, keeps the journal for --resume, "
      "and\n"
      "gives 130; a second one stops at once.\n",
      out);
}

/* ---- nearest name ---- */

static int distance(const char *a, const char *b) {
  enum { MAX = 40 };
  int row[MAX + 1];
  int na = (int)strnlen(a, MAX), nb = (int)strnlen(b, MAX);
  for (int j = 0; j <= nb; ++j) row[j] = j;
  for (int i = 1; i <= na; ++i) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= nb; ++j) {
      int replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      int best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
      row[j] = best < replace ? best : replace;
    }
  }
  return row[nb];
}

static int unknown_option(const char *given) {
  const char *name = given + strspn(given, "-");
  char bare[64];
  snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, "="), name);
  int best = 0;
  for (int i = 1; i < N_OPTIONS; ++i)
    if (distance(bare, options[i].name) < distance(bare, options[best].name)) best = i;
  return fa_cli_usage_error("unknown option %s; the nearest is --%s", given, options[best].name);
}

static int unknown_command(const char *given) {
  int best = 0;
  for (int i = 1; i < N_COMMANDS; ++i)
    if (distance(given, commands[i].name) < distance(given, commands[best].name)) best = i;
  return fa_cli_usage_error("unknown command %s; the nearest is %s", given, commands[best].name);
}

/* ---- values ---- */

static void add_word(fa_words *w, const char *text) {
  const char **bigger = realloc(w->v, (size_t)(w->n + 1) * sizeof *w->v);
  FA_ASSERT(bigger);
  w->v = bigger;
  w->v[w->n++] = text;
}

static int set_value(fa_cli *cli, const struct option *o, const char *text) {
  void *field = (char *)cli + o->offset;
  char *end = NULL;
  errno = 0;
  if (o->kind == WORD || o->kind == WORDS) {
    add_word(field, text);
  } else if (o->kind == STRING) {
    *(const char **)field = text;
  } else if (o->kind == COUNT) {
    long long n = strtoll(text, &end, 10);
    if (errno || *end || end == text || n < 1 || n > 1000000000000)
      return fa_cli_usage_error("--%s %s: a whole number >= 1 is needed", o->name, text);
    *(int64_t *)field = n;
  } else if (o->kind == U64) {
    unsigned long long n = strtoull(text, &end, 0);
    if (errno || *end || end == text || text[strspn(text, " \t")] == '-')
      return fa_cli_usage_error("--%s %s: a whole number from 0 to 2^64-1 is needed", o->name, text);
    *(uint64_t *)field = n;
  } else {
    double x = strtod(text, &end);
    if (errno || *end || end == text || !(x > 0) || !isfinite(x))
      return fa_cli_usage_error("--%s %s: a number of seconds > 0 is needed", o->name, text);
    *(double *)field = x;
  }
  return 0;
}

static bool looks_like_option(const char *text) {
  return text[0] == '-' && text[1] != 0;
}

static void set_flag(fa_cli *cli, const struct option *o) {
  *(bool *)((char *)cli + o->offset) = true;
  cli->given |= (uint64_t)1 << (o - options);
}

/* -qv: letters of options without a value. False: not all are. */
static bool set_flags(fa_cli *cli, const char *letters) {
  const struct option *found[8];
  int n = 0;
  for (; letters[n] && n < 8; ++n) {
    found[n] = NULL;
    for (int i = 0; i < N_OPTIONS; ++i)
      if (options[i].letter == letters[n] && options[i].kind == FLAG) found[n] = &options[i];
    if (!found[n]) return false;
  }
  if (letters[n]) return false;
  for (int i = 0; i < n; ++i) set_flag(cli, found[i]);
  return true;
}

/* Parses the option at argv[*at] with its value; *at ends on the last argument used. */
static int parse_option(fa_cli *cli, int *at) {
  const char *given = cli->argv[*at], *value = NULL;
  const struct option *o = NULL;
  bool is_long = given[1] == '-';
  size_t n = is_long ? strcspn(given + 2, "=") : 0;
  for (int i = 0; i < N_OPTIONS && !o; ++i) {
    if (is_long && strlen(options[i].name) == n && strncmp(given + 2, options[i].name, n) == 0)
      o = &options[i];
    if (!is_long && options[i].letter == given[1] && (given[2] == 0 || options[i].argument)) o = &options[i];
  }
  if (!o && !is_long && set_flags(cli, given + 1)) return 0;
  if (!o) return unknown_option(given);
  if (is_long && given[2 + n] == '=') value = given + 3 + n;
  if (!is_long && given[2]) value = given + 2;
  if (o->kind == FLAG) {
    if (value) return fa_cli_usage_error("--%s takes no value", o->name);
    set_flag(cli, o);
    return 0;
  }
  cli->given |= (uint64_t)1 << (o - options);
  if (!value) {
    if (*at + 1 >= cli->argc) return fa_cli_usage_error("--%s needs a value: %s", o->name, o->argument);
    value = cli->argv[++*at];
    if (looks_like_option(value) && o->kind != WORD)
      return fa_cli_usage_error("--%s needs a value: %s; %s is an option", o->name, o->argument, value);
  }
  int code = set_value(cli, o, value);
  while (code == 0 && o->kind == WORDS && *at + 1 < cli->argc && !looks_like_option(cli->argv[*at + 1]))
    code = set_value(cli, o, cli->argv[++*at]);
  return code;
}

static bool is_one_inode(const struct stat *x, const struct stat *y) {
  return x->st_ino == y->st_ino && x->st_dev == y->st_dev;
}

/* Returns where the name begins; folder receives the part before it. */
static const char *split_path(const char *path, char *folder, size_t size) {
  const char *slash = strrchr(path, '/');
  snprintf(folder, size, "%.*s/.", slash ? (int)(slash - path) : 1, slash ? path : ".");
  return slash ? slash + 1 : path;
}

/* True also for two names of one file. Special files such as /dev/null may be given for any number of
 * outputs. */
static bool is_same_file(const char *a, const char *b) {
  struct stat x, y;
  char folder[2][4096];
  const bool there = stat(a, &x) == 0;
  if (there && !S_ISREG(x.st_mode)) return false;
  if (strcmp(a, b) == 0) return true;
  if (there) return stat(b, &y) == 0 && is_one_inode(&x, &y);
  const char *name_a = split_path(a, folder[0], sizeof folder[0]);
  const char *name_b = split_path(b, folder[1], sizeof folder[1]);
  return strcmp(name_a, name_b) == 0 && stat(folder[0], &x) == 0 && stat(folder[1], &y) == 0 &&
         is_one_inode(&x, &y);
}

/* Two outputs to one file would leave only the last. */
static int check_outputs_differ(const fa_cli *cli) {
  const struct {
    const char *name, *path;
  } out[] = {{"emit", cli->emit}, {"report", cli->report}, {"out", cli->out},
             {"html", cli->html}, {"junit", cli->junit},   {"merge", cli->merge}};
  enum { N = sizeof out / sizeof *out };
  for (int i = 0; i < N; ++i)
    for (int j = i + 1; j < N; ++j)
      if (out[i].path && out[j].path && is_same_file(out[i].path, out[j].path))
        return fa_cli_usage_error("--%s and --%s name one file: %s", out[i].name, out[j].name, out[j].path);
  return 0;
}

/* Every option given must apply to the command. */
static int check_options_fit(const fa_cli *cli, unsigned bit) {
  for (int i = 0; i < N_OPTIONS; ++i)
    if (cli->given >> i & 1 && !(options[i].commands & bit))
      return fa_cli_usage_error("--%s means nothing to the command %s", options[i].name, cli->command);
  return check_outputs_differ(cli);
}

int fa_cli_parse(fa_cli *cli, int argc, char **argv) {
  const fa_backend *const *backends = cli->backends;
  *cli = (fa_cli){
      .program = argv[0], .argc = argc, .argv = argv, .backends = backends, .timeout_s = 300, .seed = 1};
  bool options_over = false;
  for (int i = 1; i < argc; ++i) {
    if (!options_over && strcmp(argv[i], "--") == 0) {
      options_over = true;
    } else if (!options_over && looks_like_option(argv[i])) {
      int code = parse_option(cli, &i);
      if (code) return code;
    } else if (!cli->command) {
      cli->command = argv[i];
    } else {
      add_word(&cli->words, argv[i]);
    }
  }
  if (cli->help || cli->version) return 0;
  if (!cli->command && (cli->cases.n || cli->case_text.n)) cli->command = "run";
  if (!cli->command) {
    fa_cli_print_help(stderr);
    return FA_EXIT_USAGE;
  }
  if (cli->color && strcmp(cli->color, "auto") && strcmp(cli->color, "always") && strcmp(cli->color, "never"))
    return fa_cli_usage_error("--color %s: auto, always or never is allowed", cli->color);
  for (int i = 0; i < N_COMMANDS; ++i)
    if (strcmp(commands[i].name, cli->command) == 0) return check_options_fit(cli, commands[i].bit);
  if (strcmp(cli->command, "help") == 0) {
    cli->help = true;
    return 0;
  }
  return unknown_command(cli->command);
}

void fa_cli_free(fa_cli *cli) {
  free(cli->words.v);
  free(cli->cases.v);
  free(cli->case_text.v);
  free(cli->backend.v);
  free(cli->law.v);
  free(cli->dtype.v);
}
