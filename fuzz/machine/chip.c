/* GPUs whose peak is known. The figures are the makers': a kernel that were faster could not have done the work. */
#include "fuzz/machine/chip.h"

#include <string.h>
#include <unistd.h>

/* The first whose name is in the device's: longer names stand before shorter ones. */
static const fa_chip chips[] = {
    {"H200", 989.5, 494.7, 4800, 50},
    {"H100 NVL", 835.5, 417.7, 3900, 60},
    {"H100 PCIe", 756.0, 378.0, 2000, 50},
    {"H100", 989.5, 494.7, 3350, 50},
    {"GH200", 989.5, 494.7, 4900, 60},
    {"B200", 2250.0, 1125.0, 8000, 126},
    {"A100", 312.0, 156.0, 2039, 40},
    {"A10G", 70.0, 35.0, 600, 6},
    {"A10", 125.0, 62.5, 600, 6},
    {"L40S", 362.0, 183.0, 864, 96},
    {"L40", 181.0, 90.5, 864, 96},
    {"L4", 121.0, 60.0, 300, 48},
    {"RTX 4090", 330.3, 82.6, 1008, 72},
    {"RTX 3090", 142.0, 71.0, 936, 6},
    {"T4", 65.0, 8.1, 320, 4},
    {"V100", 125.0, 15.7, 900, 6},
};

const fa_chip *fa_chip_find(const char *device) {
  for (size_t i = 0; i < sizeof chips / sizeof *chips; ++i)
    if (strstr(device, chips[i].name)) return &chips[i];
  return NULL;
}

double fa_chip_floor(const fa_chip *chip, fa_dtype dtype, double flops, double bytes) {
  const double rate = dtype == FA_F16 || dtype == FA_BF16 ? chip->tflops_half : chip->tflops_single;
  const double computing = flops / (rate * 1e12), moving = bytes / (chip->gb_per_s * 1e9);
  return computing > moving ? computing : moving;
}

double fa_last_cache_bytes(void) {
  static const int levels[] = {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE};
  for (int i = 0; i < 3; ++i) {
    const long bytes = sysconf(levels[i]);
    if (bytes > 0) return (double)bytes;
  }
  return 0;
}
