/* A plugin whose table is in this process already. */
#ifndef FA_GPU_BACKENDS_PLUGIN_TABLE_H
#define FA_GPU_BACKENDS_PLUGIN_TABLE_H

#include "gpu/backend.h"
#include "gpu/plugin.h"

/* As fa_backend_plugin.open does with the table of a library: of version 2, or of version 1 (gpu/backends/plugin_v1.h). It must
 * stay where it is until fa_backend_plugin.close. name: in messages, in the place of the library's path. */
fa_status fa_plugin_open_table(const fa_plugin *table, const char *name, void **self, fa_error *err);

#endif
