/* Lists of blocks and of tiles: those that the kernels make, on the executor, against those made on the CPU,
 * the reference's, and every single pair. */
#include "cases/base/rng.h"
#include "gpu/args/problem.h"
#include "gpu/expr/functions.h"
#include "gpu/kernels/params/flex_lists.h"
#include "gpu/plan/make.h"
#include "gpu/simt/launch.h"
#include "ref/reference.h"
#include "tests/support/built_case.h"

#include <stdlib.h>
#include <string.h>

/* Declared here because ref/mods/tile.h also declares private parts of the reference. */
fa_status fa_ref_block_lists(const fa_problem *p, const fa_tensors *in, fa_int32_array out[4], fa_error *err);

/* ---- launches, with one piece of writable memory and what they only read ---- */

typedef struct memory {
  char *workspace;
  size_t bytes;
  uint8_t *written;
} memory;

static memory memory_of(size_t bytes) {
  memory m = {aligned_alloc(256, (bytes + 511) / 256 * 256), (bytes + 511) / 256 * 256, NULL};
  m.written = calloc(m.bytes / 4, 1);
  REQUIRE(m.workspace && m.written);
  memset(m.workspace, 0x7f, m.bytes); /* zeros are not promised */
  return m;
}

static void memory_free(memory *m) {
  free(m->workspace);
  free(m->written);
}

/* Launch i of a plan; false if the executor reports an error. */
static bool launch(const fa_plan *plan, int i, const memory *m, const fa_simt_range *more, int n_more) {
  const fa_launch *l = &plan->launch[i];
  fa_simt_range ranges[32] = {{"workspace", m->workspace, m->bytes, true, m->written}};
  memcpy(ranges + 1, more, (size_t)n_more * sizeof *more);
  const fa_simt_launch what = {.kernel = l->kernel.entry,
                               .params = l->params,
                               .name = l->kernel.name,
                               .grid = {l->grid[0], l->grid[1], l->grid[2]},
                               .block = {l->n_threads, 1, 1},
                               .shared_bytes = l->shared_bytes,
                               .ranges = ranges,
                               .n_ranges = n_more + 1,
                               .n_threads = 1};
  fa_simt_report report;
  fa_error err = {""};
  const fa_status status = fa_simt_run(&what, &report, &err);
  CHECK_MSG(status == FA_OK && report.state == FA_SUBJECT_OK, "%s: %s%s", l->kernel.name, err.text,
            report.text);
  return status == FA_OK && report.state == FA_SUBJECT_OK;
}

static int ranges_of(const fa_tensors *t, fa_simt_range *ranges) {
  int n = 0;
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (t->buffer[i].base)
      ranges[n++] = (fa_simt_range){fa_tensor_id_name((fa_tensor_id)i), t->buffer[i].base + FA_GUARD_BYTES,
                                    t->buffer[i].bytes, false, NULL};
  return n;
}

/* ---- blocks from mask_mod ---- */

typedef struct lists {
  int32_t *v[4];
  int64_t n[4];
} lists;

static lists lists_of(const fa_attention *a) {
  const int64_t rows = a->flex->list_batch * a->flex->list_heads * fa_flex_n_q(a);
  lists x;
  for (int i = 0; i < 4; ++i) {
    x.n[i] = i & 1 ? rows * fa_flex_n_kv(a) : rows;
    x.v[i] = malloc((size_t)x.n[i] * 4 + 4);
    REQUIRE(x.v[i]);
    memset(x.v[i], 0x7f, (size_t)x.n[i] * 4 + 4);
  }
  return x;
}
static void lists_free(lists *x) {
  for (int i = 0; i < 4; ++i) free(x->v[i]);
}
static fa_flex_block_lists outputs(const lists *x) {
  return (fa_flex_block_lists){x->v[0], x->v[1], x->v[2], x->v[3]};
}

