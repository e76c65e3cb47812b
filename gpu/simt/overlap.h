/* Scratch memory from launch to launch, for launches that may overlap (programmatic dependent launch). */
#ifndef FA_GPU_SIMT_OVERLAP_H
#define FA_GPU_SIMT_OVERLAP_H

#include "gpu/simt/block.h"

/* Updates what is known of scratch memory for the next launch. What launches before this one wrote counts as
 * complete, whether or not this one waited for it: no three launches of ours overlap. */
void fa_simt_end_launch(const fa_simt_launch *l, bool lets_next_start);

#endif
