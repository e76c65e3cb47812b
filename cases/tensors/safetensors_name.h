/* Valid names of tensors and keys of metadata. The reader and the writer share one rule, so that a file that
 * was read can be written again, and vice versa. */
#ifndef FA_CASES_TENSORS_SAFETENSORS_NAME_H
#define FA_CASES_TENSORS_SAFETENSORS_NAME_H

#include "cases/base/utf8.h"

#include <stdbool.h>

#define FA_SAFETENSORS_NAME_BYTES 500

/* One line of UTF-8 without control characters, because names appear in messages and reports. */
static inline bool fa_safetensors_is_name(const char *text) {
  int64_t at;
  return strnlen(text, FA_SAFETENSORS_NAME_BYTES + 1) <= FA_SAFETENSORS_NAME_BYTES &&
         fa_utf8_count(text, &at) >= 0;
}

#endif
