/* The host backend: the CUDA kernels, executed by gpu/simt. */
#include "gpu/backend.h"
#include "gpu/kernels/flash_forward_host.h"
#include "gpu/kernels/flash_params.h"
#include "gpu/simt/simt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static fa_status host_open(const char *arg, void **self, fa_error *err) {
  *self = NULL;
  if (arg && *arg) return fa_fail(err, FA_ERR_INPUT, "backend host takes no argument, got \"%s\"", arg);
  return FA_OK;
}

static void host_close(void *self) {
  (void)self;
}

static void host_describe(void *self, fa_backend_info *out) {
  (void)self;
  memset(out, 0, sizeof *out);
  out->name = fa_backend_host.name;
  out->usable = true;
  snprintf(out->device, sizeof out->device, "SIMT executor on the CPU, Hopper tensor-core arithmetic");
  snprintf(out->driver, sizeof out->driver, "none");
}

static bool score_mod_needed(const fa_problem *p) {
  return p->softcap > 0 || p->alibi.present;
}

/* A clause saying why the kernel cannot run this problem, or NULL. */
static const char *why_not(const fa_problem *p) {
  if (p->family != FA_FLASH) return "only the flash family has a kernel so far";
  if (p->dtype != FA_F16 && p->dtype != FA_BF16) return "the flash kernels need f16 or bf16";
  if (p->head_dim != p->head_dim_v) return "head_dim_v differs from head_dim";
  if (p->head_dim != 64 && p->head_dim != 128) return "head_dim is neither 64 nor 128";
  if (p->dropout.p > 0) return "dropout is not in the forward kernel yet";
  if (p->bias.present) return "the flash kernels take no bias";
  if (p->score_mod || p->mask_mod || p->block_sparse.present)
    return "the flash kernels take no score_mod, mask_mod or block lists";
  if (p->return_softmax) return "return_softmax is not in the forward kernel yet";
  if (p->splits > 1) return "split keys are not in the forward kernel yet";
  if (p->mask.type != FA_MASK_NONE && p->mask.align != FA_ALIGN_BOTTOM_RIGHT)
    return "the flash kernels align masks bottom-right";
  const double scale = fabs(p->scale);
  if (scale != 0 && (scale < 1e-30 || scale > 1e30)) return "scale is outside the kernel's float range";
  if (p->softcap != 0 && (p->softcap < 1e-30 || p->softcap > 1e30))
    return "softcap is outside the kernel's float range";
  if (p->heads_q > 65535 || p->batch > 65535) return "more than 65535 heads or batch entries";
  if (p->seqlen_q >= 1 << 29 || p->seqlen_k >= 1 << 29) return "sequences of 2^29 rows and more";
  return NULL;
}

static unsigned host_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  (void)self;
  const char *why = why_not(p);
  snprintf(reason, reason_size, "%s",
           why           ? why
           : p->backward ? "the backward kernels are not there yet"
                         : "");
  return why ? FA_PASS_NONE : FA_PASS_FORWARD;
}

static const fa_flash_kernel *kernel_for(const fa_problem *p, bool aligned) {
  return fa_flash_forward_find(p->dtype == FA_BF16, (int)p->head_dim, aligned, score_mod_needed(p));
}

static void host_profile(void *self, const fa_problem *p, fa_profile *out) {
  (void)self;
  *out = fa_profile_get("mma-hopper", p->dtype);
  const fa_flash_kernel *k = kernel_for(p, true);
  if (k) out->block_n = k->block_n;
}

/* ---- arguments ---- */

static fa_flash_strides strides_of(const fa_tensor *t) {
  if (t->rank == 4) return (fa_flash_strides){t->stride[0], t->stride[1], t->stride[2]};
  return (fa_flash_strides){0, t->stride[0], t->stride[1]};
}

static bool rows_are_aligned(const fa_tensor *t) {
  if ((uintptr_t)t->data % 16 != 0) return false;
  for (int a = 0; a + 1 < t->rank; ++a)
    if (t->stride[a] % 8 != 0) return false;
  return true;
}

