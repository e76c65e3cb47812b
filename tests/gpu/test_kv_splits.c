/* The chosen number of splits: never more than there is work for, one if the grid is full without, and, by
 * the same model of time, never much slower than the best number. */
#include "gpu/plan/splits.h"
#include "tests/support/check.h"

static int choose(int64_t tiles, int64_t keys, int64_t block, int64_t head_dim) {
  const fa_cache_work load = {.tiles = tiles,
                              .key_blocks = (keys + block - 1) / block,
                              .block_bytes = block * head_dim * 4,
                              .n_processors = 132,
                              .blocks_per_processor = 2};
  return fa_cache_splits_choose(&load);
}

/* Of a cache of 8 bits, head_dim 128, in blocks of which a processor wants four. */
static int choose_of_bytes(int64_t tiles, int64_t keys) {
  const fa_cache_work load = {.tiles = tiles,
                              .key_blocks = (keys + 63) / 64,
                              .block_bytes = 64 * 128 * 2,
                              .n_processors = 132,
                              .blocks_per_processor = 4,
                              .filling = 4};
  return fa_cache_splits_choose(&load);
}

int main(void) {
  /* little to read: combining takes longer than it saves */
  CHECK(choose(8, 0, 64, 128) == 1);
  CHECK(choose(1, 1, 64, 128) == 1);
  CHECK(choose(8, 64, 64, 128) == 1);
  CHECK(choose(1, 128, 64, 64) == 1);
  /* the grid is full without splits */
  CHECK(choose(132, 8192, 64, 128) == 1);
  CHECK(choose(1024, 8192, 64, 128) == 1);
  CHECK(choose(128, 131072, 64, 128) <= 2);
  /* few heads and many keys: every processor has work, and none twice as much as another */
  for (int tiles = 1; tiles <= 64; ++tiles) {
    const int n = choose(tiles, 131072, 64, 128), blocks = n * tiles, most = (blocks + 131) / 132;
    CHECK_MSG(blocks >= 0.8 * 132 * most, "%d tiles: %d splits", tiles, n);
  }
  CHECK(choose(8, 8192, 64, 128) >= 13);
  CHECK(choose(32, 8192, 64, 64) >= 4);
  /* at most the number of blocks, and the maximum */
  for (int keys = 1; keys < 3000; keys += 61) CHECK(choose(1, keys, 64, 256) <= (keys + 63) / 64);
  CHECK(choose(1, (int64_t)1 << 29, 64, 128) <= FA_CACHE_MOST_SPLITS);
  /* a block alone is slower than memory: as many as a processor takes, where there is enough to read */
  CHECK(choose_of_bytes(128, 8192) == 4);
  CHECK(choose_of_bytes(512, 8192) == 1);
  CHECK(choose_of_bytes(64, 131072) >= 8);
  CHECK(choose_of_bytes(8, 128) == 1); /* two blocks of keys are too little to read */
  return check_done();
}
