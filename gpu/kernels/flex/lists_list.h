/* Every kernel that works lists out and knows no expression: FA_ENTRY(name), the device function's too. */
FA_ENTRY(flex_lists_map)
FA_ENTRY(flex_lists_tiles)
FA_ENTRY(flex_lists_blocks)
#undef FA_ENTRY
