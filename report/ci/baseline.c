#include "report/ci/baseline.h"

#include "cases/codec/count.h"
#include "cases/tensors/table.h"
#include "report/compare.h"
#include "report/json.h"
#include "report/printed.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_ITEMS 20  /* of a kind, unless all are wanted */
#define NOTABLE_S 0.01 /* a kernel is slower only if it takes so many seconds more */
#define KNOWN_TEXT "known (in the baseline)"

typedef enum kind { NEW, KNOWN, SLOWER, NOT_JUDGED, FIXED, N_KINDS } kind;
static const char *const keys[N_KINDS] = {"new", "known", "slower", "not_judged", "fixed"};
static const char *const words[N_KINDS] = {"new", "known", "slower", "not judged", "fixed"};

/* A case of the baseline. */
typedef struct before {
  char *name, *backend; /* owned */
  char record[20];
  int64_t place; /* in its report */
  unsigned passes;
  fa_compared was;
  bool met; /* the run has it */
} before;

typedef struct item {
  kind kind;
  char *name, *backend; /* owned */
  char text[200];
} item;

struct fa_baseline {
  char *path; /* owned */
  before *v;  /* owned; sorted */
  int64_t n;
  bool any_backend; /* both sides have one: it need not be the same */
  double slower;    /* 0: times are not looked at */
  int64_t count[N_KINDS];
  item *items; /* owned */
  int64_t n_items;
};

/* ---- reading ---- */

static int by_case(const before *a, const before *b, bool any_backend) {
  int order = strcmp(a->record, b->record);
  if (order == 0) order = strcmp(a->name, b->name);
  return order || any_backend ? order : strcmp(a->backend, b->backend);
}

static int by_case_and_place(const void *x, const void *y) {
  const before *a = x, *b = y;
  const int order = by_case(a, b, false);
  return order ? order : (a->place > b->place) - (a->place < b->place);
}

static bool take_entry(fa_baseline *b, const cJSON *entry, const cJSON *failure) {
  before *x = &b->v[b->n];
  *x = (before){.name = strdup(fa_report_string(entry, "name")),
                .backend = strdup(fa_report_string(entry, "backend")),
                .place = b->n,
                .passes = (unsigned)fa_count_at(entry, "passes"),
                .was = fa_compared_of_entry(entry, failure)};
  x->was.seconds = fa_report_number(entry, "seconds_subject");
  snprintf(x->record, sizeof x->record, "%s", fa_report_string(entry, "record"));
  ++b->n;
  return x->name && x->backend;
}

static bool take_report(fa_baseline *b, const cJSON *root, bool one_backend) {
  const cJSON *cases = fa_report_at(root, "cases"), *failure = fa_report_at(root, "failures")->child, *entry;
  const char *first = cases->child ? fa_report_string(cases->child, "backend") : "";
  b->any_backend = one_backend;
  b->v = calloc((size_t)cJSON_GetArraySize(cases) + 1, sizeof *b->v);
  if (!b->v) return false;
  cJSON_ArrayForEach(entry, cases) {
    const cJSON *mine = fa_report_is_good(entry) ? NULL : failure;
    if (!take_entry(b, entry, mine)) return false;
    if (mine) failure = failure->next;
    b->any_backend &= strcmp(fa_report_string(entry, "backend"), first) == 0;
  }
  qsort(b->v, (size_t)b->n, sizeof *b->v, by_case_and_place);
  return true;
}

static void say_difference(FILE *say, const char *path, const char *what, const char *before,
                           const char *now) {
  if (say && *before && strcmp(before, now) != 0)
    fprintf(say, "fa-verify: %s: the baseline's %s is \"%s\", this run's \"%s\"\n", path, what, before, now);
}

static fa_status read_slower(const char *text, double *out, fa_error *err) {
  char *end = NULL;
  *out = text ? strtod(text, &end) : 0;
  if (!text || (end != text && *end == 0 && *out > 1 && isfinite(*out))) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT,
                 "--slower %s: a number above 1 is needed: so many times the baseline's time", text);
}

