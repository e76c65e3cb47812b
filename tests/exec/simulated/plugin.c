/* A plugin (gpu/plugin.h) that computes attention in any arithmetic and by any conventions that the environment
 * variable FA_SIMULATED names: the subject with known properties on which probes and bounds are tried.
 *
 *   FA_SIMULATED=mma-sm80 fa-verify run --backend plugin:./simulated.so ...
 *   FA_SIMULATED=p=bf16,operand_qk=tf32,lse_base2=1 FA_SIMULATED_HELLO='"lse": {"base": "2"}' ...
 *
 * The keys and the named variants: config.c. */
#include "tests/exec/simulated/head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct simulated {
  sim_config c;
  int runs;
  char hello[2048];
} simulated;

static int open_(void **self, char *message, size_t size) {
  simulated *x = calloc(1, sizeof *x);
  if (!x || !sim_config_read(getenv("FA_SIMULATED"), &x->c, message, size)) {
    free(x);
    return 1;
  }
  *self = x;
  return 0;
}

static void close_(void *self) {
  free(self);
}

static const char features[] = "\"causal\", \"window\", \"top_left\", \"bottom_right\", \"varlen\", "
                               "\"seqused_k\", \"leftpad_k\", \"gqa\", "
                               "\"head_dim_v\", \"softcap\", \"alibi\", \"bias\", \"bias_grad\", "
                               "\"dropout\", \"dlse\", \"return_softmax\", "
                               "\"paged\", \"batch_idx\", \"splits\", \"deterministic\", \"empty_lse\", "
                               "\"quantized\", \"quantized_keys\", \"quantized_tokens\", \"quantized_amax\", "
                               "\"quantized_e2m1\", \"quantized_o\"";

/* FA_SIMULATED_HELLO: more of the hello, as JSON members: what it says of itself, true or not. */
static const char *hello(void *self) {
  simulated *x = self;
  const char *more = getenv("FA_SIMULATED_HELLO");
  snprintf(x->hello, sizeof x->hello,
           "{\"families\": [\"flash\", \"memeff\", \"flex\", \"kvcache\"], \"dtypes\": [%s], \"features\": "
           "[%s]%s%s}",
           x->c.f32_only ? "\"f32\"" : "\"f32\", \"f16\", \"bf16\"", features, more && *more ? ", " : "",
           more ? more : "");
  return x->hello;
}

/* Whether it takes such calls at all: kernels for serving have one kind, and often one query a sequence. */
static unsigned supports(void *self, const fa_plugin_problem *p, char *why_not, size_t size) {
  const sim_only only = (sim_only)((simulated *)self)->c.only;
  const bool cache = p->cache != 0, paged = p->page_size > 0;
  static const char *const reasons[] = {"",
                                        "packed sequences only",
                                        "calls over a cache only",
                                        "caches in pages only",
                                        "one query a sequence only",
                                        "one query a sequence, over pages only"};
  const bool takes[] = {[SIM_ANY_CALL] = true,
                        [SIM_PACKED] = p->cu_seqlens_q != NULL,
                        [SIM_CACHE] = cache,
                        [SIM_PAGED] = paged,
                        [SIM_DECODE] = p->seqlen_q <= 1,
                        [SIM_PAGED_DECODE] = paged && p->seqlen_q <= 1};
  if (takes[only]) return FA_PLUGIN_FORWARD | FA_PLUGIN_BACKWARD;
  snprintf(why_not, size, "%s", reasons[only]);
  return 0;
}

/* What a kernel may do to the process that asks it. */
static void fail(const sim_config *c, const fa_plugin_problem *p, unsigned passes) {
  const bool now[] = {[SIM_AT_SOFTCAP] = p->softcap > 0,
                      [SIM_AT_BACKWARD] = (passes & FA_PLUGIN_BACKWARD) != 0,
                      [SIM_ALWAYS] = true};
  if (!now[c->fails_at]) return;
  if (c->fails == SIM_CRASHES) abort();
  while (c->fails == SIM_HANGS) pause();
}

static void add_dbias(const sim_call *call, const sim_head *e, float *sum) {
  const fa_plugin_tensor *t = &call->t->dbias;
  const int64_t *n = t->shape;
  const int64_t b = n[0] > 1 ? e->b : 0, h = n[1] > 1 ? e->h : 0;
  for (int64_t i = 0; i < e->n_q; ++i)
    for (int64_t j = 0; j < e->n_k; ++j)
      sum[((b * n[1] + h) * n[2] + (n[2] > 1 ? i : 0)) * n[3] + j] += e->dp[i * e->n_k + j];
}

