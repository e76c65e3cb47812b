/* What is known of a kernel, the same for all: a row of the registry.
 *
 * To add a kernel, add a line to <family>.def in this folder. The source that the line belongs to
 * (gpu/kernels/<family>/<file>.cu) makes an entry point of it for a device and, compiled as C++, a row of a table
 * with the executor's function behind it: unit.cuh. A new source is a line of units.def. */
#ifndef FA_GPU_KERNELS_REGISTRY_KERNEL_H
#define FA_GPU_KERNELS_REGISTRY_KERNEL_H

#include "cases/base/dtype.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call wants, or the most that a kernel can do: flags are 0 or 1. */
typedef struct fa_kernel_ability {
  int bf16;     /* not f16; exactly */
  int eight;    /* q, k and v are e4m3, and bf16 says what o is; exactly */
  int amax;     /* the largest P and O are outputs; exactly */
  int flex;     /* score_mod, mask_mod, block lists; exactly */
  int head_dim; /* the larger of q's and v's, a multiple of 8; of a kernel: the largest that it takes */
  int narrow;   /* the smaller; of a kernel: the least that it takes */
  int least;    /* of a kernel: the least of the larger */
  int unaligned, alibi, softcap, dropout, p_debug;
  int bias, linear_dropout;
  int chunk;       /* rows that see no key before their chunk */
  int mask_bits;   /* a bit for every pair */
  int sinks;
  int large;       /* over a cache: two head dims, V in K, or lists of keys */
  int cache_dtype; /* over a cache: FA_E4M3, FA_E5M2, FA_I8 or FA_E2M1, where it is of these, else 0; exactly */
  int v_in_k;      /* over a cache: V is the first columns of K; exactly */
  int pairs;       /* over a cache: query heads of a KV head in multiples of 128; of a kernel: it asks for that */
  int varlen;      /* sequences of lengths of their own, by cu_seqlens, seqused_k or leftpad_k */
  int ordered;     /* a deterministic call's accumulators (gpu/kernels/params/flash_backward_grids.h) */
  int keys;        /* that a row sees; of a kernel: from how many on it is the right one */
  int packed_rows; /* seqlen_q * heads_per_kv; of a kernel: up to how many it is the right one, 0: for any */
} fa_kernel_ability;

/* Whether a kernel with ability k can do what is wanted. */
static inline int fa_kernel_is_able(const fa_kernel_ability *k, const fa_kernel_ability *wanted) {
  return k->bf16 == wanted->bf16 && k->eight == wanted->eight && k->amax == wanted->amax && k->flex == wanted->flex && k->v_in_k == wanted->v_in_k && k->cache_dtype == wanted->cache_dtype && wanted->head_dim <= k->head_dim &&
         wanted->head_dim >= k->least && wanted->narrow >= k->narrow && k->unaligned >= wanted->unaligned &&
         k->alibi >= wanted->alibi && k->softcap >= wanted->softcap && k->dropout >= wanted->dropout &&
         k->p_debug >= wanted->p_debug && k->bias >= wanted->bias &&
         k->linear_dropout >= wanted->linear_dropout && k->varlen >= wanted->varlen &&
         k->ordered >= wanted->ordered && k->chunk >= wanted->chunk && k->mask_bits >= wanted->mask_bits &&
         k->sinks >= wanted->sinks && k->large >= wanted->large && wanted->pairs >= k->pairs && wanted->keys >= k->keys &&
         (k->packed_rows == 0 || wanted->packed_rows <= k->packed_rows);
}

/* What kernels are chosen for. NULL, wherever a pointer to one is taken: any amount of shared memory, and no
 * compiler. */
typedef struct fa_kernel_device {
  size_t max_shared_bytes; /* that a block may ask for */
  int compiles;            /* kernels that were not compiled ahead of time may be chosen too */
  int hopper;              /* multiprocessors for kernels for sm_90a to fill; 0: no such kernels */
} fa_kernel_device;

/* What a compiler needs to make a kernel: the file, and the line that it is to see alone. */
typedef struct fa_kernel_recipe {
  const char *source;   /* "flash/forward": gpu/kernels/flash/forward.cu */
  const char *only;     /* "FA_ENTRY(flash_forward_f16_64,f16,64,plain)"; NULL: all that the file has */
  int is_ahead_of_time; /* the build compiles it */
  int any_cluster;      /* its clusters have as many blocks as a launch says, and may have more than 8; others are compiled for theirs */
} fa_kernel_recipe;

