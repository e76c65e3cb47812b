#include "fuzz/options/version.h"

const char *fa_version(void) {
  return FA_VERSION;
}

const char *fa_version_date(void) {
  return FA_VERSION_DATE;
}

const char *fa_git_revision(void) {
  return FA_GIT_REVISION;
}
