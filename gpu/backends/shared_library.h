/* Loading code at run time. */
#ifndef FA_GPU_BACKENDS_SHARED_LIBRARY_H
#define FA_GPU_BACKENDS_SHARED_LIBRARY_H

#include "cases/base/status.h"

/* Loads the library at path, which may be relative to the current folder, and finds symbol in it. The caller
 * closes *handle (dlclose). FA_ERR_INPUT names the path and what is missing. */
fa_status fa_shared_library_open(const char *path, const char *symbol, void **handle, void **address,
                                 fa_error *err);

#endif