fa_status fa_baseline_load(const char *path, const char *slower, const fa_baseline_run *run, FILE *say,
                           fa_baseline **out, fa_error *err) {
  cJSON *root = NULL;
  *out = calloc(1, sizeof **out);
  if (!*out) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_status status = read_slower(slower, &(*out)->slower, err);
  if (status == FA_OK && (status = fa_report_load(path, &root, err)) != FA_OK)
    fa_error_prefix(err, "--baseline");
  if (status == FA_OK) {
    const cJSON *backend = fa_report_at(root, "backend");
    (*out)->path = strdup(path);
    if (!(*out)->path || !take_report(*out, root, run->one_backend))
      status = fa_fail(err, FA_ERR_MEMORY, "out of memory");
    say_difference(say, path, "version", fa_report_string(fa_report_at(root, "tool"), "version"),
                   run->version);
    say_difference(say, path, "backend", fa_report_string(backend, "name"), run->backend);
    say_difference(say, path, "device", fa_report_string(backend, "device"), run->device);
  }
  cJSON_Delete(root);
  if (status != FA_OK) fa_baseline_free(*out), *out = NULL;
  return status;
}

void fa_baseline_free(fa_baseline *b) {
  if (!b) return;
  for (int64_t i = 0; i < b->n; ++i) free(b->v[i].name), free(b->v[i].backend);
  for (int64_t i = 0; i < b->n_items; ++i) free(b->items[i].name), free(b->items[i].backend);
  free(b->v);
  free(b->items);
  free(b->path);
  free(b);
}

/* ---- a result ---- */

/* The first case of the baseline that is this one and that no result has met; NULL: there is none. */
static before *find(fa_baseline *b, const fa_result *r) {
  before key = {.name = r->name ? r->name : (char[]){""}, .backend = (char *)r->backend};
  fa_report_record(r, key.record);
  int64_t low = 0, high = b->n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (by_case(&b->v[middle], &key, b->any_backend) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < b->n && by_case(&b->v[low], &key, b->any_backend) == 0; ++low)
    if (!b->v[low].met) return &b->v[low];
  return NULL;
}

static void add_item(fa_baseline *b, kind kind, const fa_result *r, const char *text) {
  if ((b->n_items & (b->n_items + 1)) == 0) { /* full at 1, 3, 7, ...: double the capacity */
    item *bigger = realloc(b->items, (size_t)(2 * b->n_items + 1) * sizeof *bigger);
    FA_ASSERT(bigger);
    b->items = bigger;
  }
  item *x = &b->items[b->n_items++];
  *x = (item){.kind = kind, .name = strdup(r->name ? r->name : ""), .backend = strdup(r->backend)};
  FA_ASSERT(x->name && x->backend);
  snprintf(x->text, sizeof x->text, "%s", text);
}

/* Subjects that run at the speed that is of interest; the others are simulated, or plain loops. */
static bool is_timed(const char *backend) {
  static const char *const timed[] = {"cuda", "exec", "connect", "py", "plugin"};
  const size_t n = strcspn(backend, ":");
  for (size_t i = 0; i < sizeof timed / sizeof *timed; ++i)
    if (strlen(timed[i]) == n && strncmp(timed[i], backend, n) == 0) return true;
  return false;
}

/* Both passed or failed alike. */
static void compare_details(fa_baseline *b, const before *was, const fa_compared *now, const fa_result *r) {
  char text[sizeof b->items->text];
  const unsigned lost = was->passes & ~r->passes;
  if (lost && now->grade == FA_GRADE_PASSED) {
    snprintf(text, sizeof text, "its %s was judged, and is not any more: %.120s",
             lost & FA_PASS_FORWARD ? "forward" : "backward", r->notes);
    ++b->count[NOT_JUDGED];
    add_item(b, NOT_JUDGED, r, text);
  }
  if (b->slower == 0 || !is_timed(r->backend) || was->was.seconds <= 0) return;
  if (!fa_compare_is_slower(&was->was, now, b->slower, NOTABLE_S)) return;
  snprintf(text, sizeof text, "%.4g s -> %.4g s", was->was.seconds, now->seconds);
  ++b->count[SLOWER];
  add_item(b, SLOWER, r, text);
}

