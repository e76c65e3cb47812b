#include "gpu/backends/exec_request.h"

#include <cjson/cJSON.h>
#include <stdio.h>

cJSON *fa_exec_run_request(const fa_exec_subject *x, const fa_run_options *opt) {
  cJSON *request = fa_exec_request(x, "run");
  cJSON_AddRawToObject(request, "case", x->line);
  cJSON *passes = cJSON_AddArrayToObject(request, "passes");
  if (opt->passes & FA_PASS_FORWARD) cJSON_AddItemToArray(passes, cJSON_CreateString("forward"));
  if (opt->passes & FA_PASS_BACKWARD) cJSON_AddItemToArray(passes, cJSON_CreateString("backward"));
  cJSON_AddNumberToObject(request, "threads", opt->n_threads);
  return request;
}

/* cJSON would print large numbers rounded. */
static void add_integers(cJSON *object, const char *key, int n, const int64_t *v) {
  char text[FA_MAX_RANK * 24];
  size_t used = 0;
  text[0] = '[', text[1] = 0;
  for (int a = 0; a < n; ++a)
    used +=
        (size_t)snprintf(text + 1 + used, sizeof text - 1 - used, "%s%lld", a ? "," : "", (long long)v[a]);
  snprintf(text + 1 + used, sizeof text - 1 - used, "]");
  cJSON_AddRawToObject(object, key, text);
}

void fa_exec_add_strides(cJSON *request, const fa_tensors *t) {
  cJSON *all = cJSON_AddObjectToObject(request, "strides");
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (t->t[id].data) add_integers(all, fa_tensor_id_name((fa_tensor_id)id), t->t[id].rank, t->t[id].stride);
}

static void add_tensor(cJSON *group, const fa_exec_memory *m, const fa_exec_tensor *e) {
  static const char *const access[] = {
      [FA_EXEC_READ] = "read", [FA_EXEC_WRITE] = "write", [FA_EXEC_UPDATE] = "update"};
  cJSON *one = cJSON_AddObjectToObject(group, e->name);
  const fa_tensor *t = e->tensor;
  const int64_t offset = (int64_t)fa_exec_memory_offset(m, e);
  char text[32];
  cJSON_AddStringToObject(one, "dtype", fa_dtype_name(t->dtype));
  add_integers(one, "shape", t->rank, t->shape);
  add_integers(one, "strides", t->rank, t->stride);
  snprintf(text, sizeof text, "%lld", (long long)offset);
  cJSON_AddRawToObject(one, "offset", text);
  cJSON_AddStringToObject(one, "access", access[e->access]);
}

void fa_exec_add_memory(cJSON *request, const fa_exec_memory *m, const fa_exec_tensors *x) {
  static const char *const names[] = {
      [FA_EXEC_TENSORS] = "tensors", [FA_EXEC_BUFFERS] = "buffers", [FA_EXEC_DBUFFERS] = "dbuffers"};
  cJSON *group[FA_EXEC_N_GROUPS] = {NULL};
  cJSON_AddStringToObject(request, "memory", m->path);
  cJSON_AddNumberToObject(request, "bytes", (double)m->bytes);
  for (int i = 0; i < x->n; ++i) {
    const fa_exec_group g = x->at[i].group;
    if (!group[g]) group[g] = cJSON_AddObjectToObject(request, names[g]);
    add_tensor(group[g], m, &x->at[i]);
  }
}
