/* Files of cases. */
#ifndef FA_CASES_CODEC_FILE_H
#define FA_CASES_CODEC_FILE_H

#include "cases/recipe/case.h"

#define FA_CASES_VERSION 1 /* of "fa_cases": docs/reference/versions.md */

/* Makes case number `index` of a random profile. It is a hook, because the generator is in a folder above. */
typedef fa_status (*fa_generate_fn)(const char *profile, uint64_t seed, int64_t index, fa_case *out,
                                    fa_error *err);

/* Appends every case of a file to the list; path "-" is stdin. Errors name the file and the JSON path, and
 * then nothing is appended. If generate is NULL, a "random" section is an error.
 *
 * A file is one of
 *   - an object {"fa_cases": 1, "note", "defaults": {case keys}, "cases": [case ...], "sweeps": [...],
 *     "random": [...]};
 *   - a bare case object;
 *   - several case objects, one after another (JSON lines).
 *
 *   defaults  Keys for every case and sweep. A case's key replaces the defaults' key whole, objects too: a
 *             case with its own "mask" inherits nothing of the defaults' mask.
 *   sweeps    {"base": {case keys}, "over": {key: [value ...] ...}}: the product of the values, the last key
 *             varying fastest, over base over defaults. A dotted key ("mask.type") changes one key inside the
 *             object that base or defaults give. Names: "base name/seqlen_q=64,head_dim=64".
 *   random    {"count", "seed" ("1"), "profile"}: cases made by generate; the defaults do not apply to them.
 *
 * Cases and sweeps without a name are named after the file: "causal/3", "causal/sweeps[0]/seqlen_q=64". */
fa_status fa_case_file_load(const char *path, fa_generate_fn generate, fa_case_list *out, fa_error *err);
/* The same for text; name is the file's name in messages. */
fa_status fa_case_file_parse(const char *text, size_t n_bytes, const char *name, fa_generate_fn generate,
                             fa_case_list *out, fa_error *err);
/* Writes a case file with these cases, atomically. */
fa_status fa_case_file_save(const char *path, const fa_case *cases, int64_t n, fa_error *err);

#endif
