/* All hypotheses, by theme. */
#include "fuzz/explain/hypothesis.h"

#include <stdio.h>

const fa_hypothesis *const fa_hypotheses[] = {
    fa_hypotheses_of_masks,     fa_hypotheses_of_chunks,  fa_hypotheses_of_keys,
    fa_hypotheses_of_scales,    fa_hypotheses_of_lse,     fa_hypotheses_of_heads,
    fa_hypotheses_of_scores,    fa_hypotheses_of_bias,    fa_hypotheses_of_sinks,
    fa_hypotheses_of_descales,  fa_hypotheses_of_dropout, fa_hypotheses_of_calls,
    fa_hypotheses_of_gradients, fa_hypotheses_of_tiles,   fa_hypotheses_of_order,
    fa_hypotheses_of_precision, fa_hypotheses_of_sums,    NULL};

void fa_hypothesis_tensors(const fa_hypothesis *h, char *text, size_t size) {
  static const struct {
    fa_tensor_bits set;
    const char *word;
  } known[] = {{FA_OF_ALL, "all"}, {FA_OF_FORWARD, "forward"}, {FA_OF_BACKWARD, "gradients"}};
  size_t used = 0;
  text[0] = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (h->tensors == known[i].set) {
      snprintf(text, size, "%s", known[i].word);
      return;
    }
  for (int id = 0; id < FA_T_DBUFFER_0 && used < size; ++id)
    if (h->tensors & FA_BIT(id))
      used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "",
                               fa_tensor_id_name((fa_tensor_id)id));
}
