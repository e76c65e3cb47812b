typedef int fa_fuzz_empty; /* removed with the first source */
