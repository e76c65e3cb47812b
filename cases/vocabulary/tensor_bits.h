/* Sets of tensors: a bit for each (cases/tensors/set.h has their numbers, and checks that there are bits enough). */
#ifndef FA_CASES_VOCABULARY_TENSOR_BITS_H
#define FA_CASES_VOCABULARY_TENSOR_BITS_H

typedef unsigned __int128 fa_tensor_bits;

#define FA_TENSOR_BIT(id) ((fa_tensor_bits)1 << (id))

static inline int fa_tensor_bits_count(fa_tensor_bits set) {
  return __builtin_popcountll((unsigned long long)set) +
         __builtin_popcountll((unsigned long long)(set >> 64));
}

#endif
