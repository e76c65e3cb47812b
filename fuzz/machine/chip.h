/* What the machine cannot beat. */
#ifndef FA_FUZZ_MACHINE_CHIP_H
#define FA_FUZZ_MACHINE_CHIP_H

#include "cases/base/dtype.h"

/* A GPU as its maker describes it, without sparsity. */
typedef struct fa_chip {
  const char *name;     /* a part of what the driver calls it */
  double tflops_half;   /* f16 and bf16 products with f32 sums, at the highest clock */
  double tflops_single; /* f32, or the TF32 tensor cores where there are any */
  double gb_per_s;
  double l2_mib;
} fa_chip;

/* The row for a device's name; NULL: none is known. */
const fa_chip *fa_chip_find(const char *device);
/* Seconds that so much arithmetic and so many bytes take at the very least. */
double fa_chip_floor(const fa_chip *chip, fa_dtype dtype, double flops, double bytes);

/* Bytes of this processor's last cache; 0: unknown. */
double fa_last_cache_bytes(void);

#endif
