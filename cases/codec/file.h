/* Files of cases. */
#ifndef FA_CASES_CODEC_FILE_H
#define FA_CASES_CODEC_FILE_H

#include "cases/recipe/case.h"

/* Makes case number `index` of a random profile. The generator lives above this folder, so files take it as a
 * hook. */
typedef fa_status (*fa_generate_fn)(const char *profile, uint64_t seed, int64_t index, fa_case *out,
                                    fa_error *err);

/* Appends every case of a file to the list; path "-" is stdin. Errors name the file and the JSON path;
 * nothing is appended then. generate may be NULL: a "random" section is then an error. A file is one of
 *   {"fa_cases": 1, "note", "defaults": {case keys}, "cases": [case ...], "sweeps": [...], "random": [...]},
 * where defaults  hold for every case and sweep. A case's key replaces the defaults' key whole, objects too:
 * a case with a "mask" of its own inherits nothing of the defaults' mask. sweeps    {"base": {case keys},
 * "over": {key: [value ...] ...}}: the product of the values, the last key turning fastest, over base over
 * defaults. A dotted key ("mask.type") changes one key inside the object that base or defaults give. Names:
 * "base name/seqlen_q=64,head_dim=64". random    {"count", "seed" ("1"), "profile"}: cases made by generate;
 * the defaults do not hold for them. cases and sweeps without a name are called after the file: "causal/3",
 * "causal/sweeps[0]/seqlen_q=64"; a case object by itself; or several, one after the other (JSON lines). */
fa_status fa_case_file_load(const char *path, fa_generate_fn generate, fa_case_list *out, fa_error *err);
/* The same on text; name stands for the file in messages. */
fa_status fa_case_file_parse(const char *text, size_t n_bytes, const char *name, fa_generate_fn generate,
                             fa_case_list *out, fa_error *err);
/* A case file holding these cases, written atomically. */
fa_status fa_case_file_save(const char *path, const fa_case *cases, int64_t n, fa_error *err);

#endif
