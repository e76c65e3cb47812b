/* Every portable flex forward kernel: FA_ENTRY(name, T, columns of V to a block); of a type the narrowest
 * first. */
FA_ENTRY(flex_forward_f32_64, f32, 64)
FA_ENTRY(flex_forward_f32_128, f32, 128)
FA_ENTRY(flex_forward_f16_64, f16, 64)
FA_ENTRY(flex_forward_f16_128, f16, 128)
FA_ENTRY(flex_forward_bf16_64, bf16, 64)
FA_ENTRY(flex_forward_bf16_128, bf16, 128)
#undef FA_ENTRY
