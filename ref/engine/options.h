/* The reference's options. */
#ifndef FA_REF_ENGINE_OPTIONS_H
#define FA_REF_ENGINE_OPTIONS_H

#include "cases/arithmetic/profile.h"
#include "ref/engine/sample.h"
#include "ref/engine/twist.h"

typedef struct fa_ref_options {
  int n_threads;               /* >= 1; 0 = all processors */
  const fa_profile *profile;   /* NULL: values only, quant/accum/noise/scale stay NULL */
  bool generic;                /* false: worst-case (L1) bounds only */
  double lambda;               /* 0 = the default, 4 */
  bool shapes_alone;           /* of the outputs: their arrays are never looked at, and hold anything */
  bool unscaled_o;             /* the forward's O itself where 8 bits of it times a scale are stored */
  const fa_ref_twist *twist;   /* a mistake to compute with; NULL: none */
  const fa_ref_sample *sample; /* only these places; NULL: everything. Not with a mistake */
} fa_ref_options;

#endif
