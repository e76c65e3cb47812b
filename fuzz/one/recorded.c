#include "fuzz/one/recorded.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"

#include "cases/tensors/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fa_tensor *find(const fa_safetensors *f, const char *group, const char *name) {
  char full[1200];
  snprintf(full, sizeof full, "%s/%s", group, name);
  return fa_safetensors_find(f, full);
}

fa_status fa_recorded_groups(const fa_safetensors *f, const char *path, char ***names, int64_t *n,
                             fa_error *err) {
  char **list = calloc((size_t)f->n_entries + 1, sizeof *list);
  fa_status status = list ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
  *n = 0;
  for (int64_t e = 0; status == FA_OK && e < f->n_entries; ++e) {
    const char *name = f->entry[e].name, *slash = strrchr(name, '/');
    size_t length = slash ? (size_t)(slash - name) : 0;
    bool known = false;
    if (length == 0)
      status =
          fa_fail(err, FA_ERR_INPUT, "%s: tensor %s: names of the form group/tensor are needed", path, name);
    for (int64_t k = 0; k < *n; ++k)
      known |= strlen(list[k]) == length && strncmp(list[k], name, length) == 0;
    if (status != FA_OK || known) continue;
    list[*n] = strndup(name, length);
    if (!list[*n])
      status = fa_fail(err, FA_ERR_MEMORY, "out of memory");
    else if (!fa_safetensors_meta(f, list[(*n)++]))
      status =
          fa_fail(err, FA_ERR_INPUT, "%s: group %s: __metadata__ has no case for it", path, list[*n - 1]);
  }
  if (status == FA_OK && *n == 0)
    status = fa_fail(err, FA_ERR_INPUT, "%s: there is no recorded run in it", path);
  if (status == FA_OK) {
    *names = list;
    return FA_OK;
  }
  for (int64_t k = 0; list && k < *n; ++k) free(list[k]);
  free(list);
  return status;
}

/* Same shape, except that the last axis of an LSE may be longer in the file. Outputs may be stored in f64
 * (goldens). */
static fa_status check_fit(const fa_tensor *expected, const fa_tensor *stored, fa_tensor_id id, bool output,
                           fa_error *err) {
  bool fits = expected->rank == stored->rank;
  for (int a = 0; fits && a < expected->rank; ++a) {
    bool padded = output && fa_tensor_describe(id)->axes == FA_AXES_ROWS && a == expected->rank - 1 &&
                  stored->shape[a] > expected->shape[a];
    fits = expected->shape[a] == stored->shape[a] || padded;
  }
  bool wide = output && stored->dtype == FA_F64; /* as goldens have them, caches of whole numbers too */
  if (fits && (stored->dtype == expected->dtype || wide)) return FA_OK;
  char want[160], got[160];
  fa_tensor_shape_text(expected, want, sizeof want);
  fa_tensor_shape_text(stored, got, sizeof got);
  return fa_fail(err, FA_ERR_INPUT, "%s: is %s, the case needs %s", fa_tensor_id_name(id), got, want);
}

/* Lengths and slopes, which the case itself holds. */
static bool is_in_case(fa_tensor_id id) {
  return fa_tensor_describe(id)->data == FA_DATA_PROBLEM;
}

static fa_status check_same(const fa_tensor *a, const fa_tensor *b, fa_tensor_id id, fa_error *err) {
  int64_t n = fa_tensor_count(a), index[FA_MAX_RANK];
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(a, e, index);
    double x = fa_tensor_get(a, index), y = fa_tensor_get(b, index);
    if (x != y)
      return fa_fail(err, FA_ERR_INPUT, "%s: element %lld is %.9g, in the case it is %.9g",
                     fa_tensor_id_name(id), (long long)e, y, x);
  }
  return FA_OK;
}

static fa_status load_input(fa_recorded *r, fa_tensor_id id, const fa_tensor *stored, fa_error *err) {
  const fa_tensor *t = &r->in.t[id];
  if (!t->data) return fa_fail(err, FA_ERR_INPUT, "%s: the case has no such tensor", fa_tensor_id_name(id));
  fa_status status = check_fit(t, stored, id, false, err);
  if (status != FA_OK) return status;
  if (is_in_case(id)) return check_same(t, stored, id, err);
  fa_tensor_copy(t, stored);
  return FA_OK;
}

