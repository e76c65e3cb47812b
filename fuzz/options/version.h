/* What was built, and from which source. */
#ifndef FA_FUZZ_OPTIONS_VERSION_H
#define FA_FUZZ_OPTIONS_VERSION_H

const char *fa_version(void);      /* "0.2.0" */
const char *fa_version_date(void); /* of this source: "2026-11-23" */
const char *fa_git_revision(void); /* `git describe` at configure time, "" outside a checkout */

#endif
