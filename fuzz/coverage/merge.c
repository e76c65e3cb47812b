/* Coverage of partial states that are merged. What their data is like is among the fills. */
#include "fuzz/coverage/table.h"

void fa_coverage_merge(fa_coverage *v, const fa_problem *p) {
  const bool merge = p->family == FA_MERGE;
  const fa_parts *m = &p->merge;
  fa_coverage_see(v, FA_COVER_SPLITS, 40, "merge: one part", merge && m->parts == 1);
  fa_coverage_see(v, FA_COVER_SPLITS, 250, "merge: two parts", merge && m->parts == 2);
  fa_coverage_see(v, FA_COVER_SPLITS, 300, "merge: three parts and more", merge && m->parts > 2);
  fa_coverage_see(v, FA_COVER_SPLITS, 40, "merge: more parts than a warp has threads",
                  merge && m->parts > 32);
  fa_coverage_see(v, FA_COVER_SPLITS, 300, "merge: base 2", merge && m->base_2);
  fa_coverage_see(v, FA_COVER_SPLITS, 300, "merge: natural logarithms", merge && !m->base_2);
  fa_coverage_see(v, FA_COVER_SPLITS, 200, "merge: parts of another type than O",
                  merge && m->parts_dtype != p->dtype);
  fa_coverage_see(v, FA_COVER_SPLITS, 60, "merge: f32 parts, 16-bit O",
                  merge && m->parts_dtype == FA_F32 && p->dtype != FA_F32);
  fa_coverage_see(v, FA_COVER_SPLITS, 200, "merge: packed rows", merge && fa_problem_is_varlen(p));
  fa_coverage_see(v, FA_COVER_SPLITS, 300, "merge: dLSE is given", merge && p->grad_lse);
  fa_coverage_see(v, FA_COVER_SPLITS, 80, "merge: forward only", merge && !p->backward);
}
