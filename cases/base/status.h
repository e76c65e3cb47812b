/* Errors of the world (files, JSON, memory, devices) and assertions that are always on.
 *
 * A function that can meet such an error returns fa_status and writes a message into the caller's fa_error
 * (which may be NULL). A wrong *subject* is never an fa_status: it is data in a verdict. A bug of the harness
 * itself fails an FA_ASSERT. */
#ifndef FA_CASES_BASE_STATUS_H
#define FA_CASES_BASE_STATUS_H

typedef enum fa_status {
  FA_OK = 0,
  FA_ERR_INPUT,       /* malformed or contradictory input; exit code 2 */
  FA_ERR_IO,          /* a file could not be read or written; exit code 3 (2 when the user named it) */
  FA_ERR_MEMORY,      /* out of memory; exit code 3 */
  FA_ERR_DEVICE,      /* device lost or driver error; exit code 3 */
  FA_ERR_UNSUPPORTED, /* well formed, but this build or backend cannot do it: a skip with a reason */
} fa_status;

typedef struct fa_error {
  char text[1024]; /* always NUL-terminated; the place first, then what is wrong, then what is allowed */
} fa_error;

/* Formats the message into err (may be NULL) and returns code, so that callers can `return fa_fail(...)`. */
fa_status fa_fail(fa_error *err, fa_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepends "prefix: " to the message in err. */
void fa_error_prefix(fa_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the expression and its source line, then aborts. */
void fa_assert_failed(const char *expression, const char *file, int line) __attribute__((noreturn));
#define FA_ASSERT(e) ((e) ? (void)0 : fa_assert_failed(#e, __FILE__, __LINE__))

#endif
