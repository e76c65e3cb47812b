/* The C interface for attention kernels that fa-verify judges as black boxes, version 2:
 *
 *   fa-verify run --backend plugin:./mine.so --cases cases/causal.json
 *
 * A plugin is a shared library that exports one object, `const fa_plugin fa_plugin_table`. This header needs
 * nothing else from the project; tests/exec/example_plugin.c is a complete plugin. docs/reference/plugin.md explains
 * each part, docs/reference/semantics.md what to compute.
 *
 * Structs begin with their size, so that members can be added at their ends: a library made with an older header
 * does not see the newer members, and one made with a newer header asks FA_PLUGIN_HAS before it uses them.
 * FA_PLUGIN_VERSION changes only if something else does; libraries of version 1 still load.
 *
 * The library runs in a worker process: if it crashes or hangs, that case fails and the others go on. Every
 * case is run twice, with outputs that hold different NaN patterns; the plugin must write all outputs that it
 * has promised, and nothing else. All pointers are to host memory; a plugin that computes on a device copies. */
#ifndef FA_GPU_PLUGIN_H
#define FA_GPU_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FA_PLUGIN_VERSION 2

/* True if the struct at x is long enough for the member. */
#define FA_PLUGIN_HAS(x, member)                                                                             \
  ((size_t)((const char *)&(x)->member - (const char *)(x)) + sizeof(x)->member <= (x)->size)

enum {
  FA_PLUGIN_F16,
  FA_PLUGIN_BF16,
  FA_PLUGIN_F32,
  FA_PLUGIN_I32,
  FA_PLUGIN_U8,
  FA_PLUGIN_F64,
  FA_PLUGIN_I64,
  FA_PLUGIN_BOOL,
  FA_PLUGIN_E4M3,
  FA_PLUGIN_E5M2,
  FA_PLUGIN_I8
};
enum { FA_PLUGIN_FORWARD = 1, FA_PLUGIN_BACKWARD = 2 }; /* bits of passes */

/* A buffer that score_mod or mask_mod reads. */
typedef struct fa_plugin_capture {
  size_t size;
  const char *name;
  int dtype; /* FA_PLUGIN_F32, FA_PLUGIN_I32; if the hello lists captures_bool, captures_i64 or captures_half, theirs too */
  int rank;  /* 0: a scalar, whose tensor is [1] */
  int64_t shape[4];
  int wants_gradient; /* its gradient is an output of the backward */
} fa_plugin_capture;

/* Names and meanings as in the case file (docs/reference/semantics.md). */
typedef struct fa_plugin_problem {
  size_t size;
  const char *case_json; /* all of it, as in a case file: also what has no member here. No name, no data */
  const char *family;    /* "flash", "memeff", "flex", "kvcache" */
  int dtype;             /* of q, k, v, o and their gradients */
  int backward;          /* the case has one */
  int64_t batch, heads_q, heads_kv; /* query head h reads KV head h / (heads_q / heads_kv) */
  int64_t seqlen_q, seqlen_k;       /* variable length: of the longest sequence; cache: a row's capacity */
  int64_t head_dim, head_dim_v;     /* of q and k; of v and o */
  double scale, softcap;            /* softcap 0: off */

  /* Variable length: q is [total, heads, head_dim]. NULL: absent. These repeat tensors of the same names. */
  const int32_t *cu_seqlens_q, *cu_seqlens_k; /* [batch + 1] */
  const int32_t *seqused_k, *leftpad_k;       /* [batch] */

  const char *mask;                  /* "none", "causal", "window", "chunk" */
  int64_t window_left, window_right; /* row i sees keys i + shift - left .. i + shift + right; -1: all.
                                        causal: -1, 0 */
  int align_top_left;                /* 1: shift = 0; otherwise a sequence's keys minus its rows */
  int alibi, bias, bias_grad;        /* the call has slopes; a bias; its gradient is an output */
  double dropout_p;                  /* 0: off */
  uint64_t dropout_seed, dropout_offset;
  float empty_lse;    /* LSE of a fully masked row, unless the hello says otherwise; its O is 0 */
  int return_softmax; /* p_debug is an output */
  int grad_lse;       /* d_lse comes in with d_o */
  int deterministic;
  int64_t splits; /* 0: the kernel chooses */

  const char *score_mod, *mask_mod; /* NULL: none (docs/reference/expressions.md) */
  int64_t n_captures;
  const fa_plugin_capture *const *captures; /* [n_captures] */
  int block_sparse;                         /* there are lists of blocks */
  int64_t q_block, kv_block;                /* their sizes; 0: none */

  int cache; /* k and v are caches: [rows, capacity, heads, d] or [pages, page_size, heads, d] */
  int64_t n_new, page_size; /* keys that the call appends; 0: none; 0: no pages */
  int64_t rotary_dim;       /* 0: none */
  int rotary_interleaved;
  const int32_t *cache_seqlens, *cache_batch_idx; /* [batch]; NULL: absent */
  int64_t chunk; /* keys of a chunk, before which a row sees none; 0: no chunks */
  int mask_bits; /* there is a bit for every pair */
  /* a logit a head in the denominator; its gradient is an output; lse has it in */
  int sinks, sinks_grad, sinks_in_lse;
  int v_in_k;   /* a latent cache: v is a view of the first head_dim_v columns of k, and v_new of k_new */
  int64_t topk; /* entries of a row's list of keys; 0: no lists */
  /* variable length: lse, unless the hello gives it another layout, and d_lse are [batch, heads_q, seqlen_q]; behind a
   * sequence's last row lse may hold anything, and d_lse does */
  int lse_padded;
  int quantized; /* keys and values are of 8 bits (FA_PLUGIN_E4M3 ...) or 4, and k_descale and v_descale are given */
  int quantized_queries; /* queries too: q_descale */
  const char
      *descale;    /* "tensor", "head", "token", "page": how many numbers share one; NULL: there are none */
  int amax;        /* amax_p and amax_o are outputs */
  int quantized_o; /* o is of 8 bits, o_scale times what it is, and saturates */
} fa_plugin_problem;

