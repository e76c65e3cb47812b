/* The main backward kernels for sm_90a of wide heads: FA_ENTRY(name, T, ROW_D), as hopper_backward_wide_config
 * has them. */
FA_ENTRY(hopper_backward_wide_f16_160, fa::f16, 160)
FA_ENTRY(hopper_backward_wide_bf16_160, fa::bf16, 160)
FA_ENTRY(hopper_backward_wide_f16_192, fa::f16, 192)
FA_ENTRY(hopper_backward_wide_bf16_192, fa::bf16, 192)
FA_ENTRY(hopper_backward_wide_f16_224, fa::f16, 224)
FA_ENTRY(hopper_backward_wide_bf16_224, fa::bf16, 224)
FA_ENTRY(hopper_backward_wide_f16_256, fa::f16, 256)
FA_ENTRY(hopper_backward_wide_bf16_256, fa::bf16, 256)
#undef FA_ENTRY
