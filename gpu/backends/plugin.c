/* The backend plugin:PATH.so: translates between the harness's structs and those of gpu/plugin.h. */
#include "gpu/plugin.h"

#include "gpu/backends/plugin_backend.h"
#include "gpu/backends/shared_library.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plugin {
  void *handle;
  const fa_plugin *table;
  void *self;
  char path[256];
} plugin;

static fa_status check_table(const char *path, const fa_plugin *t, fa_error *err) {
  if (t->version != FA_PLUGIN_VERSION)
    return fa_fail(err, FA_ERR_INPUT, "%s: made for version %u of the plugin interface; this program has %u",
                   path, (unsigned)t->version, FA_PLUGIN_VERSION);
  if (t->size != sizeof *t)
    return fa_fail(err, FA_ERR_INPUT, "%s: fa_plugin_table has %u bytes; version %u has %zu", path,
                   (unsigned)t->size, FA_PLUGIN_VERSION, sizeof *t);
  if (!t->name || !t->supports || !t->run)
    return fa_fail(err, FA_ERR_INPUT, "%s: name, supports and run of fa_plugin_table must be set", path);
  return FA_OK;
}

static void plugin_close(void *self) {
  plugin *x = self;
  if (x->table && x->table->close) x->table->close(x->self);
  if (x->handle) dlclose(x->handle);
  free(x);
}

static fa_status plugin_open(const char *arg, void **self, fa_error *err) {
  char message[512] = "";
  void *table = NULL;
  *self = NULL;
  if (!arg || !*arg) return fa_fail(err, FA_ERR_INPUT, "backend plugin needs a library: plugin:PATH.so");
  plugin *x = calloc(1, sizeof *x);
  if (!x) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  snprintf(x->path, sizeof x->path, "%s", arg);
  fa_status status = fa_shared_library_open(arg, "fa_plugin_table", &x->handle, &table, err);
  if (status == FA_OK) status = check_table(arg, table, err);
  const fa_plugin *t = table;
  if (status == FA_OK && t->open && t->open(&x->self, message, sizeof message) != 0)
    status = fa_fail(err, FA_ERR_DEVICE, "%s: %s", arg, message[0] ? message : "it could not be opened");
  if (status != FA_OK) {
    plugin_close(x); /* the table is not set, so that close does not call it after a failed open */
    return status;
  }
  x->table = t;
  *self = x;
  return FA_OK;
}

static void plugin_describe(void *self, fa_backend_info *out) {
  const plugin *x = self;
  memset(out, 0, sizeof *out);
  out->name = fa_backend_plugin.name;
  out->usable = true;
  snprintf(out->device, sizeof out->device, "%s", x->table->name);
  snprintf(out->driver, sizeof out->driver, "%s", x->path);
}

/* ---- problem and tensors in plain C ---- */

static int plain_dtype(fa_dtype d) {
  switch (d) {
  case FA_F16:
    return FA_PLUGIN_F16;
  case FA_BF16:
    return FA_PLUGIN_BF16;
  case FA_I32:
    return FA_PLUGIN_I32;
  case FA_U8:
    return FA_PLUGIN_U8;
  default:
    return FA_PLUGIN_F32;
  }
}

static fa_plugin_problem plain_problem(const fa_problem *p) {
  const fa_window window = fa_mask_window(&p->mask);
  fa_plugin_problem x = {.family = fa_family_name(p->family),
                         .dtype = plain_dtype(p->dtype),
                         .variable_length = fa_problem_is_varlen(p),
                         .batch = p->batch,
                         .heads_q = p->heads_q,
                         .heads_kv = p->heads_kv,
                         .seqlen_q = p->seqlen_q,
                         .seqlen_k = p->seqlen_k,
                         .head_dim = p->head_dim,
                         .head_dim_v = p->head_dim_v,
                         .scale = p->scale,
                         .softcap = p->softcap,
                         .window_left = window.left,
                         .window_right = window.right,
                         .align_top_left = p->mask.align == FA_ALIGN_TOP_LEFT,
                         .dropout_p = p->dropout.p,
                         .dropout_seed = p->dropout.seed,
                         .dropout_offset = p->dropout.offset,
                         .empty_lse = p->empty_lse == FA_EMPTY_POS_INF   ? INFINITY
                                      : p->empty_lse == FA_EMPTY_NEG_INF ? -INFINITY
                                                                         : 0.0f,
                         .splits = p->splits,
                         .deterministic = p->deterministic,
                         .backward = p->backward,
                         .score_mod = p->score_mod,
                         .mask_mod = p->mask_mod,
                         .n_new = p->kvcache.n_new,
                         .page_size = p->kvcache.page_size,
                         .rotary_dim = p->kvcache.rotary_dim,
                         .rotary_interleaved = p->kvcache.rotary_interleaved};
  if (p->block_sparse.present) {
    x.q_block = p->block_sparse.q_block;
    x.kv_block = p->block_sparse.kv_block;
  }
  return x;
}

