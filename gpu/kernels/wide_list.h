/* Every wide kernel: FA_ENTRY(name, T, columns of V to a block) forward, FA_ENTRY_BACKWARD(T) the backward
 * ones of a type. */
FA_ENTRY(wide_forward_f32_64, f32, 64)
FA_ENTRY(wide_forward_f32_128, f32, 128)
FA_ENTRY(wide_forward_f16_128, f16, 128)
FA_ENTRY(wide_forward_bf16_128, bf16, 128)
FA_ENTRY_BACKWARD(f32)
FA_ENTRY_BACKWARD(f16)
FA_ENTRY_BACKWARD(bf16)
#undef FA_ENTRY
#undef FA_ENTRY_BACKWARD
