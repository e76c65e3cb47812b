#include "gpu/backend.h"

const fa_backend *const fa_backends[] = {&fa_backend_cuda, &fa_backend_host, &fa_backend_ref_f32, NULL};
