#ifndef FA_GPU_SIMT_OVERLAP_H
#define FA_GPU_SIMT_OVERLAP_H

#include "gpu/simt/block.h"

/* Settles what is known of scratch memory for the launch that comes next. What launches before this one left
 * counts as there for good, whether or not this one waited: no three launches of ours overlap. */
void fa_simt_end_launch(const fa_simt_launch *l, bool lets_next_start);

#endif
