#include "fuzz/one/golden.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"

#include "cases/base/sha256.h"
#include "cases/tensors/safetensors.h"
#include "fuzz/options/version.h"
#include "ref/reference.h"
#include "report/text/line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A case with recomputed contents of its goldens. */
typedef struct fresh {
  fa_tensors in;
  fa_wants forward, backward;
  fa_tensor out[2][FA_T_COUNT]; /* views of the wants, f64: [0] forward, [1] backward */
  char inputs_sha256[65], reference_sha256[2][65];
  bool has_backward;
} fresh;

/* The file that holds the case's forward (or backward) golden. */
static void golden_path(const char *folder, const char *name, bool backward, char *path, size_t size) {
  snprintf(path, size, "%s/%s.%s.safetensors", folder, name, backward ? "backward" : "forward");
}

static fa_tensor view_of(const fa_want *w) {
  fa_tensor t = {.dtype = FA_F64, .rank = w->rank};
  if (w->n == 0) return t;
  int64_t stride = 1;
  for (int a = w->rank - 1; a >= 0; --a) {
    t.shape[a] = w->shape[a];
    t.stride[a] = stride;
    stride *= w->shape[a];
  }
  t.data = (char *)w->value;
  return t;
}

/* Hashes the logical elements row-major, so that strides and gaps do not matter. */
static void hash_tensor(fa_sha256 *s, const fa_tensor *t) {
  int64_t n = fa_tensor_count(t), index[FA_MAX_RANK];
  size_t size = fa_dtype_size(t->dtype);
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(t, e, index);
    fa_sha256_add(s, t->data + fa_tensor_offset(t, index), size);
  }
}

static void hash_set(const fa_tensor *t, bool outputs_too, char hex[65]) {
  fa_sha256 s;
  fa_sha256_init(&s);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (t[id].data && (outputs_too || !fa_tensor_id_is_output((fa_tensor_id)id))) hash_tensor(&s, &t[id]);
  fa_sha256_hex(&s, hex);
}

static fa_status make_fresh(const fa_case *c, int n_threads, fresh *x, fa_error *err) {
  const fa_problem *p = &c->problem;
  /* Whether a rounding in f32 decides what an expression is worth, which has no golden then, is known with bounds alone; values are
   * the same with them. */
  const fa_profile f32 = fa_profile_get("simt-f32", p->dtype);
  fa_ref_options options = {
      .n_threads = n_threads, .unscaled_o = true, .profile = p->score_mod || p->mask_mod ? &f32 : NULL};
  memset(x, 0, sizeof *x);
  fa_status status = fa_case_build(c, &x->in, err);
  if (status != FA_OK) return status;
  hash_set(x->in.t, false, x->inputs_sha256);
  status = fa_ref_forward(p, &x->in, &options, &x->forward, err);
  x->has_backward = p->backward;
  if (status == FA_OK && x->has_backward)
    status = fa_ref_backward(p, &x->in, NULL, NULL, &x->forward, &options, &x->backward, err);
  for (int id = 0; status == FA_OK && id < FA_T_COUNT; ++id) {
    bool keep_mask =
        id == FA_T_P_DEBUG || id == FA_T_DROPOUT_KEEP; /* they follow from the seed; NaN where masked */
    if (!keep_mask) x->out[0][id] = view_of(&x->forward.t[id]);
    x->out[1][id] = view_of(&x->backward.t[id]);
  }
  for (int pass = 0; status == FA_OK && pass < 2; ++pass)
    hash_set(x->out[pass], true, x->reference_sha256[pass]);
  return status;
}

static void free_fresh(fresh *x) {
  fa_tensors_free(&x->in);
  fa_wants_free(&x->forward);
  fa_wants_free(&x->backward);
}

/* The name of an output in a file: distinguishes the caches after the call from those before it. */
static void output_name(const char *group, int id, char *text, size_t size) {
  const char *suffix = id == FA_T_K || id == FA_T_V ? "_after" : "";
  snprintf(text, size, "%s/%s%s", group, fa_tensor_id_name((fa_tensor_id)id), suffix);
}

static fa_status write_pass(const char *folder, const char *name, const fa_case *c, const fresh *x, int pass,
                            fa_error *err) {
  enum { MAX = 2 * FA_T_COUNT };
  char(*text)[256] = calloc(MAX, sizeof *text);
  char *line = fa_case_to_line(c);
  const char *names[MAX];
  const fa_tensor *tensors[MAX];
  int64_t n = 0;
  fa_status status = text && line ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int id = 0; status == FA_OK && id < FA_T_COUNT; ++id) {
    if (fa_tensor_id_is_output((fa_tensor_id)id) || !x->in.t[id].data) continue;
    snprintf(text[n], sizeof text[n], "%s/%s", name, fa_tensor_id_name((fa_tensor_id)id));
    names[n] = text[n];
    tensors[n++] = &x->in.t[id];
  }
  for (int id = 0; status == FA_OK && id < FA_T_COUNT; ++id) {
    if (!x->out[pass][id].data) continue;
    output_name(name, id, text[n], sizeof text[n]);
    names[n] = text[n];
    tensors[n++] = &x->out[pass][id];
  }
  if (status == FA_OK) {
    char path[4096], forward_path[4096], generator[200];
    golden_path(folder, name, pass, path, sizeof path);
    golden_path(folder, name, false, forward_path, sizeof forward_path);
    snprintf(generator, sizeof generator, "fa-verify %s", fa_version());
    const char *slash = strrchr(forward_path, '/');
    const char *keys[] = {name,      "generator",     "inputs_sha256", "reference_sha256",
                          "forward", "forward_sha256"};
    const char *values[] = {
        line, generator, x->inputs_sha256, x->reference_sha256[pass], slash + 1, x->reference_sha256[0]};
    status = fa_safetensors_write(path, names, tensors, n, keys, values, pass ? 6 : 4, err);
  }
  free(text);
  free(line);
  return status;
}

