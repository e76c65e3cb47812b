/* Every memeff kernel: FA_ENTRY(name, T, columns of V to a block) forward, FA_ENTRY_BACKWARD(T) the backward
 * ones of a type; for head dims up to D FA_ENTRY_WHOLE(name, T, D) forward, with whole rows in shared memory,
 * and FA_ENTRY_SINGLE(name, T, D) backward, in one pass. */
FA_ENTRY(memeff_forward_f32_64, f32, 64)
FA_ENTRY(memeff_forward_f32_128, f32, 128)
FA_ENTRY(memeff_forward_f16_128, f16, 128)
FA_ENTRY(memeff_forward_bf16_128, bf16, 128)
FA_ENTRY_WHOLE(memeff_forward_f32_64_whole, f32, 64)
FA_ENTRY_WHOLE(memeff_forward_f32_128_whole, f32, 128)
FA_ENTRY_BACKWARD(f32)
FA_ENTRY_BACKWARD(f16)
FA_ENTRY_BACKWARD(bf16)
FA_ENTRY_SINGLE(memeff_backward_f32_64_single, f32, 64)
FA_ENTRY_SINGLE(memeff_backward_f32_128_single, f32, 128)
#undef FA_ENTRY
#undef FA_ENTRY_WHOLE
#undef FA_ENTRY_SINGLE
#undef FA_ENTRY_BACKWARD
