#include "gpu/backends/exec_tensors.h"

#include "cases/tensors/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct list {
  const char *name[FA_T_COUNT];
  const fa_tensor *tensor[FA_T_COUNT];
  int64_t n;
} list;

static void add(list *l, const char *name, const fa_tensor *t) {
  if (!t->data) return;
  l->name[l->n] = name;
  l->tensor[l->n++] = t;
}

static list outputs_of(const fa_problem *p, const fa_tensors *t, unsigned passes) {
  list l = {.n = 0};
  const uint64_t written = fa_tensors_written_by(passes);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (written >> id & 1) add(&l, fa_tensor_id_name((fa_tensor_id)id), &t->t[id]);
  if (p->kvcache.present && p->kvcache.n_new > 0) {
    add(&l, "k_after", &t->t[FA_T_K]);
    add(&l, "v_after", &t->t[FA_T_V]);
  }
  return l;
}

/* Not fa_safetensors_write: these files need not survive a power cut, and syncing each takes longer than a
 * kernel. */
static fa_status write_file(const char *path, const list *l, fa_error *err) {
  FILE *file = fopen(path, "wbe");
  if (!file) return fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
  fa_status status = fa_safetensors_print(file, path, l->name, l->tensor, l->n, NULL, NULL, 0, err);
  if (fclose(file) != 0 && status == FA_OK) status = fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
  return status;
}

fa_status fa_exec_write_inputs(const char *path, const fa_tensors *t, fa_error *err) {
  list l = {.n = 0};
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (!fa_tensor_id_is_output((fa_tensor_id)id)) add(&l, fa_tensor_id_name((fa_tensor_id)id), &t->t[id]);
  return write_file(path, &l, err);
}

fa_status fa_exec_write_outputs(const char *path, const fa_problem *p, const fa_tensors *t, unsigned passes,
                                fa_error *err) {
  const list l = outputs_of(p, t, passes);
  return write_file(path, &l, err);
}

static fa_status take(const fa_safetensors *f, const char *name, const fa_tensor *to, fa_error *err) {
  const fa_tensor *from = fa_safetensors_find(f, name);
  char want[160], got[160];
  if (!from) return fa_fail(err, FA_ERR_INPUT, "%s is missing", name);
  bool fits = from->dtype == to->dtype && from->rank == to->rank;
  for (int a = 0; fits && a < to->rank; ++a) fits = from->shape[a] == to->shape[a];
  if (fits) {
    fa_tensor_copy(to, from);
    return FA_OK;
  }
  fa_tensor_shape_text(to, want, sizeof want);
  fa_tensor_shape_text(from, got, sizeof got);
  return fa_fail(err, FA_ERR_INPUT, "%s is %s, the call needs %s", name, got, want);
}

fa_status fa_exec_read_outputs(const char *path, const fa_problem *p, fa_tensors *t, unsigned passes,
                               fa_error *err) {
  const list l = outputs_of(p, t, passes);
  fa_safetensors file;
  fa_error why = {""};
  fa_status status = fa_safetensors_open(path, &file, &why);
  if (status != FA_OK) return fa_fail(err, FA_ERR_INPUT, "%s", why.text);
  for (int64_t i = 0; status == FA_OK && i < l.n; ++i) status = take(&file, l.name[i], l.tensor[i], err);
  fa_safetensors_close(&file);
  return status;
}
