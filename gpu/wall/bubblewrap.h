/* Bubblewrap (bwrap), the program that makes namespaces without being root. */
#ifndef FA_GPU_WALL_BUBBLEWRAP_H
#define FA_GPU_WALL_BUBBLEWRAP_H

#include "gpu/wall/view.h"

/* Appends the program and its arguments, up to the command; nothing if none of its layers is in force. FA_ERR_INPUT: it is
 * not installed. */
fa_status fa_bubblewrap_arguments(const fa_wall_terms *terms, const fa_wall_view *view, const char *exchange,
                                  fa_wall_words *to, fa_error *err);

/* Why no door was reached: tries its layers one by one. Returns FA_ERR_INPUT. */
fa_status fa_bubblewrap_diagnose(fa_layer_set layers, fa_error *err);

#endif
