#include "gpu/modules/ahead.h"

#include "cases/base/status.h"
#include "gpu/modules/kernel.h"

#include <string.h>

static const fa_ahead_file *files = fa_ahead_files;
static int n_files = -1; /* number in the build */

void fa_ahead_replace(const fa_ahead_file *replacement, int n) {
  files = n < 0 ? fa_ahead_files : replacement;
  n_files = n;
}

static const void *find_in(const fa_ahead_file *f, const char *key, size_t *code_bytes) {
  const fa_ahead_head *head = (const fa_ahead_head *)f->begin;
  const fa_ahead_entry *entry = (const fa_ahead_entry *)(head + 1);
  FA_ASSERT(f->end > f->begin && memcmp(head->magic, FA_AHEAD_MAGIC, sizeof head->magic) == 0);
  for (uint64_t i = 0; i < head->n; ++i) {
    if (strcmp(entry[i].key, key) != 0) continue;
    FA_ASSERT(entry[i].at + entry[i].bytes <= (uint64_t)(f->end - f->begin));
    *code_bytes = (size_t)entry[i].bytes;
    return f->begin + entry[i].at;
  }
  return NULL;
}

const void *fa_ahead_find(const char *key, int major, int minor, size_t *code_bytes) {
  const int n = n_files < 0 ? fa_n_ahead_files : n_files;
  for (int i = 0; i < n; ++i) {
    if (!fa_cubin_fits(files[i].arch, major, minor)) continue;
    const void *code = find_in(&files[i], key, code_bytes);
    if (code) return code;
  }
  return NULL;
}