static fa_plugin_tensors plain_tensors(const fa_tensors *t) {
  fa_plugin_tensors x = {0};
  const struct {
    fa_plugin_tensor *to;
    fa_tensor_id from;
  } all[] = {{&x.q, FA_T_Q},
             {&x.k, FA_T_K},
             {&x.v, FA_T_V},
             {&x.bias, FA_T_BIAS},
             {&x.alibi_slopes, FA_T_ALIBI_SLOPES},
             {&x.d_o, FA_T_DO},
             {&x.d_lse, FA_T_DLSE},
             {&x.cu_seqlens_q, FA_T_CU_SEQLENS_Q},
             {&x.cu_seqlens_k, FA_T_CU_SEQLENS_K},
             {&x.seqused_k, FA_T_SEQUSED_K},
             {&x.leftpad_k, FA_T_LEFTPAD_K},
             {&x.k_new, FA_T_K_NEW},
             {&x.v_new, FA_T_V_NEW},
             {&x.cache_seqlens, FA_T_CACHE_SEQLENS},
             {&x.cache_batch_idx, FA_T_CACHE_BATCH_IDX},
             {&x.block_table, FA_T_BLOCK_TABLE},
             {&x.rotary_cos, FA_T_ROTARY_COS},
             {&x.rotary_sin, FA_T_ROTARY_SIN},
             {&x.kv_num_blocks, FA_T_KV_NUM_BLOCKS},
             {&x.kv_indices, FA_T_KV_INDICES},
             {&x.full_kv_num_blocks, FA_T_FULL_KV_NUM_BLOCKS},
             {&x.full_kv_indices, FA_T_FULL_KV_INDICES},
             {&x.o, FA_T_O},
             {&x.lse, FA_T_LSE},
             {&x.p_debug, FA_T_P_DEBUG},
             {&x.dq, FA_T_DQ},
             {&x.dk, FA_T_DK},
             {&x.dv, FA_T_DV},
             {&x.dbias, FA_T_DBIAS}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    const fa_tensor *from = &t->t[all[i].from];
    *all[i].to =
        (fa_plugin_tensor){.data = from->data, .dtype = plain_dtype(from->dtype), .rank = from->rank};
    memcpy(all[i].to->shape, from->shape, sizeof from->shape);
    memcpy(all[i].to->stride, from->stride, sizeof from->stride);
  }
  return x;
}

/* ---- the calls ---- */

static unsigned plugin_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  const plugin *x = self;
  const fa_plugin_problem plain = plain_problem(p);
  reason[0] = 0;
  const unsigned passes = x->table->supports(x->self, &plain, reason, reason_size);
  return (passes & FA_PLUGIN_FORWARD ? FA_PASS_FORWARD : 0) |
         (passes & FA_PLUGIN_BACKWARD ? FA_PASS_BACKWARD : 0);
}

fa_profile fa_plugin_profile(const fa_plugin_arithmetic *a, fa_dtype dtype) {
  fa_profile out = fa_profile_get(a->name && fa_profile_exists(a->name) ? a->name : "recorded", dtype);
  if (a->block_n > 0) out.block_n = a->block_n;
  if (a->max_splits > 0) out.max_splits = a->max_splits;
  if (a->dq_atomic >= 0) out.dq_atomic = a->dq_atomic;
  if (a->gqa_partials_rounded >= 0) out.gqa_partials_in_io = a->gqa_partials_rounded;
  return out;
}

static void plugin_profile(void *self, const fa_problem *p, fa_profile *out) {
  const plugin *x = self;
  const fa_plugin_problem plain = plain_problem(p);
  fa_plugin_arithmetic a = {.name = "recorded", .dq_atomic = -1, .gqa_partials_rounded = -1};
  if (x->table->arithmetic) x->table->arithmetic(x->self, &plain, &a);
  *out = fa_plugin_profile(&a, p->dtype);
}

static fa_status plugin_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                            fa_outcome *out, fa_error *err) {
  const plugin *x = self;
  const fa_plugin_problem plain = plain_problem(p);
  const fa_plugin_tensors tensors = plain_tensors(t);
  const unsigned passes = (opt->passes & FA_PASS_FORWARD ? FA_PLUGIN_FORWARD : 0) |
                          (opt->passes & FA_PASS_BACKWARD ? FA_PLUGIN_BACKWARD : 0);
  memset(out, 0, sizeof *out);
  snprintf(out->kernel, sizeof out->kernel, "%s", x->table->name);
  char message[sizeof out->text] = "";
  const int code = x->table->run(x->self, &plain, &tensors, passes, message, sizeof message);
  message[sizeof message - 1] = 0;
  if (code == 0) return FA_OK;
  if (code != FA_PLUGIN_REFUSED)
    return fa_fail(err, FA_ERR_DEVICE, "%s: %s", x->path, message[0] ? message : "it failed without a word");
  out->state = FA_SUBJECT_REJECTED;
  snprintf(out->text, sizeof out->text, "%s", message);
  return FA_OK;
}

const fa_backend fa_backend_plugin = {
    .name = "plugin",
    .what = "plugin:PATH.so, a kernel of yours in a shared library (gpu/plugin.h)",
    .open = plugin_open,
    .close = plugin_close,
    .describe = plugin_describe,
    .supports = plugin_supports,
    .profile = plugin_profile,
    .run = plugin_run,
};
