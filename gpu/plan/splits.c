#include "gpu/plan/splits.h"

/* A model of the time that a number of splits takes, in ns. The keys come as fast as memory gives them, or as
 * the processor with the most blocks takes them. Every round of blocks begins with latencies that nothing
 * hides (lengths, table, first keys), and ends with the blocks' parts being put together; splits want a
 * combine, which costs a launch. */
static const double BYTES_PER_NS = 23.0;      /* of memory, for each of all processors */
static const double MOST_BYTES_PER_NS = 25.0; /* that one processor takes */
static const double ROUND_NS = 1500.0, COMBINE_NS = 3000.0, SPLIT_NS = 15.0;

/* Of a cluster's block, from which all comes that few blocks read; and what it takes to gather the rows. Where memory takes
 * longer than this, a second launch is lost in it, and more blocks read a little faster. */
static const double CLUSTER_BYTES_PER_NS = 50.0, GATHER_NS = 800.0, LONG_NS = 60000.0;

static int64_t quotient_up(int64_t n, int64_t d) {
  return (n + d - 1) / d;
}

static double time_of(const fa_cache_work *load, int64_t splits) {
  const int64_t blocks = load->tiles * splits, processors = load->n_processors;
  const int64_t key_blocks = quotient_up(load->key_blocks, splits), busiest = quotient_up(blocks, processors);
  const double from_memory = BYTES_PER_NS * (double)processors;
  const int64_t from_there = load->sharing > 1 ? quotient_up(load->tiles, load->sharing) : load->tiles;
  const double memory =
      (double)from_there * (double)load->key_blocks * (double)load->block_bytes / from_memory;
  const double of_block =
      load->block_ns > 0 ? (double)load->block_ns : (double)load->block_bytes / MOST_BYTES_PER_NS;
  const int64_t alone = quotient_up(busiest, load->blocks_per_processor) * load->filling; /* as slow as if so many were there */
  const double processor = (double)(busiest > alone ? busiest : alone) * (double)key_blocks * of_block;
  const double fetching = memory > processor ? memory : processor;
  const double rounds = (double)quotient_up(blocks, processors * load->blocks_per_processor);
  const double of_split = SPLIT_NS + 2.0 * (double)load->part_bytes / from_memory; /* written, and read */
  return fetching + rounds * (ROUND_NS + (double)load->block_ns) +
         (splits > 1 ? COMBINE_NS + (double)splits * of_split : 0.0);
}

int fa_cache_splits_choose(const fa_cache_work *load) {
  int best = 1;
  double best_time = time_of(load, 1);
  for (int n = 2; n <= FA_CACHE_MOST_SPLITS && n <= load->key_blocks; ++n) {
    const double time = time_of(load, n);
    if (time < best_time) {
      best_time = time;
      best = n;
    }
  }
  return best;
}

/* Measured on an H100, whose processors are in groups of 16 or 18, some of them with less room: pairs find it nearly
 * everywhere, larger clusters on half of the processors. */
bool fa_cache_clusters_fit(const fa_cache_work *load, int n) {
  return load->tiles * n <= (n == 2 ? load->n_processors : load->n_processors / 2);
}

int fa_cache_cluster_choose(const fa_cache_work *load, int most) {
  const double bytes = (double)(load->tiles * load->key_blocks * load->block_bytes);
  const double memory = bytes / (BYTES_PER_NS * (double)load->n_processors);
  double best_time = time_of(load, fa_cache_splits_choose(load));
  int best = 0;
  for (int n = 2; n <= most && n <= load->key_blocks && memory < LONG_NS; n *= 2) {
    const double own = (double)(quotient_up(load->key_blocks, n) * load->block_bytes) / CLUSTER_BYTES_PER_NS;
    const double time = (memory > own ? memory : own) + ROUND_NS + GATHER_NS;
    if (time > best_time || !fa_cache_clusters_fit(load, n)) continue;
    best_time = time;
    best = n;
  }
  return best;
}
