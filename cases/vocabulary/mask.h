/* Masks by position: which keys are visible to a query row because of their positions.
 *
 * Every type is a window: row i sees keys i + shift - left <= j <= i + shift + right, where shift aligns the
 * first rows (top left: 0) or the last ones (bottom right: seqlen_k - seqlen_q). Code that needs to know what
 * a mask hides asks for its window and its chunk; the type matters only where masks are read, written or drawn.
 *
 * A chunked mask (Llama 4) is causal, and hides the keys before the chunk of the row's own position p = i +
 * shift: row i sees keys j <= p with j >= size * floor(p / size), and of these, if left is not -1, those with
 * j >= p - left. */
#ifndef FA_CASES_VOCABULARY_MASK_H
#define FA_CASES_VOCABULARY_MASK_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fa_mask_type {
  FA_MASK_NONE,
  FA_MASK_CAUSAL,
  FA_MASK_WINDOW,
  FA_MASK_CHUNK,
  FA_N_MASKS
} fa_mask_type;
typedef enum fa_mask_align { FA_ALIGN_BOTTOM_RIGHT, FA_ALIGN_TOP_LEFT } fa_mask_align;

/* left, right: -1 = unbounded; also -1 in every type that has that edge fixed. size: of a chunk, else 0. */
typedef struct fa_mask {
  fa_mask_type type;
  fa_mask_align align;
  int64_t left, right;
  int64_t size;
} fa_mask;

/* Numbers of keys to the left and right of the diagonal that a row sees; -1 = all. */
typedef struct fa_window {
  int64_t left, right;
} fa_window;

typedef struct fa_mask_info {
  const char *name; /* as in the case JSON: "none", "causal", "window", "chunk" */
  bool own_edges;   /* its window is the mask's own left and right */
  bool own_left;    /* only the left edge is its own */
  fa_window window; /* otherwise this one */
} fa_mask_info;

const fa_mask_info *fa_mask_describe(fa_mask_type type); /* asserts type < FA_N_MASKS */
/* The window of a mask of any type. */
fa_window fa_mask_window(const fa_mask *m);
/* Makes it a window with these edges; keeps the alignment. */
void fa_mask_set_window(fa_mask *m, int64_t left, int64_t right);
/* True for a type that uses left and right. */
bool fa_mask_has_edges(const fa_mask *m);
/* True for a type that uses left. */
bool fa_mask_has_left(const fa_mask *m);
/* Keys of a chunk; 0: there are no chunks. */
int64_t fa_mask_chunk(const fa_mask *m);
/* The first key of the chunk that position p is in; p < 0 has a chunk too, of negative keys. chunk > 0. */
int64_t fa_mask_chunk_begin(int64_t chunk, int64_t p);

#endif
