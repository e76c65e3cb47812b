/* The backends that load what they run: plugin:PATH.so, and mutant:NAME. */
#ifndef FA_GPU_PLUGIN_BACKEND_H
#define FA_GPU_PLUGIN_BACKEND_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const fa_backend fa_backend_plugin; /* gpu/plugin.h */
extern const fa_backend fa_backend_mutant; /* gpu/mutant.h */

#ifdef __cplusplus
}
#endif

#endif
