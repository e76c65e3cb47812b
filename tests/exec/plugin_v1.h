/* The C interface for attention kernels that fa-verify judges as black boxes:
 *
 *   fa-verify run --backend plugin:./mine.so --cases cases/causal.json
 *
 * A plugin is a shared library that exports one object, `const fa_plugin fa_plugin_table`. This header needs
 * nothing else from the project; tests/exec/example_plugin.c is a complete plugin. docs/reference/semantics.md defines
 * what to compute. FA_PLUGIN_VERSION changes whenever anything here does, and a library of another version is
 * rejected.
 *
 * The library runs in a worker process: if it crashes or hangs, that case fails and the others go on. Every
 * case is run twice, with outputs that hold different NaN patterns; the plugin must write all outputs and
 * nothing else. All pointers are to host memory; a plugin that computes on a device copies. */
#ifndef FA_GPU_PLUGIN_H
#define FA_GPU_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FA_PLUGIN_VERSION 1

enum { FA_PLUGIN_F16, FA_PLUGIN_BF16, FA_PLUGIN_F32, FA_PLUGIN_I32, FA_PLUGIN_U8 }; /* element types */
enum { FA_PLUGIN_FORWARD = 1, FA_PLUGIN_BACKWARD = 2 };                             /* bits of passes */

/* Names and meanings as in the case file (docs/reference/semantics.md). */
typedef struct fa_plugin_problem {
  const char *family;                /* "flash", "memeff", "flex", "kvcache" */
  int dtype;                         /* of q, k, v, o and their gradients */
  int variable_length;               /* 1: cu_seqlens are present, q is [total, heads, head_dim] */
  int64_t batch, heads_q, heads_kv;  /* query head h reads KV head h / (heads_q / heads_kv) */
  int64_t seqlen_q, seqlen_k;        /* variable length: of the longest sequence */
  int64_t head_dim, head_dim_v;      /* of q and k; of v and o */
  double scale, softcap;             /* softcap 0: off */
  int64_t window_left, window_right; /* row i sees keys i + shift - left .. i + shift + right; -1: all.
                                        causal: -1, 0 */
  int align_top_left;                /* 1: shift = 0; otherwise a sequence's keys minus its rows */
  double dropout_p;                  /* 0: off */
  uint64_t dropout_seed, dropout_offset;
  float empty_lse;                      /* LSE of a fully masked row; its O is 0 */
  int64_t splits;                       /* 0: the kernel chooses */
  int deterministic, backward;          /* backward: the case has one */
  const char *score_mod, *mask_mod;     /* NULL: none */
  int64_t n_new, page_size, rotary_dim; /* kvcache; 0: none */
  int rotary_interleaved;
  int64_t q_block, kv_block; /* block lists; 0: none */
} fa_plugin_problem;

/* Strides in elements; 0 on an expanded axis of an input. */
typedef struct fa_plugin_tensor {
  void *data; /* NULL: the call has no such tensor */
  int dtype, rank;
  int64_t shape[5], stride[5];
} fa_plugin_tensor;

/* Shapes: [B, S, H, D] for q, k, v, o and gradients (variable length: [total, H, D]), [B, H, S] for lse and
 * d_lse ([H, total]), [B or 1, H or 1, Sq or 1, Sk] for bias. */
typedef struct fa_plugin_tensors {
  /* read */
  fa_plugin_tensor q, k, v, bias, alibi_slopes, d_o, d_lse;
  fa_plugin_tensor cu_seqlens_q, cu_seqlens_k, seqused_k, leftpad_k;
  fa_plugin_tensor k_new, v_new, cache_seqlens, cache_batch_idx, block_table, rotary_cos, rotary_sin;
  fa_plugin_tensor kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices;
  /* written */
  fa_plugin_tensor o, lse, p_debug, dq, dk, dv, dbias;
} fa_plugin_tensors;

/* The arithmetic that error bounds are made for (docs/reference/bounds.md). It is filled in before the call: what the
 * plugin does not set keeps its value. */
typedef struct fa_plugin_arithmetic {
  const char *name;         /* "mma-hopper", "mma-ampere", "mma-volta": tensor cores, "simt-f32": scalar f32,
                               "3xtf32"; "recorded" (before the call): bounds that fit all of these */
  int block_n;              /* keys per tile of the running softmax; 0: as named */
  int max_splits;           /* most partial results that may be combined; 0: as named */
  int dq_atomic;            /* 1: dQ is accumulated in any order, so that runs may differ; -1: as named */
  int gqa_partials_rounded; /* 1: dK and dV of a group are summed from rounded parts; -1: as named */
} fa_plugin_arithmetic;

typedef struct fa_plugin {
  uint32_t version; /* FA_PLUGIN_VERSION */
  uint32_t size;    /* sizeof(fa_plugin) */
  const char *name; /* one line, for reports */

  /* All of these may be NULL except supports and run. *self is passed to every later call. message: why open
   * failed, NUL-terminated. */
  int (*open)(void **self, char *message, size_t message_size); /* 0: success */
  void (*close)(void *self);

  /* The passes (FA_PLUGIN_FORWARD, FA_PLUGIN_BACKWARD) that it can do for the problem. Otherwise a short
   * clause why not: the case is then skipped, or judged without its backward. */
  unsigned (*supports)(void *self, const fa_plugin_problem *problem, char *why_not, size_t why_not_size);

  void (*arithmetic)(void *self, const fa_plugin_problem *problem, fa_plugin_arithmetic *out);

  /* Computes. The backward follows its forward in the same call and uses that one's o and lse. Returns 0:
   * done; FA_PLUGIN_REFUSED: these arguments are not allowed, see message; anything else: the machine failed
   * (the run ends with exit code 3), see message. */
  int (*run)(void *self, const fa_plugin_problem *problem, const fa_plugin_tensors *tensors, unsigned passes,
             char *message, size_t message_size);
} fa_plugin;

#define FA_PLUGIN_REFUSED 1

/* What a plugin defines. */
extern __attribute__((visibility("default"))) const fa_plugin fa_plugin_table;

#ifdef __cplusplus
}
#endif

#endif
