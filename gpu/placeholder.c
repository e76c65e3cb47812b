typedef int fa_gpu_empty; /* removed with the first source */
