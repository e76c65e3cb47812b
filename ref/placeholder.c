typedef int fa_ref_empty; /* removed with the first source */
