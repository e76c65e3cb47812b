#include "gpu/backends/shared_library.h"

#include <dlfcn.h>
#include <stdlib.h>

fa_status fa_shared_library_open(const char *path, const char *symbol, void **handle, void **address,
                                 fa_error *err) {
  char *real = realpath(path, NULL); /* dlopen would search for a name without a slash elsewhere */
  *handle = NULL;
  if (!real) return fa_fail(err, FA_ERR_INPUT, "%s: no such file", path);
  *handle = dlopen(real, RTLD_NOW | RTLD_LOCAL);
  free(real);
  if (!*handle) return fa_fail(err, FA_ERR_INPUT, "%s: cannot be loaded: %s", path, dlerror());
  *address = dlsym(*handle, symbol);
  if (*address) return FA_OK;
  dlclose(*handle);
  *handle = NULL;
  return fa_fail(err, FA_ERR_INPUT, "%s: it exports no %s", path, symbol);
}
