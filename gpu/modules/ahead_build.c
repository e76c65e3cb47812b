/* Compiles kernels for the build (ahead.h): a program that the build runs.
 *
 *   fa_ahead OUT ARCH I/N
 *
 * Writes those of the architecture ("90a") whose number modulo N is I. It needs no GPU. */
#include "cases/threads/processors.h"
#include "gpu/expr/unit.h"
#include "gpu/modules/rtc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_UNITS = 1024, MAX_THREADS = 64 };

typedef struct unit {
  const fa_kernel *kernel;
  bool is_of_lists, drops; /* of calls with block lists; with dropout */
  char key[FA_AHEAD_KEY_SIZE];
  fa_rtc_code code;
} unit;

typedef struct work {
  unit *v;
  int n, major, minor;
  atomic_int next, n_failed;
} work;

/* ---- which ---- */

/* Kernels that are compiled for the expressions of a call, and that calls without any have too; the kinds of blocks by mask_mod
 * are for no call without it. */
static bool is_of_lists(const fa_kernel *k) {
  return k->ability.flex && !k->recipe.is_ahead_of_time && k->step != FA_STEP_MASK;
}

/* Of flash kernels all but those for devices with little shared memory. */
static bool is_late(const fa_kernel *k) {
  return !k->recipe.is_ahead_of_time && strncmp(k->recipe.source, "flash/", 6) == 0 &&
         !strstr(k->name, "_small");
}

static int list_units(unit *v, int part, int parts, bool hopper) {
  const fa_kernel *k;
  int n = 0, place = 0;
  for (int i = 0; (k = fa_kernel_at(i)) != NULL; ++i) {
    const int variants = is_of_lists(k) ? 2 : is_late(k);
    if (strncmp(k->recipe.source, "hopper", 6) == 0 && !hopper) continue;
    for (int drops = 0; drops < variants; ++drops) {
      if (place++ % parts != part) continue;
      FA_ASSERT(n < MAX_UNITS);
      v[n++] = (unit){.kernel = k, .is_of_lists = variants == 2, .drops = drops};
    }
  }
  return n;
}

/* ---- compiling ---- */

/* As modules/kernel.c and modules/flex.c do it. Malloc'd. */
static char *text_of(const unit *u) {
  const char *source = fa_kernel_source_find(u->kernel->recipe.source);
  const fa_flex_unit flex = {.source = u->kernel->recipe.source, .drops = u->drops};
  if (!source) return NULL;
  return u->is_of_lists ? fa_flex_unit_text(&flex, source) : strdup(source);
}

static fa_status compile(const work *w, unit *u, fa_error *err) {
  char only[300];
  const char *const options[] = {only};
  char *text = text_of(u);
  if (!text) return fa_fail(err, FA_ERR_IO, "no source");
  const fa_rtc_unit rtc = {
      .name = u->kernel->recipe.source, .text = text, .options = options, .n_options = 1};
  snprintf(only, sizeof only, "-DFA_ONLY=%s", u->kernel->recipe.only);
  const fa_status status = fa_rtc_build(&rtc, w->major, w->minor, &u->code, err);
  fa_rtc_unit_key(&rtc, u->key);
  free(text);
  return status;
}

static void *compile_some(void *argument) {
  work *w = argument;
  for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
    fa_error err = {""};
    if (compile(w, &w->v[i], &err) == FA_OK) continue;
    fprintf(stderr, "fa_ahead: %s: %s\n", w->v[i].kernel->name, err.text);
    atomic_fetch_add(&w->n_failed, 1);
  }
  return NULL;
}

static bool compile_all(work *w) {
  pthread_t thread[MAX_THREADS];
  int n = fa_processors() < MAX_THREADS ? fa_processors() : MAX_THREADS;
  for (int i = 0; i < n; ++i)
    if (pthread_create(&thread[i], NULL, compile_some, w) != 0) n = i;
  compile_some(w);
  for (int i = 0; i < n; ++i) pthread_join(thread[i], NULL);
  return atomic_load(&w->n_failed) == 0;
}

/* ---- writing ---- */

/* Under another name first: what is there is whole, though another target's rule writes it at the same time. */
static bool write_all(const char *path, const unit *v, int n) {
  char own[4096];
  snprintf(own, sizeof own, "%s.%ld", path, (long)getpid());
  FILE *f = fopen(own, "wb");
  fa_ahead_head head = {.n = (uint64_t)n};
  uint64_t at = sizeof head + (uint64_t)n * sizeof(fa_ahead_entry);
  if (!f) return false;
  memcpy(head.magic, FA_AHEAD_MAGIC, sizeof head.magic);
  fwrite(&head, sizeof head, 1, f);
  for (int i = 0; i < n; ++i) {
    fa_ahead_entry entry = {.at = at, .bytes = v[i].code.cubin_bytes};
    memcpy(entry.key, v[i].key, sizeof v[i].key);
    fwrite(&entry, sizeof entry, 1, f);
    at += entry.bytes;
  }
  for (int i = 0; i < n; ++i) fwrite(v[i].code.cubin, v[i].code.cubin_bytes, 1, f);
  const bool good = !ferror(f);
  if (fclose(f) == 0 && good && rename(own, path) == 0) return true;
  remove(own);
  return false;
}

int main(int argc, char **argv) {
  static unit units[MAX_UNITS];
  int part, parts;
  if (argc != 4 || sscanf(argv[3], "%d/%d", &part, &parts) != 2 || parts < 1) {
    fprintf(stderr, "usage: fa_ahead OUT ARCH I/N\n");
    return 2;
  }
  const int number = atoi(argv[2]);
  work w = {.v = units, .major = number / 10, .minor = number % 10};
  w.n = list_units(units, part, parts, strcmp(argv[2], "90a") == 0);
  if (!compile_all(&w)) return 1;
  if (write_all(argv[1], units, w.n)) return 0;
  fprintf(stderr, "fa_ahead: %s cannot be written\n", argv[1]);
  return 1;
}