/* Shapes as the kernel will index them; a clause saying what is wrong, or NULL. */
static const char *check_tensors(const fa_problem *p, const fa_tensors *t) {
  const bool varlen = fa_problem_is_varlen(p);
  const int rank = varlen ? 3 : 4;
  static const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_O};
  for (int i = 0; i < 4; ++i) {
    const fa_tensor *x = &t->t[ids[i]];
    const bool is_query = ids[i] == FA_T_Q || ids[i] == FA_T_O;
    if (!x->data) return "q, k, v or o is missing";
    if (x->dtype != p->dtype) return "q, k, v or o has another dtype than the problem";
    if (x->rank != rank) return "q, k, v or o has the wrong rank";
    if (x->shape[rank - 1] != p->head_dim || x->shape[rank - 2] != (is_query ? p->heads_q : p->heads_kv))
      return "q, k, v or o has the wrong number of heads or head_dim";
    if (x->stride[rank - 1] != 1) return "head_dim is not contiguous in q, k, v or o";
    if (varlen) {
      if (x->shape[0] < (is_query ? fa_problem_total_q(p) : fa_problem_total_k(p)))
        return "q, k, v or o has too few tokens";
    } else if (x->shape[0] != p->batch || x->shape[1] != (is_query ? p->seqlen_q : p->seqlen_k)) {
      return "q, k, v or o has the wrong batch or length";
    }
  }
  const fa_tensor *lse = &t->t[FA_T_LSE];
  if (!lse->data || lse->dtype != FA_F32 || lse->rank != rank - 1)
    return "lse is missing, not f32, or of the wrong rank";
  if (varlen && (!t->t[FA_T_CU_SEQLENS_Q].data || !t->t[FA_T_CU_SEQLENS_K].data))
    return "cu_seqlens is missing";
  if (p->seqused_k.n && !t->t[FA_T_SEQUSED_K].data) return "seqused_k is missing";
  if (p->leftpad_k.n && !t->t[FA_T_LEFTPAD_K].data) return "leftpad_k is missing";
  if (p->alibi.present && !t->t[FA_T_ALIBI_SLOPES].data) return "alibi slopes are missing";
  return NULL;
}

static int window_bound(int64_t bound, int64_t seqlen) {
  return bound < 0 || bound >= seqlen ? -1 : (int)bound;
}

static float empty_lse_of(fa_empty_lse e) {
  return e == FA_EMPTY_POS_INF ? INFINITY : e == FA_EMPTY_NEG_INF ? -INFINITY : 0.0f;
}

static void fill_masks(const fa_problem *p, fa_flash_params *a) {
  a->window_left = a->window_right = -1;
  if (p->mask.type == FA_MASK_CAUSAL) a->window_right = 0;
  if (p->mask.type == FA_MASK_WINDOW) { /* a bound that reaches over all keys (rows) is no bound */
    a->window_left = window_bound(p->mask.left, p->seqlen_k);
    a->window_right = window_bound(p->mask.right, p->seqlen_q);
  }
}

static void fill_params(const fa_problem *p, const fa_tensors *t, fa_flash_params *a) {
  const fa_tensor *x = t->t;
  memset(a, 0, sizeof *a);
  a->q = (const uint16_t *)x[FA_T_Q].data;
  a->k = (const uint16_t *)x[FA_T_K].data;
  a->v = (const uint16_t *)x[FA_T_V].data;
  a->o = (uint16_t *)x[FA_T_O].data;
  a->lse = (float *)x[FA_T_LSE].data;
  a->q_stride = strides_of(&x[FA_T_Q]);
  a->k_stride = strides_of(&x[FA_T_K]);
  a->v_stride = strides_of(&x[FA_T_V]);
  a->o_stride = strides_of(&x[FA_T_O]);
  const int64_t *l = x[FA_T_LSE].stride;
  a->lse_stride =
      fa_problem_is_varlen(p) ? (fa_flash_strides){0, l[1], l[0]} : (fa_flash_strides){l[0], l[2], l[1]};
  a->cu_seqlens_q = (const int32_t *)x[FA_T_CU_SEQLENS_Q].data;
  a->cu_seqlens_k = (const int32_t *)x[FA_T_CU_SEQLENS_K].data;
  a->seqused_k = (const int32_t *)x[FA_T_SEQUSED_K].data;
  a->leftpad_k = (const int32_t *)x[FA_T_LEFTPAD_K].data;
  a->seqlen_q = (int)p->seqlen_q;
  a->seqlen_k = (int)p->seqlen_k;
  a->heads_per_kv = (int)(p->heads_q / p->heads_kv);
  fill_masks(p, a);
  a->score_sign = p->scale > 0 ? 1.0f : p->scale < 0 ? -1.0f : 0.0f;
  const double scale = p->scale == 0 ? 1.0 : fabs(p->scale);
  a->scale = (float)scale;
  a->scale_log2 = (float)(scale * 1.4426950408889634);
  a->empty_lse = empty_lse_of(p->empty_lse);
  a->softcap = (float)p->softcap;
  if (p->alibi.present) {
    const fa_tensor *s = &x[FA_T_ALIBI_SLOPES];
    a->alibi_slopes = (const float *)s->data;
    a->alibi_batch_stride = s->rank == 2 ? s->stride[0] : 0;
  }
}

