/* Every specialisation of the backward kernels. Included wherever something is to be made of each.
 *   FA_ENTRY(name, T, head dim, aligned rows, softcap and ALiBi)   the main kernel
 *   FA_ENTRY_ROWS(name, T, head dim, aligned rows)                 name_prepare, name_prepare_only (does not
 *                                                                  clear the accumulators) and name_convert
 * Unaligned rows with softcap or ALiBi are left to the host, as in flash_forward_list.h. */
FA_ENTRY(flash_backward_f16_64, f16, 64, true, false)
FA_ENTRY(flash_backward_f16_64_unaligned, f16, 64, false, false)
FA_ENTRY(flash_backward_f16_64_mod, f16, 64, true, true)
FA_ENTRY(flash_backward_f16_128, f16, 128, true, false)
FA_ENTRY(flash_backward_f16_128_unaligned, f16, 128, false, false)
FA_ENTRY(flash_backward_f16_128_mod, f16, 128, true, true)
FA_ENTRY(flash_backward_bf16_64, bf16, 64, true, false)
FA_ENTRY(flash_backward_bf16_64_unaligned, bf16, 64, false, false)
FA_ENTRY(flash_backward_bf16_64_mod, bf16, 64, true, true)
FA_ENTRY(flash_backward_bf16_128, bf16, 128, true, false)
FA_ENTRY(flash_backward_bf16_128_unaligned, bf16, 128, false, false)
FA_ENTRY(flash_backward_bf16_128_mod, bf16, 128, true, true)
#ifndef __CUDACC__
FA_ENTRY(flash_backward_f16_64_mod_unaligned, f16, 64, false, true)
FA_ENTRY(flash_backward_f16_128_mod_unaligned, f16, 128, false, true)
FA_ENTRY(flash_backward_bf16_64_mod_unaligned, bf16, 64, false, true)
FA_ENTRY(flash_backward_bf16_128_mod_unaligned, bf16, 128, false, true)
#endif
FA_ENTRY_ROWS(flash_backward_f16_64, f16, 64, true)
FA_ENTRY_ROWS(flash_backward_f16_64_unaligned, f16, 64, false)
FA_ENTRY_ROWS(flash_backward_f16_128, f16, 128, true)
FA_ENTRY_ROWS(flash_backward_f16_128_unaligned, f16, 128, false)
FA_ENTRY_ROWS(flash_backward_bf16_64, bf16, 64, true)
FA_ENTRY_ROWS(flash_backward_bf16_64_unaligned, bf16, 64, false)
FA_ENTRY_ROWS(flash_backward_bf16_128, bf16, 128, true)
FA_ENTRY_ROWS(flash_backward_bf16_128_unaligned, bf16, 128, false)
#undef FA_ENTRY
#undef FA_ENTRY_ROWS