static fa_status load_output(fa_recorded *r, fa_tensor_id id, const fa_tensor *expected,
                             const fa_tensor *stored, fa_error *err) {
  if (!expected->data)
    return fa_fail(err, FA_ERR_INPUT, "%s: the case has no such tensor", fa_tensor_id_name(id));
  fa_status status = check_fit(expected, stored, id, true, err);
  if (status == FA_OK)
    status = fa_tensors_add(&r->got, id, stored->dtype, expected->rank, expected->shape, NULL, 0, err);
  if (status == FA_OK) fa_tensor_copy(&r->got.t[id], stored);
  return status;
}

/* Gradients of the call's own tensors; those of buffers are found by the buffers' names. */
static bool has_gradient(const fa_safetensors *f, const char *group) {
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_tensor_describe((fa_tensor_id)id)->gradient && fa_case_has_strides((fa_tensor_id)id) &&
        find(f, group, fa_tensor_id_name((fa_tensor_id)id)))
      return true;
  return false;
}

/* A packed run whose LSE has three axes has padded it. */
static bool has_padded_lse(const fa_safetensors *f, const char *group) {
  const fa_tensor *lse = find(f, group, fa_tensor_id_name(FA_T_LSE));
  return lse && lse->rank == 3;
}

/* An O that is not of the 8 bits that the case says was not scaled either, as that of a golden. */
static void take_o_itself(const fa_safetensors *f, const char *group, fa_problem *p) {
  const fa_tensor *o = find(f, group, "o");
  if (o && o->dtype != p->quantized.o) p->quantized.o = 0, p->quantized.o_scale = 0;
}

/* Reads the case in the file and adapts it to what the group holds. */
static fa_status read_case(const fa_safetensors *f, const char *group, fa_recorded *r, fa_error *err) {
  fa_status status = fa_case_from_text(fa_safetensors_meta(f, group), &r->c, err);
  if (status != FA_OK) return status;
  fa_problem *p = &r->c.problem;
  r->c.layout = FA_LAYOUT_BSHD;
  r->c.packing = FA_PACK_NONE;
  memset(r->c.strides, 0, sizeof r->c.strides);
  r->backward = has_gradient(f, group);
  if (!p->kvcache.present) p->backward = r->backward || find(f, group, "do") != NULL;
  p->return_softmax = find(f, group, "p_debug") != NULL;
  p->grad_lse = find(f, group, "dlse") != NULL;
  p->quantized.amax = p->quantized.present && (find(f, group, "amax_p") || find(f, group, "amax_o"));
  take_o_itself(f, group, p);
  if (p->cu_seqlens_q.n > 0 && has_padded_lse(f, group)) p->lse_padded = true;
  return fa_case_validate(&r->c, err);
}

static fa_status add_keep_mask(fa_recorded *r, fa_error *err) {
  const fa_problem *p = &r->c.problem;
  const int64_t shape[4] = {p->batch, p->heads_q, p->seqlen_q, p->seqlen_k};
  return fa_tensors_add(&r->in, FA_T_DROPOUT_KEEP, FA_U8, 4, shape, NULL, 0, err);
}

/* Names other than tensor ids that a group may hold: captured buffers, caches after an append. */
static bool is_extra(const char *name) {
  return strncmp(name, "buffer_", 7) == 0 || strcmp(name, "k_after") == 0 || strcmp(name, "v_after") == 0;
}

/* "buffer_NAME" and "dbuffer_NAME" of the problem's buffers; FA_T_COUNT: none of these. */
static fa_tensor_id buffer_id(const fa_problem *p, const char *name) {
  const bool gradient = strncmp(name, "dbuffer_", 8) == 0;
  if (!gradient && strncmp(name, "buffer_", 7) != 0) return FA_T_COUNT;
  for (int k = 0; k < p->n_captures; ++k)
    if (strcmp(name + (gradient ? 8 : 7), p->captures[k].name) == 0)
      return (fa_tensor_id)((gradient ? FA_T_DBUFFER_0 : FA_T_BUFFER_0) + k);
  return FA_T_COUNT;
}

static bool is_buffer(fa_tensor_id id) {
  return fa_tensor_describe(id)->data == FA_DATA_BUFFER;
}