static int fill_ranges(const fa_tensors *t, fa_simt_range *ranges) {
  int n = 0;
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (t->buffer[i].base)
      ranges[n++] = (fa_simt_range){.name = fa_tensor_id_name((fa_tensor_id)i),
                                    .begin = t->buffer[i].base + FA_GUARD_BYTES,
                                    .bytes = t->buffer[i].bytes,
                                    .writable = i == FA_T_O || i == FA_T_LSE};
  return n;
}

static void name_kernel(const fa_problem *p, bool aligned, char *out, size_t size) {
  static const char *const mask[] = {"none", "causal", "window"};
  snprintf(out, size, "flash_forward<%s,%lld,%s%s%s%s>", fa_dtype_name(p->dtype), (long long)p->head_dim,
           mask[p->mask.type], p->softcap > 0 ? ",softcap" : "", p->alibi.present ? ",alibi" : "",
           aligned ? "" : ",unaligned");
}

static fa_status host_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                          fa_outcome *out, fa_error *err) {
  (void)self;
  memset(out, 0, sizeof *out);
  const char *why = why_not(p);
  if (why) return fa_fail(err, FA_ERR_UNSUPPORTED, "backend host: %s", why);
  const fa_tensor *x = t->t;
  const bool aligned = rows_are_aligned(&x[FA_T_Q]) && rows_are_aligned(&x[FA_T_K]) &&
                       rows_are_aligned(&x[FA_T_V]) && rows_are_aligned(&x[FA_T_O]);
  name_kernel(p, aligned, out->kernel, sizeof out->kernel);
  if ((why = check_tensors(p, t)) != NULL) {
    out->state = FA_SUBJECT_REJECTED;
    snprintf(out->text, sizeof out->text, "%s", why);
    return FA_OK;
  }
  if (!(opt->passes & FA_PASS_FORWARD) || p->batch == 0 || p->heads_q == 0 || p->seqlen_q == 0) return FA_OK;

  fa_flash_params params;
  fa_simt_range ranges[FA_T_COUNT];
  fill_params(p, t, &params);
  const fa_flash_kernel *k = kernel_for(p, aligned);
  const fa_simt_launch launch = {.kernel = k->entry,
                                 .params = &params,
                                 .name = out->kernel,
                                 .grid = {(unsigned)((p->seqlen_q + k->block_m - 1) / k->block_m),
                                          (unsigned)p->heads_q, (unsigned)p->batch},
                                 .block = {(unsigned)k->n_threads, 1, 1},
                                 .shared_bytes = k->shared_bytes,
                                 .ranges = ranges,
                                 .n_ranges = fill_ranges(t, ranges),
                                 .schedule_seed = opt->schedule_seed,
                                 .n_threads = opt->n_threads};
  fa_simt_report report;
  const fa_status status = fa_simt_run(&launch, &report, err);
  if (status != FA_OK) return status;
  out->state = report.state;
  snprintf(out->text, sizeof out->text, "%s", report.text);
  return FA_OK;
}

const fa_backend fa_backend_host = {
    .name = "host",
    .what = "the CUDA kernels, run thread by thread on the CPU with checks for races, deadlocks and bounds",
    .open = host_open,
    .close = host_close,
    .describe = host_describe,
    .supports = host_supports,
    .profile = host_profile,
    .run = host_run,
};
