/* GPUs behind the wall: their device files, and what their drivers read. */
#ifndef FA_GPU_WALL_DEVICES_H
#define FA_GPU_WALL_DEVICES_H

#include "gpu/wall/words.h"

bool fa_wall_has_gpu(void);
/* Arguments by which bubblewrap shows them; none on a machine without a GPU. */
void fa_wall_add_devices(fa_wall_words *to);

#endif