static void write_dbias(const fa_plugin_tensor *t, const float *sum) {
  const int64_t *n = t->shape, *s = t->stride;
  for (int64_t at = 0; at < n[0] * n[1] * n[2] * n[3]; ++at) {
    const int64_t j = at % n[3], i = at / n[3] % n[2], h = at / n[3] / n[2] % n[1],
                  b = at / n[3] / n[2] / n[1];
    sim_store(t->data, t->dtype, b * s[0] + h * s[1] + i * s[2] + j * s[3], sum[at]);
  }
}

/* dK or dV of one sequence: every key in memory, hidden ones too. */
static void write_keys(const sim_call *call, const sim_head *e, const fa_plugin_tensor *t, int64_t width,
                       const float *sum) {
  for (int64_t hk = 0; hk < call->p->heads_kv && t->data; ++hk)
    for (int64_t j = 0; j < e->longest; ++j)
      for (int64_t d = 0; d < width; ++d)
        sim_store(t->data, t->dtype, sim_row_k(call, e, t, hk, j) + d * t->stride[t->rank - 1],
                  sum[(hk * e->longest + j) * width + d]);
}

static bool run_sequence(const sim_call *call, int64_t b, unsigned passes, float *dbias) {
  const fa_plugin_problem *p = call->p;
  const bool backward = passes & FA_PLUGIN_BACKWARD;
  for (int64_t h = 0; h < p->heads_q; ++h) {
    sim_head e;
    if (!sim_head_make(call, b, h, &e)) return false;
    const size_t keys = (size_t)(e.longest * p->heads_kv);
    if (h == 0 && backward) {
      memset(call->d_k, 0, keys * (size_t)e.d * sizeof(float));
      memset(call->d_v, 0, keys * (size_t)e.dv * sizeof(float));
    }
    sim_scores(call, &e);
    sim_forward(call, &e);
    if (backward) sim_backward(call, &e);
    if (backward && dbias) add_dbias(call, &e, dbias);
    if (backward && h == p->heads_q - 1) {
      write_keys(call, &e, &call->t->dk, e.d, call->d_k);
      write_keys(call, &e, &call->t->dv, e.dv, call->d_v);
    }
    sim_head_free(&e);
  }
  return true;
}

static int run(void *self, const fa_plugin_problem *p, const fa_plugin_tensors *t, fa_plugin_run *r) {
  simulated *x = self;
  fail(&x->c, p, r->passes);
  const bool backward = r->passes & FA_PLUGIN_BACKWARD;
  const int64_t keys = p->heads_kv * p->seqlen_k + 1;
  const int64_t *n = t->dbias.shape;
  sim_amax amax;
  sim_call call = {.c = &x->c,
                   .p = p,
                   .t = t,
                   .io = sim_format_of(p->quantized_queries ? t->q.dtype : p->dtype),
                   .runs = x->runs++,
                   .amax = &amax};
  float *dbias =
      backward && t->dbias.data ? calloc((size_t)(n[0] * n[1] * n[2] * n[3] + 1), sizeof *dbias) : NULL;
  call.d_k = backward ? malloc((size_t)(keys * p->head_dim) * sizeof(float)) : NULL;
  call.d_v = backward ? malloc((size_t)(keys * p->head_dim_v) * sizeof(float)) : NULL;
  bool good = !backward || (call.d_k && call.d_v && (dbias || !t->dbias.data));
  sim_amax_begin(&call);
  for (int64_t b = 0; good && b < p->batch; ++b) good = run_sequence(&call, b, r->passes, dbias);
  sim_amax_store(&call);
  if (good && dbias) write_dbias(&t->dbias, dbias);
  free(dbias);
  free(call.d_k);
  free(call.d_v);
  if (!good) snprintf(r->message, sizeof r->message, "out of memory");
  return good ? 0 : 2;
}

const fa_plugin fa_plugin_table = {.version = FA_PLUGIN_VERSION,
                                   .size = sizeof(fa_plugin),
                                   .name = "simulated: any arithmetic",
                                   .open = open_,
                                   .close = close_,
                                   .hello = hello,
                                   .supports = supports,
                                   .run = run};