/* What a kernel does in its call. */
typedef enum fa_kernel_step {
  FA_STEP_FORWARD,
  FA_STEP_COMBINE,      /* of the splits of a forward pass */
  FA_STEP_APPEND,       /* to a KV cache */
  FA_STEP_APPEND_ELEMENTS,
  FA_STEP_APPEND_EIGHT, /* to one of 8 bits */
  FA_STEP_GATHER,       /* a KV cache as ordinary keys */
  FA_STEP_PREPARE,      /* delta, and cleared accumulators */
  FA_STEP_PREPARE_ONLY, /* delta */
  FA_STEP_CLEAR,
  FA_STEP_BY_KEYS,    /* all gradients; a block keeps those of its keys */
  FA_STEP_BY_QUERIES, /* all gradients; a block keeps those of its rows */
  FA_STEP_KEYS,       /* dK and dV alone */
  FA_STEP_QUERIES,    /* dQ alone */
  FA_STEP_DBIAS,      /* a summed gradient of the bias, alone */
  FA_STEP_DSINKS,     /* the gradient of the sinks, alone */
  FA_STEP_CONVERT,    /* accumulators to dQ */
  FA_STEP_CONVERT_KEYS,
  FA_STEP_DBIAS_CLEAR,
  FA_STEP_DBIAS_CONVERT,
  FA_STEP_MAP,  /* flex: the kind of every block, from lists */
  FA_STEP_MASK, /* or from mask_mod */
  FA_STEP_TILES,
  FA_STEP_BLOCKS,
  FA_STEP_ROUND,   /* exact sums to floats */
  FA_STEP_BACKWARD /* of a merge: all gradients */
} fa_kernel_step;

/* Whose parameters a kernel takes: the structs of gpu/kernels/params/. */
typedef enum fa_params_kind {
  FA_PARAMS_ATTENTION,
  FA_PARAMS_BACKWARD,
  FA_PARAMS_MEMEFF_BACKWARD,
  FA_PARAMS_HOPPER,
  FA_PARAMS_HOPPER_BIASED,
  FA_PARAMS_HOPPER_CACHE,
  FA_PARAMS_HOPPER_BACKWARD,
  FA_PARAMS_HOPPER_BIASED_BACKWARD,
  FA_PARAMS_HOPPER_LATENT,
  FA_PARAMS_CACHE,
  FA_PARAMS_CACHE_APPEND,
  FA_PARAMS_CACHE_GATHER,
  FA_PARAMS_FLEX_LISTS,
  FA_PARAMS_FLEX_EXACT,
  FA_PARAMS_MERGE,
  FA_PARAMS_AMAX,
  FA_N_PARAMS
} fa_params_kind;

/* params is the first argument and the only one. Grids are for whoever launches: gpu/kernels/params/. */
typedef struct fa_kernel {
  const char *name;                  /* of the device entry point */
  void (*entry)(const void *params); /* NULL: not compiled for the host */
  fa_kernel_recipe recipe;
  fa_params_kind params;
  size_t params_bytes;
  int n_maps;  /* tensor maps that the parameters begin with */
  int flex_at; /* where fa_flex_args lie in them, in bytes; -1: nowhere */
  fa_kernel_step step;
  fa_dtype dtype; /* of the elements, if it has to do with any */
  fa_kernel_ability ability;
  int block_m, block_n, block_cols; /* rows, keys, columns of a result of a block (0: all) */
  int n_threads;
  size_t shared_bytes;      /* dynamic */
  int cluster;              /* blocks side by side in x that run together, at most where any number may; 1: no clusters */
  int blocks_per_processor; /* that an H100 holds at a time; 0: nobody asks */
  int subtracts_first;      /* backward: the LSE, before anything is scaled to base 2 */
  int takes_turns;          /* backward: blocks of a deterministic call add to one accumulator, in a fixed order */
  fa_dtype parts_dtype;     /* of a merge: of the parts that it merges */
} fa_kernel;

/* The kernels of one source, in the order of its lines. */
typedef struct fa_kernel_table {
  const fa_kernel *v;
  int n;
} fa_kernel_table;

/* The kernel of that name, or NULL. */
const fa_kernel *fa_kernel_find(const char *name);

/* Every kernel, source by source; NULL past the last. */
const fa_kernel *fa_kernel_at(int i);

#ifdef __cplusplus
}
#endif

#endif
