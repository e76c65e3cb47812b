/* Every portable flex backward kernel that knows the expressions: FA_ENTRY(name, T, kernel, BN, VC) of one.
 * Those for short problems have small tiles: a thread has 8 pairs at a time instead of 32, for each of which
 * the expressions are in the code once, and compile in a quarter of the time. */
FA_ENTRY(flex_backward_f32_keys, f32, memeff_backward_keys, 64, 64)
FA_ENTRY(flex_backward_f32_queries, f32, memeff_backward_queries, 64, 64)
FA_ENTRY(flex_backward_f32_dbias, f32, memeff_backward_dbias, 64, 64)
FA_ENTRY(flex_backward_f32_short_keys, f32, memeff_backward_keys, 16, 32)
FA_ENTRY(flex_backward_f32_short_queries, f32, memeff_backward_queries, 16, 32)
FA_ENTRY(flex_backward_f32_short_dbias, f32, memeff_backward_dbias, 16, 32)
FA_ENTRY(flex_backward_f16_keys, f16, memeff_backward_keys, 64, 64)
FA_ENTRY(flex_backward_f16_queries, f16, memeff_backward_queries, 64, 64)
FA_ENTRY(flex_backward_f16_dbias, f16, memeff_backward_dbias, 64, 64)
FA_ENTRY(flex_backward_f16_short_keys, f16, memeff_backward_keys, 16, 32)
FA_ENTRY(flex_backward_f16_short_queries, f16, memeff_backward_queries, 16, 32)
FA_ENTRY(flex_backward_f16_short_dbias, f16, memeff_backward_dbias, 16, 32)
FA_ENTRY(flex_backward_bf16_keys, bf16, memeff_backward_keys, 64, 64)
FA_ENTRY(flex_backward_bf16_queries, bf16, memeff_backward_queries, 64, 64)
FA_ENTRY(flex_backward_bf16_dbias, bf16, memeff_backward_dbias, 64, 64)
FA_ENTRY(flex_backward_bf16_short_keys, bf16, memeff_backward_keys, 16, 32)
FA_ENTRY(flex_backward_bf16_short_queries, bf16, memeff_backward_queries, 16, 32)
FA_ENTRY(flex_backward_bf16_short_dbias, bf16, memeff_backward_dbias, 16, 32)
#undef FA_ENTRY