/* True if the file has an input, under its own name or its buffer's. */
static bool has_input(const fa_recorded *r, const fa_safetensors *f, const char *group, fa_tensor_id id) {
  char name[80];
  if (find(f, group, fa_tensor_id_name(id))) return true;
  if (!is_buffer(id)) return false;
  snprintf(name, sizeof name, "buffer_%s", r->c.problem.captures[id - FA_T_BUFFER_0].name);
  return find(f, group, name) != NULL;
}

static fa_status load_entry(fa_recorded *r, const char *name, const fa_tensor *stored, fa_error *err) {
  const fa_tensor_id buffer = buffer_id(&r->c.problem, name);
  if (buffer < FA_T_COUNT)
    return is_buffer(buffer) ? load_input(r, buffer, stored, err)
                             : load_output(r, buffer, &r->in.t[buffer], stored, err);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (strcmp(name, fa_tensor_id_name((fa_tensor_id)id)) != 0) continue;
    if (id == FA_T_O_SCALE && !fa_quantizes_o(&r->c.problem.quantized))
      return FA_OK; /* beside an O of its own */
    if (!fa_tensor_id_is_output((fa_tensor_id)id)) return load_input(r, (fa_tensor_id)id, stored, err);
    if (id == FA_T_DROPOUT_KEEP) {
      fa_status status = add_keep_mask(r, err);
      if (status != FA_OK) return status;
    }
    return load_output(r, (fa_tensor_id)id, &r->in.t[id], stored, err);
  }
  return is_extra(name) ? FA_OK : fa_fail(err, FA_ERR_INPUT, "%s: no known tensor name", name);
}

/* Loads the caches after the call; they are judged only if recorded. */
static fa_status load_caches_after(fa_recorded *r, const fa_safetensors *f, const char *group,
                                   fa_error *err) {
  static const fa_tensor_id ids[] = {FA_T_K, FA_T_V};
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < 2; ++i) {
    const fa_tensor *after = find(f, group, i ? "v_after" : "k_after");
    if (!after) continue;
    if (!r->c.problem.kvcache.present)
      return fa_fail(err, FA_ERR_INPUT, "k_after, v_after: the case has no cache");
    status = load_output(r, ids[i], &r->in.t[ids[i]], after, err);
  }
  return status;
}

/* Float inputs must come from the file; otherwise the outputs would be judged against data that we made
 * up. */
static fa_status check_complete(const fa_recorded *r, const fa_safetensors *f, const char *group,
                                fa_error *err) {
  bool any_output = false;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (fa_tensor_id_is_output((fa_tensor_id)id)) {
      any_output |= r->got.t[id].data != NULL;
    } else if (r->in.t[id].data && !is_in_case((fa_tensor_id)id) &&
               (fa_dtype_is_float(r->in.t[id].dtype) || is_buffer((fa_tensor_id)id)) &&
               !has_input(r, f, group, (fa_tensor_id)id)) {
      return fa_fail(err, FA_ERR_INPUT, "%s: missing; it is needed", fa_tensor_id_name((fa_tensor_id)id));
    }
  }
  return any_output ? FA_OK : fa_fail(err, FA_ERR_INPUT, "no output is recorded; at least one is needed");
}

fa_status fa_recorded_load(const fa_safetensors *f, const char *path, const char *group, fa_recorded *out,
                           fa_error *err) {
  memset(out, 0, sizeof *out);
  size_t length = strlen(group);
  fa_status status = read_case(f, group, out, err);
  if (status == FA_OK) status = fa_case_build(&out->c, &out->in, err);
  for (int64_t e = 0; status == FA_OK && e < f->n_entries; ++e) {
    const char *name = f->entry[e].name;
    if (strncmp(name, group, length) != 0 || name[length] != '/' || strchr(name + length + 1, '/')) continue;
    status = load_entry(out, name + length + 1, &f->entry[e].tensor, err);
  }
  if (status == FA_OK) status = load_caches_after(out, f, group, err);
  if (status == FA_OK) status = check_complete(out, f, group, err);
  if (status == FA_OK) return FA_OK;
  fa_error_prefix(err, "%s: group %s", path, group);
  fa_recorded_free(out);
  return status;
}

void fa_recorded_free(fa_recorded *r) {
  fa_case_free(&r->c);
  fa_tensors_free(&r->in);
  fa_tensors_free(&r->got);
  memset(r, 0, sizeof *r);
}
