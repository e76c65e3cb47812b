/* A tensor's axes as a bug report names them: sequence, query, head, column. */
#include "ref/compare/internal.h"

static void set_axes(fa_axes *a, const fa_want *w, const char *const *names) {
  for (int k = 0; k < w->rank; ++k) {
    a->name[k] = names[k];
    a->extent[k] = w->shape[k];
    a->map[k] = k;
  }
  a->n = w->rank;
}

/* Where the tensor has one token axis, the description has sequence and position; the sequence comes
 * first. */
static void split_tokens(fa_axes *a, const fa_want *w, int token_axis, const fa_int32_array *cu,
                         const char *position) {
  a->cu = cu->v;
  a->n_entries = cu->n - 1;
  a->token_axis = token_axis;
  a->n = w->rank + 1;
  for (int k = w->rank; k > 0; --k) {
    a->name[k] = a->name[k - 1];
    a->extent[k] = a->extent[k - 1];
  }
  for (int k = 0; k < w->rank; ++k) a->map[k] = k + 1;
  a->name[0] = "b";
  a->extent[0] = a->n_entries;
  a->seq = token_axis + 1;
  a->name[a->seq] = position;
  a->extent[a->seq] = 0;
  for (int64_t b = 0; b < a->n_entries; ++b)
    if (fa_axes_length(a, b) > a->extent[a->seq]) a->extent[a->seq] = fa_axes_length(a, b);
}

fa_axes fa_axes_of(fa_tensor_id id, const fa_problem *p, const fa_want *w) {
  static const char
      *const rows[] = {"b", "q", "h", "d"},
             *const keys[] = {"b", "k", "h", "d"}, *const packed[] = {"t", "h", "d"},
             *const packed_lse[] = {"h", "t"}, *const lse[] = {"b", "h", "q"},
             *const scores[] = {"b", "h", "q", "k"}, *const cache[] = {"row", "slot", "h", "d"},
             *const pages[] = {"page", "slot", "h", "d"}, *const parts[] = {"part", "b", "q", "h", "d"},
             *const packed_parts[] = {"part", "t", "h", "d"}, *const lse_parts[] = {"part", "b", "h", "q"},
             *const packed_lse_parts[] = {"part", "h", "t"}, *const heads[] = {"h"}, *const one[] = {"call"},
             *const any[] = {"axis0", "axis1", "axis2", "axis3", "axis4"};
  fa_axes a = {.seq = -1, .token_axis = -1, .row_noun = "element"};
  const fa_tensor_info *info = fa_tensor_describe(id);
  const bool on_keys = info->on_keys;
  if (info->direction == FA_TENSOR_UPDATED) {
    a.row_noun = "slot";
    set_axes(&a, w, p->kvcache.page_size > 0 ? pages : cache);
  } else if (info->axes == FA_AXES_TOKENS) {
    a.row_noun = on_keys ? "key" : "row";
    if (w->rank == 3) {
      set_axes(&a, w, packed);
      split_tokens(&a, w, 0, on_keys ? &p->cu_seqlens_k : &p->cu_seqlens_q, on_keys ? "k" : "q");
    } else {
      set_axes(&a, w, on_keys ? keys : rows);
      a.seq = 1;
    }
  } else if (info->axes == FA_AXES_ROWS) {
    a.row_noun = "row";
    set_axes(&a, w, w->rank == 2 ? packed_lse : lse);
    a.seq = 2;
    if (w->rank == 2) split_tokens(&a, w, 1, &p->cu_seqlens_q, "q");
  } else if (info->axes == FA_AXES_PARTS) {
    a.row_noun = "row";
    a.seq = 2;
    set_axes(&a, w, w->rank == 4 ? packed_parts : parts);
    if (w->rank == 4) split_tokens(&a, w, 1, &p->cu_seqlens_q, "q");
  } else if (info->axes == FA_AXES_PART_ROWS) {
    a.row_noun = "row";
    a.seq = 3;
    set_axes(&a, w, w->rank == 3 ? packed_lse_parts : lse_parts);
    if (w->rank == 3) split_tokens(&a, w, 2, &p->cu_seqlens_q, "q");
  } else if (info->axes == FA_AXES_BIAS || info->axes == FA_AXES_SCORES) {
    set_axes(&a, w, scores);
  } else if (info->axes == FA_AXES_HEADS) {
    set_axes(&a, w, heads);
  } else if (info->axes == FA_AXES_ONE) {
    set_axes(&a, w, one);
  } else {
    set_axes(&a, w, any);
  }
  return a;
}

int64_t fa_axes_length(const fa_axes *a, int64_t b) {
  return a->cu == NULL ? a->extent[a->seq] : a->cu[b + 1] - a->cu[b];
}

void fa_axes_coordinates(const fa_axes *a, const int64_t *index, int64_t *coordinate) {
  for (int k = 0; k < a->n - (a->cu != NULL); ++k) coordinate[a->map[k]] = index[k];
  if (a->cu == NULL) return;
  const int64_t token = index[a->token_axis];
  int64_t low = 0, high = a->n_entries; /* the sequence with cu[low] <= token < cu[low + 1] */
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (a->cu[middle] <= token)
      low = middle;
    else
      high = middle;
  }
  coordinate[0] = low;
  coordinate[a->seq] = token - a->cu[low];
}