static void by_kernels(const fa_attention *a, const fa_tensors *t, const lists *x) {
  static fa_plan plan;
  const fa_flex_block_lists out = outputs(x);
  const fa_flex_program *program = a->flex->program;
  fa_flex_interpreter *interpreter = NULL;
  size_t bytes = 0;
  REQUIRE(fa_flex_interpreter_make(NULL, &program->mask, program->buffer, program->n_buffers, a->flex->buffer,
                                   NULL, &interpreter, NULL) == FA_OK);
  REQUIRE(fa_flex_blocks_workspace(a, &bytes, NULL) == FA_OK);
  memory m = memory_of(bytes);
  const fa_call call = {.kind = FA_CALL_BLOCKS,
                        .a = a,
                        .lists = &out,
                        .functions = fa_flex_interpreter_functions(interpreter),
                        .workspace = m.workspace};
  CHECK(fa_plan_make(&call, NULL, &plan, NULL) == FA_OK);
  CHECK(plan.workspace_bytes == bytes);
  fa_simt_range ranges[31];
  int n = ranges_of(t, ranges);
  for (int i = 0; i < 4; ++i)
    ranges[n++] = (fa_simt_range){"list", (char *)x->v[i], (size_t)x->n[i] * 4, true, NULL};
  bool good = true;
  for (int i = 0; good && i < plan.n_launches; ++i) good = launch(&plan, i, &m, ranges, n);
  memory_free(&m);
  fa_flex_interpreter_free(interpreter);
}

static bool same(const lists *a, const lists *b) {
  for (int i = 0; i < 4; ++i)
    if (memcmp(a->v[i], b->v[i], (size_t)a->n[i] * 4) != 0) return false;
  return true;
}

