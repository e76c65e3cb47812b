/* What would be launched, without launching it: for every case the kernels of its forward and backward pass
 * with their grids and parameters, as text by which two builds can be compared.
 *
 *   plan_dump [--full] [--filter TEXT] SUBJECT CASES.json...
 *
 * SUBJECT: host or host:ARGUMENT; or cuda, a fake device (fake_cuda.h), which is an H100 unless the argument
 * says otherwise (cuda:sm_80,processors=108,shared=163); cuda:off has no kernels for sm_90a. --filter: only
 * cases with TEXT in their name.
 *
 * Prints a line for each case, and below it one for each launch. Parameters are printed as their number of
 * bytes and a hash, with --full word by word (plan_params.h). The text is the same in every run. Nothing is
 * computed, and float inputs are left unfilled, because no plan depends on their values. */
#include "tests/plans/dump.h"
#include "cases/codec/file.h"

#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "fuzz/generate/draw.h"
#include "gpu/simt/launch.h"

#include <stdlib.h>
#include <string.h>

static bool full;
static const char *filter = "";
static FILE *text; /* of the launches of the current case */
static int n_launches;
static long n_cases, n_all_launches;

static uint64_t hash_of(const void *data, size_t bytes) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u; /* FNV-1a */
  return hash;
}

/* ---- launches ---- */

static void print_params(const plan_launch *l) {
  char *words = NULL;
  size_t size = 0;
  const size_t bytes = plan_params_bytes(l->kernel);
  FILE *out = bytes ? open_memstream(&words, &size) : NULL;
  if (!out) {
    fprintf(text, " params=unknown\n");
    return;
  }
  plan_params_print(out, l->kernel, l->params, &l->places);
  fclose(out);
  fprintf(text, " params=%zu:%016llx\n", bytes, (unsigned long long)hash_of(words, size));
  if (full) fputs(words, text);
  free(words);
}

void plan_launched(const plan_launch *l) {
  ++n_launches;
  fprintf(text, "  %s grid=%u,%u,%u block=%u,%u,%u cluster=%u shared=%zu overlaps=%d", l->kernel, l->grid[0],
          l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->cluster, l->shared_bytes,
          l->overlaps);
  for (int i = 0; i < l->places.n; ++i)
    if (strcmp(l->places.v[i].name, "workspace") == 0) fprintf(text, " workspace=%zu", l->places.v[i].bytes);
  if (l->writes) fprintf(text, " writes=%s", l->writes);
  if (l->unit) fprintf(text, " unit=%s", l->unit[0] ? l->unit : "build");
  print_params(l);
}

fa_status __wrap_fa_simt_run(const fa_simt_launch *launch, fa_simt_report *out, fa_error *err);
fa_status __wrap_fa_simt_run(const fa_simt_launch *launch, fa_simt_report *out, fa_error *err) {
  char writes[1024] = "";
  size_t used = 0;
  plan_launch l = {.kernel = launch->name,
                   .grid = {launch->grid.x, launch->grid.y, launch->grid.z},
                   .block = {launch->block.x, launch->block.y, launch->block.z},
                   .cluster = launch->cluster,
                   .shared_bytes = launch->shared_bytes,
                   .overlaps = launch->overlaps,
                   .params = launch->params,
                   .writes = writes};
  (void)err;
  for (int i = 0; i < launch->n_ranges; ++i) {
    const fa_simt_range *r = &launch->ranges[i];
    l.places.v[l.places.n++] = (plan_place){r->name, r->begin, r->bytes};
    if (r->writable && used < sizeof writes)
      used += (size_t)snprintf(writes + used, sizeof writes - used, "%s%s", used ? "," : "", r->name);
  }
  plan_launched(&l);
  *out = (fa_simt_report){.state = FA_SUBJECT_OK};
  return FA_OK;
}

/* ---- cases ---- */

fa_status __wrap_fa_build_fills(const fa_case *c, fa_tensors *set, fa_error *err);
fa_status __wrap_fa_build_fills(const fa_case *c, fa_tensors *set, fa_error *err) {
  (void)c, (void)set, (void)err;
  return FA_OK;
}

typedef struct subject {
  const fa_backend *backend;
  const char *argument; /* of open */
  void *self;
} subject;

static uint64_t profile_hash(const fa_profile *p) {
  double numbers[64] = {p->u_p,
                        p->u_ds,
                        p->u_p_in_ds,
                        p->u_dropout,
                        p->floor_dq,
                        p->floor_dkv,
                        p->floor_dbias,
                        p->floor_p,
                        p->floor_operand,
                        p->max_p,
                        p->max_rounded,
                        p->exp_scaled,
                        p->mma_block,
                        p->mma_extra_bits,
                        p->u_operand,
                        p->eps_exp,
                        p->eps_log,
                        p->eps_tanh,
                        p->fast_functions,
                        p->block_n,
                        p->max_splits,
                        p->gqa_partials_in_io,
                        p->dq_atomic,
                        p->dkv_atomic,
                        p->dbias_atomic,
                        p->dbuffer_atomic,
                        p->block_m};
  return hash_of(numbers, sizeof numbers);
}

