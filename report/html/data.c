/* What the page's script reads. Cases are columns, not objects, and text that repeats is a number in a dictionary:
 * a hundred thousand cases are then some ten megabytes, which a browser reads in a fraction of a second. */
#include "report/html/parts.h"
#include "report/sampling/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CASES 500000

/* ---- JSON ---- */

static void put_without_tags(FILE *out, const char *json) {
  for (; json && *json; ++json) {
    if (*json == '<')
      fputs("\\u003c", out);
    else
      fputc(*json, out);
  }
}

void fa_page_put_json(FILE *out, const cJSON *tree) {
  char *json = tree ? cJSON_PrintUnformatted(tree) : NULL;
  put_without_tags(out, json ? json : "null");
  cJSON_free(json);
}

void fa_page_put_json_text(FILE *out, const char *text) {
  cJSON *s = cJSON_CreateString(text);
  fa_page_put_json(out, s);
  cJSON_Delete(s);
}

/* Four digits; a string such as "inf" as it is. */
static void put_number(FILE *out, const cJSON *v) {
  if (cJSON_IsNumber(v) && isfinite(v->valuedouble))
    fprintf(out, "%.4g", v->valuedouble);
  else if (cJSON_IsNumber(v))
    fputs("\"inf\"", out);
  else
    fa_page_put_json(out, cJSON_IsString(v) ? v : NULL);
}

/* ---- dictionaries ---- */

typedef struct dictionary {
  const char **text;         /* borrowed from the report */
  int64_t n, *slot, n_slots; /* open addressing; -1: free */
  bool failed;               /* out of memory: what is not in it is the first entry */
} dictionary;

static uint64_t hash_of(const char *s) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; *s; ++s) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
  return h;
}

static int64_t *slot_of(dictionary *d, const char *text) {
  int64_t at = (int64_t)(hash_of(text) & (uint64_t)(d->n_slots - 1));
  while (d->slot[at] >= 0 && strcmp(d->text[d->slot[at]], text) != 0) at = (at + 1) & (d->n_slots - 1);
  return &d->slot[at];
}

static bool grow(dictionary *d) {
  const int64_t n = d->n_slots ? 2 * d->n_slots : 64;
  int64_t *slot = malloc((size_t)n * sizeof *slot);
  const char **text = realloc(d->text, (size_t)n / 2 * sizeof *text);
  if (text) d->text = text;
  if (!slot || !text) {
    free(slot);
    return false;
  }
  for (int64_t i = 0; i < n; ++i) slot[i] = -1;
  free(d->slot);
  d->slot = slot;
  d->n_slots = n;
  for (int64_t i = 0; i < d->n; ++i) *slot_of(d, d->text[i]) = i;
  return true;
}

static int64_t number_of(dictionary *d, const char *text) {
  if (d->failed || (2 * d->n >= d->n_slots && !grow(d))) {
    d->failed = true;
    return 0;
  }
  int64_t *slot = slot_of(d, text);
  if (*slot < 0) {
    *slot = d->n;
    d->text[d->n++] = text;
  }
  return *slot;
}

static void end_dictionary(FILE *out, dictionary *d) {
  fputs("\"words\":[", out);
  for (int64_t i = 0; i < d->n; ++i) {
    if (i) fputc(',', out);
    fa_page_put_json_text(out, d->text[i]);
  }
  fputc(']', out);
  free(d->text);
  free(d->slot);
}

/* ---- columns ---- */

/* "key":{"v":[0,1,0],"words":["a","b"]} */
static void put_words(FILE *out, const cJSON *cases, const char *key) {
  dictionary d = {0};
  const cJSON *c;
  int n = 0;
  number_of(&d, "");
  fprintf(out, "\"%s\":{\"v\":[", key);
  cJSON_ArrayForEach(c, cases) {
    if (n == MOST_CASES) break;
    fprintf(out, n++ ? ",%lld" : "%lld", (long long)number_of(&d, fa_report_string(c, key)));
  }
  fputs("],", out);
  end_dictionary(out, &d);
  fputs("},\n", out);
}