fa_status fa_golden_write(const char *folder, const char *name, const fa_case *c, int n_threads,
                          fa_error *err) {
  fresh *x = malloc(sizeof *x);
  if (!x) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_status status = make_fresh(c, n_threads, x, err);
  if (status == FA_OK) status = write_pass(folder, name, c, x, 0, err);
  if (status == FA_OK && x->has_backward) status = write_pass(folder, name, c, x, 1, err);
  free_fresh(x);
  free(x);
  return status;
}

/* ---- check ---- */

typedef struct check {
  const char *path, *name;
  const fa_safetensors *f;
  char *why;
  size_t why_size;
  bool same;
} check;

static void differ(check *k, const char *format, const char *a, const char *b, const char *c) {
  if (!k->same) return;
  k->same = false;
  size_t used = (size_t)snprintf(k->why, k->why_size, "%s: ", k->path);
  if (used < k->why_size) snprintf(k->why + used, k->why_size - used, format, a, b, c);
}

static bool close_enough(double got, double want) {
  if (!isfinite(got) || !isfinite(want)) return got == want || (isnan(got) && isnan(want));
  double reach = fabs(want) > 1 ? fabs(want) : 1;
  return fabs(got - want) <= FA_GOLDEN_TOLERANCE * reach;
}

static bool same_shape(const fa_tensor *a, const fa_tensor *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; ++i)
    if (a->shape[i] != b->shape[i]) return false;
  return true;
}

/* exact: bit for bit; else within the tolerance. */
static void check_tensor(check *k, const char *full_name, const fa_tensor *fresh_one, bool exact) {
  const fa_tensor *stored = fa_safetensors_find(k->f, full_name);
  const char *short_name = strrchr(full_name, '/') + 1;
  if (!stored) {
    differ(k, "%s%s%s: missing", short_name, "", "");
    return;
  }
  if (!same_shape(stored, fresh_one)) {
    differ(k, "%s%s%s: has another shape or type", short_name, "", "");
    return;
  }
  size_t size = fa_dtype_size(stored->dtype);
  int64_t n = fa_tensor_count(stored), index[FA_MAX_RANK];
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(stored, e, index);
    const char *a = stored->data + fa_tensor_offset(stored, index);
    const char *b = fresh_one->data + fa_tensor_offset(fresh_one, index);
    double old = fa_load(stored->dtype, a), now = fa_load(fresh_one->dtype, b);
    if (exact ? memcmp(a, b, size) == 0 : close_enough(now, old)) continue;
    char where[128], values[128];
    fa_index_text(index, stored->rank, where, sizeof where);
    snprintf(values, sizeof values, "stored %.17g, now %.17g", old, now);
    differ(k, "%s%s: %s", short_name, where, values);
    return;
  }
}

static void check_meta(check *k, const char *key, const char *now) {
  const char *stored = fa_safetensors_meta(k->f, key);
  if (!stored || strcmp(stored, now) != 0)
    differ(k, "%s: stored %s, now %s", key, stored ? stored : "nothing", now);
}

/* The stored outputs must be those that were hashed. */
static void check_stored_hash(check *k, const fresh *x, int pass, char hex[65]) {
  fa_tensor stored[FA_T_COUNT] = {0};
  char full[256];
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!x->out[pass][id].data) continue;
    output_name(k->name, id, full, sizeof full);
    const fa_tensor *t = fa_safetensors_find(k->f, full);
    if (t) stored[id] = *t;
  }
  hash_set(stored, true, hex);
  check_meta(k, "reference_sha256", hex);
}

static fa_status check_pass(const char *folder, const char *name, const fresh *x, int pass,
                            char forward_hash[65], check *k, fa_error *err) {
  char path[4096], full[256], hash[65];
  fa_safetensors f;
  golden_path(folder, name, pass, path, sizeof path);
  fa_status status = fa_safetensors_open(path, &f, err);
  if (status != FA_OK) return status == FA_ERR_IO ? FA_ERR_INPUT : status;
  k->path = path;
  k->f = &f;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (fa_tensor_id_is_output((fa_tensor_id)id) || !x->in.t[id].data) continue;
    snprintf(full, sizeof full, "%s/%s", name, fa_tensor_id_name((fa_tensor_id)id));
    check_tensor(k, full, &x->in.t[id], true);
  }
  check_meta(k, "inputs_sha256", x->inputs_sha256);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!x->out[pass][id].data) continue;
    output_name(name, id, full, sizeof full);
    check_tensor(k, full, &x->out[pass][id], false);
  }
  check_stored_hash(k, x, pass, pass ? hash : forward_hash);
  if (pass) check_meta(k, "forward_sha256", forward_hash);
  fa_safetensors_close(&f);
  return FA_OK;
}

fa_status fa_golden_check(const char *folder, const char *name, const fa_case *c, int n_threads, bool *same,
                          char *why, size_t why_size, fa_error *err) {
  fresh *x = malloc(sizeof *x);
  if (!x) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  char forward_hash[65] = "";
  check k = {.name = name, .why = why, .why_size = why_size, .same = true};
  fa_status status = make_fresh(c, n_threads, x, err);
  if (status == FA_OK) status = check_pass(folder, name, x, 0, forward_hash, &k, err);
  if (status == FA_OK && x->has_backward) status = check_pass(folder, name, x, 1, forward_hash, &k, err);
  *same = k.same;
  free_fresh(x);
  free(x);
  return status;
}
