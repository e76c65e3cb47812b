#include "fuzz/one/dump.h"
#include "cases/codec/json.h"

#include "cases/base/atomic_file.h"
#include "cases/tensors/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void fa_file_name_from(const char *name, char *out, size_t size) {
  size_t n = 0;
  for (; *name && n + 1 < size && n < 100; ++name) {
    bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                 (*name >= '0' && *name <= '9') || *name == '-' || *name == '_' || (*name == '.' && n > 0);
    out[n++] = plain ? *name : '_';
  }
  if (n == 0 && size > 1) out[n++] = '_';
  out[n] = 0;
}

/* FNV-1a: two cases with one name must not overwrite each other. */
static uint32_t hash_text(const char *text) {
  uint32_t h = 2166136261u;
  for (; *text; ++text) h = (h ^ (unsigned char)*text) * 16777619u;
  return h;
}

typedef struct group {
  char name[FA_T_COUNT + 2][200];
  const char *names[FA_T_COUNT + 2];
  const fa_tensor *tensors[FA_T_COUNT + 2];
  int64_t n;
} group;

static void add(group *g, const char *prefix, const char *name, const char *suffix, const fa_tensor *t) {
  if (!t->data) return;
  snprintf(g->name[g->n], sizeof g->name[0], "%s/%s%s", prefix, name, suffix);
  g->names[g->n] = g->name[g->n];
  g->tensors[g->n++] = t;
}

fa_status fa_dump_check_folder(const char *folder, fa_error *err) {
  struct stat s;
  if (stat(folder, &s) != 0) return fa_file_check_writable(folder, err); /* created beside existing ones */
  if (!S_ISDIR(s.st_mode)) return fa_fail(err, FA_ERR_INPUT, "%s: is no folder", folder);
  if (access(folder, W_OK | X_OK) != 0)
    return fa_fail(err, FA_ERR_INPUT, "%s: cannot write there: %s", folder, strerror(errno));
  return FA_OK;
}

fa_status fa_dump_write(const char *folder, const fa_case *c, const fa_tensors *pristine,
                        const fa_tensors *after, char *path, size_t path_size, fa_error *err) {
  char name[128];
  char *line = fa_case_to_line(c);
  group *g = calloc(1, sizeof *g);
  fa_status status = line && g ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
  if (status != FA_OK) goto out;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    status = fa_fail(err, FA_ERR_IO, "--keep %s: %s", folder, strerror(errno));
    goto out;
  }
  fa_file_name_from(c->name, name, sizeof name);
  snprintf(path, path_size, "%s/%s-%08x.safetensors", folder, name, hash_text(line));
  bool appends = c->problem.kvcache.present && c->problem.kvcache.n_new > 0;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_tensors *from = fa_tensor_id_is_output((fa_tensor_id)id) ? after : pristine;
    add(g, name, fa_tensor_id_name((fa_tensor_id)id), "", &from->t[id]);
  }
  if (appends) {
    add(g, name, "k", "_after", &after->t[FA_T_K]);
    add(g, name, "v", "_after", &after->t[FA_T_V]);
  }
  const char *key = name, *value = line;
  status = fa_safetensors_write(path, g->names, g->tensors, g->n, &key, &value, 1, err);
out:
  if (status != FA_OK) path[0] = 0;
  free(line);
  free(g);
  return status;
}
