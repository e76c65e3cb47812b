/* The tiles that a flex kernel visits, and the visibility of their pairs (row, key) by block lists and
 * mask_mod. */
#ifndef FA_GPU_KERNELS_MODS_BLOCKS_CUH
#define FA_GPU_KERNELS_MODS_BLOCKS_CUH

#include "gpu/kernels/mods/call.cuh"
#include "gpu/kernels/parts/mask.cuh"

namespace fa {

/* n tiles to visit; entry NULL: tiles first, first + 1, ..., all of one kind. */
struct flex_walk {
  const int32_t *entry;
  int n, first, kind;
};
struct flex_tile {
  int tile, kind; /* fa_flex_kind */
};

/* The tiles to visit for tile `tile` along the lists' axis; without lists, those of `range`, which the masks
 * by position leave. With lists, tiles outside the range are visited too, and their pairs masked. */
template <class MODS>
FA_DEVICE flex_walk flex_tiles(const fa_flex_args &x, const fa_flex_lists &lists, int batch, int head,
                               int tile, block_range range) {
  if (!may_have(FA_HAS_BLOCKS) || !lists.count)
    return flex_walk{nullptr, max_int(range.end - range.begin, 0), range.begin,
                     MODS::has_mask(x) ? FA_FLEX_PARTIAL : FA_FLEX_FULL};
  const int64_t at = batch * lists.batch_stride + head * lists.head_stride + tile;
  return flex_walk{lists.entry + at * lists.capacity, load_global(lists.count + at), 0, 0};
}

FA_DEVICE flex_tile flex_at(const flex_walk &w, int i) {
  if (!may_have(FA_HAS_BLOCKS) || !w.entry) return flex_tile{w.first + i, w.kind};
  const int entry = load_global(w.entry + i);
  return flex_tile{entry >> 2, entry & 3};
}

/* The walk over tiles for kernels with and without flex, chosen by MODS: at(begin()) .. at(end() - 1). */
template <class MODS> struct tile_walk {
  flex_walk w;
  FA_DEVICE tile_walk(const fa_flex_args &x, const fa_flex_lists &lists, int batch, int head, int tile,
                      block_range range)
      : w(flex_tiles<MODS>(x, lists, batch, head, tile, range)) {}
  FA_DEVICE int begin() const { return 0; }
  FA_DEVICE int end() const { return w.n; }
  FA_DEVICE flex_tile at(int i) const { return flex_at(w, i); }
};
template <> struct tile_walk<no_mods> {
  block_range range;
  FA_DEVICE tile_walk(const fa_flex_args &, const fa_flex_lists &, int, int, int, block_range of)
      : range(of) {}
  FA_DEVICE int begin() const { return range.begin; }
  FA_DEVICE int end() const { return range.end; }
  FA_DEVICE flex_tile at(int i) const { return flex_tile{i, FA_FLEX_FULL}; }
};

/* True if block lists and mask_mod leave the pair visible. kind: of its tile. Masks by position are not
 * tested, but the pair must lie within the sequence. */
template <class MODS> FA_DEVICE bool flex_visible(const fa_flex_args &x, int kind, const flex_pair &at) {
  if (may_have(FA_HAS_BLOCKS) && kind == FA_FLEX_MIXED) {
    const int64_t block = at.b * x.map_batch_stride + at.h * x.map_head_stride +
                          static_cast<int64_t>(at.i / x.q_block) * x.n_kv_blocks + at.j / x.kv_block;
    kind = load_global(x.map + block);
    if (kind == FA_FLEX_FULLY_MASKED) return false;
  }
  return kind == FA_FLEX_FULL || MODS::mask(x, at);
}

} // namespace fa

#endif
