/* From --untrusted, --without and --allow to the terms on which a candidate is let in. */
#ifndef FA_FUZZ_OPTIONS_UNTRUSTED_H
#define FA_FUZZ_OPTIONS_UNTRUSTED_H

#include "fuzz/options/command.h"
#include "gpu/wall/terms.h"

/* *terms is NULL for a run that trusts its candidate, else out, which is valid as long as cli is. FA_ERR_INPUT: there is
 * no such layer, or an option lacks its --untrusted. */
fa_status fa_cli_terms(const fa_cli *cli, fa_wall_terms *out, const fa_wall_terms **terms, fa_error *err);

#endif
