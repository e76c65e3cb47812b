#include "gpu/backends/plugin_backend.h"

const fa_backend *const fa_backends[] = {
    &fa_backend_cuda, &fa_backend_host,    &fa_backend_ref_f32, &fa_backend_plugin, &fa_backend_cubin,
    &fa_backend_exec, &fa_backend_connect, &fa_backend_py,      &fa_backend_mutant, NULL};
