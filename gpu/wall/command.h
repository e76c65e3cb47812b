/* What a shell command needs to see, from its words. */
#ifndef FA_GPU_WALL_COMMAND_H
#define FA_GPU_WALL_COMMAND_H

#include "gpu/wall/view.h"

/* Shows the files and folders that words of the command name, alone or after a '=' or ':', and the programs among them. A word
 * that only a shell could work out is passed over: --allow is for that. */
void fa_wall_show_words(fa_wall_view *view, const char *command);

#endif
