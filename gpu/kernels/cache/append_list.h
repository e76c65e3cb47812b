/* Every kernel that appends: FA_ENTRY(name, T). */
FA_ENTRY(cache_append_f16, f16)
FA_ENTRY(cache_append_bf16, bf16)
#undef FA_ENTRY