/* Like the first run in run_case.c. */
static void run(const subject *s, const fa_case *c, unsigned passes, fa_outcome *out) {
  fa_tensors t;
  fa_error err = {""};
  const fa_run_options opt = {.passes = passes, .schedule_seed = 1, .n_threads = 1}; /* odd: with counters */
  fa_status status = fa_case_build(c, &t, &err);
  if (status == FA_OK) {
    status = s->backend->run(s->self, &c->problem, &t, &opt, out, &err);
    fa_tensors_free(&t);
  }
  if (status == FA_OK) return;
  out->state = FA_SUBJECT_CRASH;
  snprintf(out->text, sizeof out->text, "error %d: %s", (int)status, err.text);
}

static void dump_case(const subject *s, const char *file, int64_t index, const fa_case *c) {
  char why[256] = "", *launches = NULL;
  size_t size = 0;
  fa_profile profile;
  fa_outcome out = {.state = FA_SUBJECT_OK};
  const unsigned wanted = FA_PASS_FORWARD | (c->problem.backward ? FA_PASS_BACKWARD : 0),
                 able = s->backend->supports(s->self, &c->problem, why, sizeof why), passes = wanted & able;
  n_launches = 0;
  text = open_memstream(&launches, &size);
  FA_ASSERT(text);
  s->backend->profile(s->self, &c->problem, &profile);
  if (able & FA_PASS_FORWARD) run(s, c, passes, &out);
  fclose(text);
  printf("case %s:%lld %s able=%u passes=%u state=%d launches=%d profile=%s:%016llx kernel=%s "
         "backward=%s%s%s%s%s\n",
         file, (long long)index, c->name, able, passes, (int)out.state, n_launches, profile.name,
         (unsigned long long)profile_hash(&profile), out.kernel, out.backward_kernel, why[0] ? " why=" : "",
         why, out.text[0] ? " text=" : "", out.text);
  fputs(launches, stdout);
  free(launches);
  ++n_cases;
  n_all_launches += n_launches;
}

static void open_subject(subject *s) {
  fa_backend_info info;
  fa_error err = {""};
  if (s->backend->open(s->argument, &s->self, &err) != FA_OK) {
    fprintf(stderr, "plan_dump: %s\n", err.text);
    exit(2);
  }
  s->backend->describe(s->self, &info); /* only then does the backend query the device */
  if (info.usable) return;
  fprintf(stderr, "plan_dump: %s\n", info.why_not);
  exit(2);
}

static void dump_file(subject *s, const char *path) {
  fa_case_list list = {0};
  fa_error err = {""};
  const char *slash = strrchr(path, '/');
  if (fa_case_file_load(path, fa_generate, &list, &err) != FA_OK) {
    fprintf(stderr, "plan_dump: %s\n", err.text);
    exit(2);
  }
  for (int64_t i = 0; i < list.n; ++i) {
    if (!strstr(list.v[i].name, filter)) continue;
    dump_case(s, slash ? slash + 1 : path, i, &list.v[i]);
    if (s->backend != &fa_backend_cuda || !plan_cuda_is_large()) continue;
    s->backend->close(s->self);
    open_subject(s);
  }
  fa_case_list_free(&list);
}

/* "cuda:..." and "host:..." */
static bool choose_subject(const char *name, subject *s) {
  const char *colon = strchr(name, ':');
  const size_t n = colon ? (size_t)(colon - name) : strlen(name);
  if (n == 4 && strncmp(name, "cuda", n) == 0) {
    s->backend = &fa_backend_cuda;
    return plan_cuda_start(colon ? colon + 1 : NULL);
  }
  s->backend = &fa_backend_host;
  s->argument = colon ? colon + 1 : NULL;
  return n == 4 && strncmp(name, "host", n) == 0;
}

int main(int argc, char **argv) {
  subject s = {0};
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at)
    if (strcmp(argv[at], "--full") == 0)
      full = true;
    else if (strcmp(argv[at], "--filter") == 0 && at + 1 < argc)
      filter = argv[++at];
    else
      break;
  if (argc - at < 2 || !choose_subject(argv[at], &s)) {
    fprintf(stderr,
            "usage: plan_dump [--full] [--filter TEXT] host[:ARGUMENT]|cuda[:DEVICE] CASES.json...\n");
    return 2;
  }
  open_subject(&s);
  for (int i = at + 1; i < argc; ++i) dump_file(&s, argv[i]);
  s.backend->close(s.self);
  fprintf(stderr, "%s: %ld cases, %ld launches\n", argv[at], n_cases, n_all_launches);
  if (plan_cuda_misuse()[0]) fprintf(stderr, "misuse of the driver: %s\n", plan_cuda_misuse());
  return plan_cuda_misuse()[0] ? 1 : 0;
}
