#include "gpu/fa_kv_splits.h"

/* A model of the time that a number of splits takes, in ns. The keys come as fast as memory gives them,
 * shared by the processors that have blocks: what counts is how many bytes the one with the most has to
 * fetch. Every round of blocks begins with latencies that nothing hides (lengths, table, first keys), and
 * ends with the blocks' parts being put together; splits want a combine, which costs a launch. */
static const double BYTES_PER_NS = 23.0; /* of one processor, when all of them fetch */
static const double ROUND_NS = 1500.0, COMBINE_NS = 3000.0, SPLIT_NS = 15.0;

static int64_t quotient_up(int64_t n, int64_t d) {
  return (n + d - 1) / d;
}

static double time_of(const fa_kv_load *load, int64_t splits) {
  const int64_t blocks = load->tiles * splits, processors = load->n_processors;
  const double bytes = (double)quotient_up(load->key_blocks, splits) * (double)load->block_bytes;
  const double fetching = (double)quotient_up(blocks, processors) * bytes / BYTES_PER_NS;
  const double rounds = (double)quotient_up(blocks, processors * load->blocks_per_processor);
  return fetching + rounds * ROUND_NS + (splits > 1 ? COMBINE_NS + (double)splits * SPLIT_NS : 0.0);
}

int fa_kv_splits_choose(const fa_kv_load *load) {
  int best = 1;
  double best_time = time_of(load, 1);
  for (int n = 2; n <= FA_KV_MOST_SPLITS && n <= load->key_blocks; ++n) {
    const double time = time_of(load, n);
    if (time < best_time) {
      best_time = time;
      best = n;
    }
  }
  return best;
}