void fa_baseline_judge(fa_baseline *b, fa_result *r, const cJSON *failure) {
  before *was = find(b, r);
  fa_compared now = failure ? fa_compared_of_entry(failure, failure) : fa_compared_of(r);
  now.seconds = r->seconds_subject;
  const char *change = fa_compare_kind(was ? &was->was : &fa_compared_absent, &now);
  if (was) was->met = true;
  if (change && (strcmp(change, "new") == 0 || strcmp(change, "changed") == 0)) {
    ++b->count[NEW];
  } else if (change && strcmp(change, "skipped") == 0) {
    ++b->count[NOT_JUDGED];
    add_item(b, NOT_JUDGED, r, r->reason);
  } else if (change && strcmp(change, "fixed") == 0) {
    ++b->count[FIXED];
    add_item(b, FIXED, r, "");
  } else if (was && was->was.grade == now.grade && now.grade != FA_GRADE_SKIPPED) {
    compare_details(b, was, &now, r);
    if (!fa_state_is_failure(r->state) || r->waived) return;
    ++b->count[KNOWN];
    r->waived = r->known = true;
    snprintf(r->waiver, sizeof r->waiver, KNOWN_TEXT);
  }
}

/* ---- the outcome ---- */

bool fa_baseline_is_met(const fa_baseline *b) {
  return b->count[SLOWER] == 0 && b->count[NOT_JUDGED] == 0;
}

static void print_items(FILE *out, const fa_baseline *b, kind kind, bool verbose) {
  int64_t n = 0;
  for (int64_t i = 0; i < b->n_items; ++i) {
    const item *x = &b->items[i];
    if (x->kind != kind || (n++ >= TOLD_ITEMS && !verbose)) continue;
    fprintf(out, "%s: ", words[kind]);
    fa_print_clean(out, x->name);
    fprintf(out, "  %s%s", x->backend, x->text[0] ? "  " : "");
    fa_print_clean(out, x->text);
    fputc('\n', out);
  }
  if (n > TOLD_ITEMS && !verbose)
    fprintf(out, "%s: and %lld more (-v)\n", words[kind], (long long)(n - TOLD_ITEMS));
}

void fa_baseline_print(FILE *out, const fa_baseline *b, bool verbose) {
  int64_t not_met = 0;
  for (int k = SLOWER; k < N_KINDS; ++k) print_items(out, b, (kind)k, verbose);
  for (int64_t i = 0; i < b->n; ++i) not_met += !b->v[i].met;
  fputs("baseline ", out);
  fa_print_clean(out, b->path);
  fputc(':', out);
  for (int k = 0; k < N_KINDS; ++k)
    if (k != SLOWER || b->slower > 0) fprintf(out, " %s:%lld", words[k], (long long)b->count[k]);
  if (not_met)
    fprintf(out, "; %lld of its %lld cases were not in this run", (long long)not_met, (long long)b->n);
  fputc('\n', out);
}

cJSON *fa_baseline_to_json(const fa_baseline *b) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "path", b->path);
  cJSON *counts = cJSON_AddObjectToObject(o, "counts");
  for (int k = 0; k < N_KINDS; ++k) cJSON_AddNumberToObject(counts, keys[k], (double)b->count[k]);
  cJSON *items = cJSON_AddArrayToObject(o, "items");
  for (int64_t i = 0; i < b->n_items; ++i) {
    cJSON *one = cJSON_CreateObject();
    cJSON_AddStringToObject(one, "kind", keys[b->items[i].kind]);
    cJSON_AddStringToObject(one, "name", b->items[i].name);
    cJSON_AddStringToObject(one, "backend", b->items[i].backend);
    cJSON_AddStringToObject(one, "text", b->items[i].text);
    cJSON_AddItemToArray(items, one);
  }
  return o;
}