static void check_blocks(const fa_case *c) {
  const fa_problem *p = &c->problem;
  fa_tensors t = build(c);
  fa_attention a;
  fa_args_flex x;
  fa_int32_array want[4];
  fa_error err = {""};
  REQUIRE(fa_args_flex_make(p, &x, &err) == FA_OK);
  const char *why = fa_args_tensors(p, &t, &a);
  if (!why) why = fa_args_flex_tensors(p, &t, &x, &a);
  CHECK_MSG(!why, "%s", why);
  x.flex.list_batch = p->batch;
  x.flex.list_heads = p->heads_q;
  lists kernels = lists_of(&a), cpu = lists_of(&a);
  const fa_flex_block_lists out = outputs(&cpu);
  CHECK_MSG(fa_flex_blocks_on_host(&a, &out, &err) == FA_OK, "%s", err.text);
  by_kernels(&a, &t, &kernels);
  CHECK_MSG(fa_ref_block_lists(p, &t, want, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(same(&kernels, &cpu), "%s: kernels and CPU differ", p->mask_mod);
  for (int i = 0; i < 4; ++i) {
    CHECK_MSG(want[i].n == cpu.n[i] &&
                  (cpu.n[i] == 0 || memcmp(want[i].v, cpu.v[i], (size_t)cpu.n[i] * 4) == 0),
              "%s: list %d is not the reference's, blocks %lld x %lld of %lld x %lld", p->mask_mod, i,
              (long long)p->block_sparse.q_block, (long long)p->block_sparse.kv_block, (long long)p->seqlen_q,
              (long long)p->seqlen_k);
    free(want[i].v);
  }
  lists_free(&kernels);
  lists_free(&cpu);
  fa_args_flex_free(&x);
  fa_tensors_free(&t);
}

static const char *const masks[] = {"q_idx >= kv_idx",
                                    "h % 2 == 0 ? q_idx >= kv_idx : abs(q_idx - kv_idx) < 9",
                                    "abs(q_idx - kv_idx) < 7 + 20 * b",
                                    "kv_idx < seqlen_k - 5 && q_idx * 2 < seqlen_q + b",
                                    "doc[q_idx] == doc[kv_idx]",
                                    "(q_idx + kv_idx) % 2 == h",
                                    "true",
                                    "false"};

static int64_t size_of(fa_rng *r, const int64_t *sizes, int64_t n) {
  return sizes[fa_rng_below(r, n)];
}

/* Sequences of any lengths up to the longest, which the problem has as its lengths. */
static void pack(fa_rng *r, fa_problem *p) {
  int32_t q[4] = {0}, k[4] = {0};
  for (int64_t b = 0; b < p->batch; ++b) {
    q[b + 1] = q[b] + (int32_t)fa_rng_below(r, p->seqlen_q + 1);
    k[b + 1] = k[b] + (int32_t)fa_rng_below(r, p->seqlen_k + 1);
  }
  set_array(&p->cu_seqlens_q, q, p->batch + 1);
  set_array(&p->cu_seqlens_k, k, p->batch + 1);
}

static void test_blocks(void) {
  static const int64_t blocks[] = {1, 3, 16, 33, 64, 100, 128, 1 << 20}, lengths[] = {0, 1, 17, 64, 100, 129};
  fa_rng r = fa_rng_make(7, 1);
  for (int trial = 0; trial < 160; ++trial) {
    fa_case c;
    REQUIRE(fa_case_init(&c) == FA_OK);
    fa_problem *p = &c.problem;
    fa_problem_set_family(p, FA_FLEX);
    p->backward = false;
    p->batch = 1 + (int64_t)fa_rng_below(&r, 3);
    p->heads_q = 1 + (int64_t)fa_rng_below(&r, 3);
    p->heads_kv = 1;
    p->seqlen_q = size_of(&r, lengths, 6);
    p->seqlen_k = size_of(&r, lengths, 6);
    p->head_dim = p->head_dim_v = 8;
    p->mask_mod = strdup(masks[trial % 8]);
    p->block_sparse = (fa_block_sparse){.present = true,
                                        .source = FA_BLOCKS_MASK_MOD,
                                        .q_block = size_of(&r, blocks, 8),
                                        .kv_block = size_of(&r, blocks, 8)};
    p->captures = calloc(1, sizeof *p->captures);
    REQUIRE(p->mask_mod && p->captures);
    p->n_captures = 1;
    *p->captures = (fa_capture){.name = "doc",
                                .rank = 1,
                                .shape = {129},
                                .fill = "normal",
                                .dtype = FA_I32,
                                .sorted = true,
                                .below = 4};
    int32_t pads[3], used[3];
    for (int b = 0; b < 3; ++b) {
      used[b] = (int32_t)fa_rng_below(&r, p->seqlen_k + 1);
      pads[b] = (int32_t)fa_rng_below(&r, used[b] + 1);
    }
    if (trial % 3 == 1) set_array(&p->seqused_k, used, p->batch);
    if (trial % 3 == 1 && trial % 2) set_array(&p->leftpad_k, pads, p->batch);
    if (trial % 3 == 2) pack(&r, p);
    REQUIRE(fa_problem_complete(p) == FA_OK);
    check_blocks(&c);
    fa_case_free(&c);
  }
}

/* ---- tiles ---- */

/* What the lists say about pairs: kinds, [batch][heads][n_q][n_kv]. */
typedef struct drawn {
  int64_t batch, heads, n_q, n_kv;
  uint8_t *kind;
  lists x;
} drawn;

/* An entry that names no block, on either side of those that there are. */
static int32_t nowhere(fa_rng *r, int64_t n_kv) {
  const int32_t far = (int32_t)fa_rng_below(r, 1 << 20);
  return fa_rng_below(r, 2) ? -1 - far : (int32_t)n_kv + far;
}

/* Runs of one kind, so that some tiles lie in blocks of one kind. */
static drawn draw(fa_rng *r, const fa_attention *a, int64_t batch, int64_t heads) {
  drawn d = {batch, heads, fa_flex_n_q(a), fa_flex_n_kv(a), NULL, lists_of(a)};
  const int64_t rows = batch * heads * d.n_q;
  d.kind = malloc((size_t)(rows * d.n_kv) + 1);
  REQUIRE(d.kind);
  for (int64_t row = 0; row < rows; ++row) {
    d.x.v[0][row] = d.x.v[2][row] = 0;
    for (int64_t k = 0; k < d.n_kv; ++k) {
      const bool again = k > 0 && fa_rng_below(r, 4) != 0, above = row % d.n_q > 0 && fa_rng_below(r, 4) != 0;
      uint8_t *kind = &d.kind[row * d.n_kv + k];
      *kind = (uint8_t)(above ? kind[-d.n_kv] : again ? kind[-1] : fa_rng_below(r, 3));
      if (*kind == FA_FLEX_FULLY_MASKED) continue;
      const int list = *kind == FA_FLEX_FULL ? 2 : 0;
      d.x.v[list + 1][row * d.n_kv + d.x.v[list][row]++] = (int32_t)k;
    }
    for (int list = 0; list < 4; list += 2) { /* in any order; what follows may be anything */
      int32_t *index = d.x.v[list + 1] + row * d.n_kv, n = d.x.v[list][row];
      if (n < d.n_kv && fa_rng_below(r, 8) == 0) {
        index[n++] = nowhere(r, d.n_kv);
        d.x.v[list][row] = n;
      }
      if (n > 1 && fa_rng_below(r, 2)) {
        const int32_t first = index[0];
        index[0] = index[n - 1], index[n - 1] = first;
      }
      for (int64_t i = n; i < d.n_kv; ++i) index[i] = (int32_t)fa_rng_below(r, (int64_t)1 << 31) - (1 << 30);
    }
  }
  return d;
}

/* Examines every pair of the tile that exists. */
static int kind_by_pairs(const drawn *d, const fa_attention *a, int64_t b, int64_t map, int64_t row0,
                         int64_t m, int64_t key0, int64_t n) {
  const int64_t rows = a->cu_seqlens_q ? a->cu_seqlens_q[b + 1] - a->cu_seqlens_q[b] : a->seqlen_q;
  const int64_t keys = a->cu_seqlens_k ? a->cu_seqlens_k[b + 1] - a->cu_seqlens_k[b] : a->seqlen_k;
  int kind = -1;
  for (int64_t i = row0; i < row0 + m && i < rows; ++i)
    for (int64_t j = key0; j < key0 + n && j < keys; ++j) {
      const int of_pair = d->kind[(map * d->n_q + i / a->flex->q_block) * d->n_kv + j / a->flex->kv_block];
      if (kind >= 0 && of_pair != kind) return FA_FLEX_MIXED;
      kind = of_pair;
    }
  return kind < 0 ? FA_FLEX_FULLY_MASKED : kind;
}

static void check_tiles(const drawn *d, const fa_attention *a, const fa_flex_lists *l,
                        const fa_flex_lists_params *p) {
  for (int64_t b = 0; b < a->batch; ++b)
    for (int64_t h = 0; h < a->heads_q; ++h)
      for (int64_t t = 0; t < l->n; ++t) {
        const int64_t at = b * l->batch_stride + h * l->head_stride + t;
        const int64_t map = (d->batch > 1 ? b : 0) * d->heads + (d->heads > 1 ? h : 0);
        int n = 0;
        bool good = true;
        for (int64_t u = 0; u < l->capacity; ++u) {
          const int64_t row = p->by_rows ? u : t, key = p->by_rows ? t : u;
          const int want =
              kind_by_pairs(d, a, b, map, row * p->tile_m, p->tile_m, key * p->tile_n, p->tile_n);
          if (want == FA_FLEX_FULLY_MASKED) continue;
          good &= n < l->count[at] && l->entry[at * l->capacity + n] == (int32_t)(u * 4 + want);
          ++n;
        }
        CHECK_MSG(good && n == l->count[at], "b %lld h %lld tile %lld of %d x %d: %d listed, %d wanted",
                  (long long)b, (long long)h, (long long)t, p->tile_m, p->tile_n, l->count[at], n);
      }
}

/* Runs the plan's launches that make lists, and checks each list of tiles. */
static int check_plan(const fa_plan *plan, const drawn *d, const fa_attention *a, const memory *m) {
  fa_simt_range ranges[6];
  int n_lists = 0, n_ranges = 4;
  for (int i = 0; i < 4; ++i)
    ranges[i] = (fa_simt_range){"list", (char *)d->x.v[i], (size_t)d->x.n[i] * 4, false, NULL};
  const int32_t *const lengths[] = {a->cu_seqlens_q, a->cu_seqlens_k};
  for (int i = 0; i < 2; ++i)
    if (lengths[i])
      ranges[n_ranges++] =
          (fa_simt_range){"lengths", (char *)lengths[i], (size_t)(a->batch + 1) * 4, false, NULL};
  const bool apart = d->batch > 1 || a->cu_seqlens_q;
  for (int i = 0; i < plan->n_launches; ++i) {
    const fa_launch *l = &plan->launch[i];
    if (l->writes != FA_WRITES_WORKSPACE) continue;
    if (!launch(plan, i, m, ranges, n_ranges)) return 0;
    const fa_flex_lists_params *p = l->params;
    if (!p->tile_count) continue;
    const int64_t heads = d->heads > 1 ? p->n_tiles : 0, batch = apart ? p->n_tiles * d->heads : 0;
    const fa_flex_lists made = {p->tile_count, p->tile_entry, p->n_tiles, p->capacity, batch, heads};
    check_tiles(d, a, &made, p);
    ++n_lists;
  }
  return n_lists;
}

/* Of one whole sequence and one of any length. */
static void set_cu_seqlens(fa_rng *r, int64_t longest, int32_t *cu, const int32_t **at, int64_t *total) {
  cu[0] = 0;
  cu[1] = (int32_t)(fa_rng_below(r, 2) ? longest : fa_rng_below(r, longest + 1));
  cu[2] = cu[1] + (int32_t)(cu[1] == longest ? fa_rng_below(r, longest + 1) : longest);
  *at = cu;
  *total = cu[2];
}

static void test_tiles(void) {
  static const int64_t blocks[] = {1, 16, 64, 96, 128, 256, 1 << 20}, lengths[] = {1, 70, 128, 300, 513};
  static char memory16[64];
  static fa_plan plan;
  fa_rng r = fa_rng_make(11, 1);
  for (int trial = 0; trial < 80; ++trial) {
    int32_t cu_q[3], cu_k[3];
    fa_attention a;
    fa_gradients g;
    fa_flex f;
    fa_attention_init(&a);
    fa_gradients_init(&g);
    fa_flex_init(&f);
    a.batch = 2, a.heads_q = 2, a.head_dim = 64, a.scale = 1;
    a.seqlen_q = size_of(&r, lengths, 5), a.seqlen_k = size_of(&r, lengths, 5);
    a.o = g.dq = g.dk = g.dv = memory16; /* never read */
    a.q = a.k = a.v = g.d_o = memory16;
    a.lse = (float *)(void *)memory16;
    a.q_stride = a.o_stride = g.do_stride = g.dq_stride = fa_strides_dense(a.seqlen_q, 2, 64);
    a.k_stride = a.v_stride = g.dk_stride = g.dv_stride = fa_strides_dense(a.seqlen_k, 1, 64);
    a.lse_stride = (fa_strides){2 * a.seqlen_q, 1, a.seqlen_q};
    if (trial >= 40) {
      set_cu_seqlens(&r, a.seqlen_q, cu_q, &a.cu_seqlens_q, &a.total_q);
      set_cu_seqlens(&r, a.seqlen_k, cu_k, &a.cu_seqlens_k, &a.total_k);
      a.lse_stride = (fa_strides){0, 1, a.total_q};
    }
    a.flex = &f;
    f.q_block = size_of(&r, blocks, 7), f.kv_block = size_of(&r, blocks, 7);
    f.list_batch = 1 + trial % 2, f.list_heads = 1 + trial / 2 % 2;
    drawn d = draw(&r, &a, f.list_batch, f.list_heads);
    f.kv_num_blocks = d.x.v[0], f.kv_indices = d.x.v[1];
    f.full_kv_num_blocks = d.x.v[2], f.full_kv_indices = d.x.v[3];
    size_t bytes = 0;
    CHECK(fa_backward_workspace(&a, &g, &bytes, NULL) == FA_OK);
    memory m = memory_of(bytes);
    fa_call call = {.kind = FA_CALL_FORWARD, .a = &a, .g = &g, .n_processors = 132, .workspace = m.workspace};
    CHECK(fa_plan_make(&call, NULL, &plan, NULL) == FA_OK);
    CHECK(check_plan(&plan, &d, &a, &m) == 1);
    call.kind = FA_CALL_BACKWARD;
    CHECK(fa_plan_make(&call, NULL, &plan, NULL) == FA_OK);
    CHECK(plan.workspace_bytes <= bytes && check_plan(&plan, &d, &a, &m) == 2);
    memory_free(&m);
    lists_free(&d.x);
    free(d.kind);
  }
}

int main(void) {
  test_blocks();
  test_tiles();
  return check_done();
}
