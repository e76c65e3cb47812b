#include "gpu/wall/devices.h"

#include <glob.h>
#include <unistd.h>

static const char *const device_patterns[] = {"/dev/nvidia[0-9]*",
                                              "/dev/nvidiactl",
                                              "/dev/nvidia-uvm",
                                              "/dev/nvidia-uvm-tools",
                                              "/dev/nvidia-modeset",
                                              "/dev/nvidia-caps",
                                              "/dev/nvidia-caps-imex-channels",
                                              "/dev/kfd",
                                              "/dev/dri/renderD*"};
enum { N_PATTERNS = sizeof device_patterns / sizeof *device_patterns };

bool fa_wall_has_gpu(void) {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/kfd", F_OK) == 0;
}

void fa_wall_add_devices(fa_wall_words *to) {
  if (!fa_wall_has_gpu()) return;
  for (int i = 0; i < N_PATTERNS; ++i) {
    glob_t found;
    if (glob(device_patterns[i], 0, NULL, &found) == 0)
      for (size_t k = 0; k < found.gl_pathc; ++k)
        fa_wall_add_all(to, (const char *const[]){"--dev-bind", found.gl_pathv[k], found.gl_pathv[k], NULL});
    globfree(&found);
  }
  /* Without /sys CUDA finds no device. */
  fa_wall_add_all(to, (const char *const[]){"--ro-bind", "/sys", "/sys", NULL});
}
