/* The main backward kernels for sm_90a: FA_ENTRY(name, T, D, BM), as hopper_backward_config has them. */
FA_ENTRY(hopper_backward_f16_64, fa::f16, 64, 64)
FA_ENTRY(hopper_backward_bf16_64, fa::bf16, 64, 64)
FA_ENTRY(hopper_backward_f16_128, fa::f16, 128, 64)
FA_ENTRY(hopper_backward_bf16_128, fa::bf16, 128, 64)
#undef FA_ENTRY
