/* A hello as text that says the same wherever it is written down: what a subject is held to, and what is hashed. */
#ifndef FA_GPU_CONTRACT_CANONICAL_H
#define FA_GPU_CONTRACT_CANONICAL_H

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* The longest canonical text that a subject may be held to, with its NUL. */
#define FA_CONTRACT_TEXT 8192

/* One line: keys sorted at every depth, no spaces, whole numbers without a point, others with the fewest digits that read
 * back the same, and without "id", which is the answer's own. Lists keep their order. malloc'd; NULL when out of memory. */
char *fa_hello_canonical(const struct cJSON *hello);

#ifdef __cplusplus
}
#endif

#endif
