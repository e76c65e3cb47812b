#include "gpu/backends/exec_files.h"

#include "cases/tensors/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct list {
  const char *name[FA_EXEC_MAX_TENSORS];
  const fa_tensor *tensor[FA_EXEC_MAX_TENSORS];
  int64_t n;
} list;

static void add(list *l, const char *name, const fa_tensor *t) {
  l->name[l->n] = name;
  l->tensor[l->n++] = t;
}

static list outputs_of(const fa_exec_tensors *x) {
  list l = {.n = 0};
  for (int i = 0; i < x->n; ++i) {
    const fa_exec_tensor *e = &x->at[i];
    if (e->access == FA_EXEC_WRITE) add(&l, e->file_name, e->tensor);
    if (e->access == FA_EXEC_UPDATE) add(&l, strcmp(e->name, "k") == 0 ? "k_after" : "v_after", e->tensor);
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

fa_status fa_exec_write_inputs(const char *path, const fa_exec_tensors *x, fa_error *err) {
  list l = {.n = 0};
  for (int i = 0; i < x->n; ++i)
    if (x->at[i].access != FA_EXEC_WRITE) add(&l, x->at[i].file_name, x->at[i].tensor);
  return write_file(path, &l, err);
}

fa_status fa_exec_write_outputs(const char *path, const fa_exec_tensors *x, fa_error *err) {
  const list l = outputs_of(x);
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

fa_status fa_exec_read_outputs(const char *path, const fa_exec_tensors *x, fa_error *err) {
  const list l = outputs_of(x);
  fa_safetensors file;
  fa_error why = {""};
  fa_status status = fa_safetensors_open(path, &file, &why);
  if (status != FA_OK) return fa_fail(err, FA_ERR_INPUT, "%s", why.text);
  for (int64_t i = 0; status == FA_OK && i < l.n; ++i) status = take(&file, l.name[i], l.tensor[i], err);
  fa_safetensors_close(&file);
  return status;
}