/* Strides in elements; 0 on an expanded axis of an input. This struct does not grow. */
typedef struct fa_plugin_tensor {
  void *data; /* NULL: the call has no such tensor, or the plugin has not promised to write it */
  int dtype, rank;
  int64_t shape[5], stride[5];
} fa_plugin_tensor;

/* Shapes: [B, S, H, D] for q, k, v, o and gradients (variable length: [total, H, D]), [B, H, S] for lse and
 * d_lse ([H, total] unless lse_padded), [B or 1, H or 1, Sq or 1, Sk] for bias. lse has the layout and the type that the hello
 * says. */
typedef struct fa_plugin_tensors {
  size_t size;
  /* read */
  fa_plugin_tensor q, k, v; /* k and v are also written by a call that appends */
  fa_plugin_tensor bias, alibi_slopes, d_o, d_lse;
  fa_plugin_tensor cu_seqlens_q, cu_seqlens_k, seqused_k, leftpad_k;
  fa_plugin_tensor k_new, v_new, cache_seqlens, cache_batch_idx, block_table, rotary_cos, rotary_sin;
  fa_plugin_tensor kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices; /* by query block */
  fa_plugin_tensor q_num_blocks, q_indices, full_q_num_blocks, full_q_indices;     /* by key block */
  const fa_plugin_tensor *buffers; /* [n_captures], as problem->captures names them */
  /* written */
  fa_plugin_tensor o, lse, p_debug, dq, dk, dv, dbias;
  const fa_plugin_tensor *dbuffers; /* [n_captures]; data is NULL where no gradient is wanted */
  /* read */
  fa_plugin_tensor mask_bits,
      mask_indptr;                /* u8, i32 [batch + 1] (docs/reference/semantics.md, "Custom masks") */
  fa_plugin_tensor sinks, dsinks; /* f32 [heads_q]; read, and written */
  /* read: i32 [B, Sq, topk] or [total, topk], i32 [B] (docs/reference/semantics.md, "Lists of keys") */
  fa_plugin_tensor topk_indices, topk_length;
  /* read: f32, one for a tensor, [B, Hk], as q or k without columns, or [pages, Hk] ("Eight bits" there) */
  fa_plugin_tensor q_descale, k_descale, v_descale;
  fa_plugin_tensor k_scales, v_scales; /* read: e4m3, of 16 numbers of 4 bits each, where k and v are u8 */
  fa_plugin_tensor amax_p, amax_o;     /* written: f32 [1], the largest magnitudes of P and of O */
  fa_plugin_tensor o_scale;            /* read: f32 [1] */
} fa_plugin_tensors;

/* How a call is to run, and what became of it. Texts are NUL-terminated, and empty before the call. */
typedef struct fa_plugin_run {
  size_t size;
  unsigned passes; /* the backward follows its forward in the same call, and uses that one's o and lse */
  int n_threads;   /* that it may use on the host */
  /* written */
  char message[512]; /* why it refused or failed */
  char kernel[128];  /* for the report; "": not said */
  char outputs[128]; /* "o dq": it wrote only these of what it has promised; "": all */
} fa_plugin_run;

typedef struct fa_plugin {
  uint32_t version; /* FA_PLUGIN_VERSION */
  uint32_t size;    /* sizeof(fa_plugin) */
  const char *name; /* one line, for reports */

  /* All of these may be NULL except run. *self is passed to every later call. message: why open failed,
   * NUL-terminated. */
  int (*open)(void **self, char *message, size_t message_size); /* 0: success */
  void (*close)(void *self);

  /* What it takes, what it delivers in which conventions, and how it computes: the JSON object that a program
   * sends as its hello, version 2 (docs/reference/protocol.md), without "fa_exec", "type" and "id":
   *
   *   {"families": ["flash"], "dtypes": ["f32"], "features": ["causal", "gqa"], "passes": ["forward"],
   *    "outputs": ["o", "lse"], "lse": {"base": "2"}, "arithmetic": {"name": "simt-f32"}}
   *
   * Asked once, after open; the text stays valid until close. NULL: it takes and delivers everything, and
   * nothing is known about its arithmetic. */
  const char *(*hello)(void *self);

  /* The passes (FA_PLUGIN_FORWARD, FA_PLUGIN_BACKWARD) that it can do for a problem that the hello lets
   * through. Otherwise a short clause why not all: the case is then skipped, or judged without its backward. */
  unsigned (*supports)(void *self, const fa_plugin_problem *problem, char *why_not, size_t why_not_size);

  /* Computes. Returns 0: done; FA_PLUGIN_REFUSED: these arguments are not allowed, see message; anything else:
   * the machine failed (the run ends with exit code 3), see message. */
  int (*run)(void *self, const fa_plugin_problem *problem, const fa_plugin_tensors *tensors,
             fa_plugin_run *run);
} fa_plugin;

#define FA_PLUGIN_REFUSED 1

/* What a plugin defines. */
extern __attribute__((visibility("default"))) const fa_plugin fa_plugin_table;

#ifdef __cplusplus
}
#endif

#endif
