/* Every portable flex backward kernel that knows the expressions: FA_ENTRY(name, T, kernel) of one. */
FA_ENTRY(flex_backward_f32_keys, f32, wide_backward_keys)
FA_ENTRY(flex_backward_f32_queries, f32, wide_backward_queries)
FA_ENTRY(flex_backward_f32_dbias, f32, wide_backward_dbias)
FA_ENTRY(flex_backward_f16_keys, f16, wide_backward_keys)
FA_ENTRY(flex_backward_f16_queries, f16, wide_backward_queries)
FA_ENTRY(flex_backward_f16_dbias, f16, wide_backward_dbias)
FA_ENTRY(flex_backward_bf16_keys, bf16, wide_backward_keys)
FA_ENTRY(flex_backward_bf16_queries, bf16, wide_backward_queries)
FA_ENTRY(flex_backward_bf16_dbias, bf16, wide_backward_dbias)
#undef FA_ENTRY
