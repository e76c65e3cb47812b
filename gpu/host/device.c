#include "gpu/host/device.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

fa_status fa_host_device_parse(const char *arg, fa_host_device *out, fa_error *err) {
  bool hopper = false;
  *out = (fa_host_device){.limits = {.max_shared_bytes = 227 * 1024}, .n_processors = 3};
  for (const char *at = arg ? arg : ""; *at;) {
    int n = 0, end = 0;
    if (sscanf(at, "shared=%d%n", &n, &end) == 1 && n > 0 && n <= 227)
      out->limits.max_shared_bytes = (size_t)n * 1024;
    else if (sscanf(at, "processors=%d%n", &n, &end) == 1 && n > 0 && n <= 4096)
      out->n_processors = n;
    else if (strncmp(at, "hopper", 6) == 0)
      hopper = true, end = 6;
    else
      end = 0;
    if (end == 0 || (at[end] && at[end] != ','))
      return fa_fail(
          err, FA_ERR_INPUT,
          "backend host takes shared=KIB (1 to 227), processors=N (1 to 4096) and hopper, got \"%s\"", arg);
    at += end + (at[end] == ',');
  }
  out->limits.hopper = hopper ? out->n_processors : 0;
  return FA_OK;
}
