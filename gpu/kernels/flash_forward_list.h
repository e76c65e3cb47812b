/* Every specialisation of the forward kernel: FA_ENTRY(name, T, head dim, aligned rows, softcap and ALiBi).
 * Included wherever something is to be made of each. Unaligned rows with softcap or ALiBi are left to the host:
 * ahead of time, the device needs no kernel for every corner. */
FA_ENTRY(flash_forward_f16_64, f16, 64, true, false)
FA_ENTRY(flash_forward_f16_64_unaligned, f16, 64, false, false)
FA_ENTRY(flash_forward_f16_64_mod, f16, 64, true, true)
FA_ENTRY(flash_forward_f16_128, f16, 128, true, false)
FA_ENTRY(flash_forward_f16_128_unaligned, f16, 128, false, false)
FA_ENTRY(flash_forward_f16_128_mod, f16, 128, true, true)
FA_ENTRY(flash_forward_bf16_64, bf16, 64, true, false)
FA_ENTRY(flash_forward_bf16_64_unaligned, bf16, 64, false, false)
FA_ENTRY(flash_forward_bf16_64_mod, bf16, 64, true, true)
FA_ENTRY(flash_forward_bf16_128, bf16, 128, true, false)
FA_ENTRY(flash_forward_bf16_128_unaligned, bf16, 128, false, false)
FA_ENTRY(flash_forward_bf16_128_mod, bf16, 128, true, true)
#ifndef __CUDACC__
FA_ENTRY(flash_forward_f16_64_mod_unaligned, f16, 64, false, true)
FA_ENTRY(flash_forward_f16_128_mod_unaligned, f16, 128, false, true)
FA_ENTRY(flash_forward_bf16_64_mod_unaligned, bf16, 64, false, true)
FA_ENTRY(flash_forward_bf16_128_mod_unaligned, bf16, 128, false, true)
#endif
#undef FA_ENTRY
