/* What was built, from what. */
#ifndef FA_FUZZ_OPTIONS_VERSION_H
#define FA_FUZZ_OPTIONS_VERSION_H

const char *fa_version(void);      /* "0.1.0" */
const char *fa_git_revision(void); /* `git describe` when the build was configured, "" outside a checkout */

#endif