static void put_column(FILE *out, const cJSON *cases, const char *key,
                       void (*put)(FILE *, const cJSON *entry, const char *key)) {
  const cJSON *c;
  int n = 0;
  fprintf(out, "\"%s\":[", key);
  cJSON_ArrayForEach(c, cases) {
    if (n == MOST_CASES) break;
    if (n++) fputc(',', out);
    put(out, c, key);
  }
  fputs("],\n", out);
}

static void put_text_of(FILE *out, const cJSON *entry, const char *key) {
  fa_page_put_json_text(out, fa_report_string(entry, key));
}

static void put_number_of(FILE *out, const cJSON *entry, const char *key) {
  put_number(out, fa_report_at(entry, key));
}

static void put_flag_of(FILE *out, const cJSON *entry, const char *key) {
  fputc(cJSON_IsTrue(fa_report_at(entry, key)) ? '1' : '0', out);
}

/* What a sample of the case proves; "" if it was judged whole. */
static void put_sampled_of(FILE *out, const cJSON *entry, const char *key) {
  char text[FA_SAMPLED_TEXT];
  (void)key;
  fa_sampled_entry_text(entry, text);
  fa_page_put_json_text(out, text);
}

/* ["o",0.5,"lse",0.1] */
static void put_ratios_of(FILE *out, const cJSON *entry, const char *key) {
  const cJSON *r;
  int n = 0;
  fputc('[', out);
  cJSON_ArrayForEach(r, fa_report_at(entry, key)) {
    if (!r->string) continue;
    if (n++) fputc(',', out);
    fa_page_put_json_text(out, r->string);
    fputc(',', out);
    put_number(out, r);
  }
  fputc(']', out);
}

/* The number of the case's item in "failures", -1: it has none. */
static void put_places(FILE *out, const cJSON *root) {
  const int n_failures = cJSON_GetArraySize(fa_report_at(root, "failures"));
  const cJSON *c;
  int n = 0, k = 0;
  fputs("\"failure\":[", out);
  cJSON_ArrayForEach(c, fa_report_at(root, "cases")) {
    if (n == MOST_CASES) break;
    fprintf(out, n++ ? ",%d" : "%d", !fa_report_is_good(c) && k < n_failures ? k++ : -1);
  }
  fputs("]\n", out);
}

static void put_cases(FILE *out, const cJSON *root) {
  const cJSON *cases = fa_report_at(root, "cases");
  static const char *const words[] = {"state",    "backend", "kernel", "backward_kernel",
                                      "features", "reason",  "notes",  "waiver"};
  fputs("{\n", out);
  for (size_t k = 0; k < sizeof words / sizeof *words; ++k) put_words(out, cases, words[k]);
  put_column(out, cases, "name", put_text_of);
  put_column(out, cases, "worst_ratio", put_number_of);
  put_column(out, cases, "seconds", put_number_of);
  put_column(out, cases, "waived", put_flag_of);
  put_column(out, cases, "sample", put_sampled_of);
  put_column(out, cases, "ratios", put_ratios_of);
  put_places(out, root);
  fputc('}', out);
}

void fa_page_put_data(FILE *out, const cJSON *root, const cJSON *comparison) {
  static const char *const whole[] = {"tool",    "backend", "host",     "command", "started",
                                      "seconds", "summary", "kernels",  "require", "contradictions",
                                      "groups",  "tried",   "coverage", "probed",  "finished"};
  fputs("{\n", out);
  for (size_t k = 0; k < sizeof whole / sizeof *whole; ++k) {
    if (!fa_report_at(root, whole[k])) continue;
    fprintf(out, "\"%s\":", whole[k]);
    fa_page_put_json(out, fa_report_at(root, whole[k]));
    fputs(",\n", out);
  }
  fprintf(out, "\"n_cases\":%d,\"comparison\":", cJSON_GetArraySize(fa_report_at(root, "cases")));
  fa_page_put_json(out, comparison);
  fputs(",\n\"failures\":", out);
  fa_page_put_failures(out, root);
  fputs(",\n\"cases\":", out);
  put_cases(out, root);
  fputs("}\n", out);
}
