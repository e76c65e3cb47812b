/* Every specialisation of the wide kernels: FA_ENTRY(name, T, columns of V or of a gradient to a block). */
FA_ENTRY(wide_forward_f32_64, f32, 64)
FA_ENTRY(wide_forward_f32_128, f32, 128)
FA_ENTRY(wide_forward_f16_128, f16, 128)
FA_ENTRY(wide_forward_bf16_128, bf16, 128)
#undef FA_ENTRY
