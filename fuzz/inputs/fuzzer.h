/* What the libFuzzer targets share. A target is a file <name>_fuzzer.c that defines LLVMFuzzerTestOneInput.
 * It is linked with libFuzzer, or with replay.c to run a corpus as a plain test. */
#ifndef FA_FUZZ_INPUTS_FUZZER_H
#define FA_FUZZ_INPUTS_FUZZER_H

#include "fuzz/inputs/mutate.h"
#include "report/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Defined by the targets that read case records (record_hooks.c). has_tape: the bytes before the record are
 * the target's own. */
extern const bool fa_fuzzer_has_tape;
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned seed);

/* libFuzzer's. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Ends the process with a message if a target's property does not hold. */
#define FA_FUZZ_CHECK(e, ...)                                                                                \
  do {                                                                                                       \
    if (!(e)) fa_fuzzer_fail(#e, __FILE__, __LINE__, __VA_ARGS__);                                           \
  } while (0)
void fa_fuzzer_fail(const char *expression, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

/* True if the result and status of fa_run_case show a bug. */
bool fa_fuzzer_is_finding(const fa_result *r, fa_status status);

/* Reports such a case: prints it as the command line would, with a command that reproduces it, writes its
 * JSON to $FA_ARTIFACT_DIR (or here) as finding-<hash>.json, and aborts, so that libFuzzer keeps the input
 * too. r->backend: as on the command line; "" means host. */
void fa_fuzzer_finding(const fa_case *c, fa_result *r) __attribute__((noreturn));

/* The same if the case alone does not reproduce it: also writes the input, as finding-<hash>.input, and
 * prints the command by which the target replays that file. */
void fa_fuzzer_finding_of_input(const fa_case *c, fa_result *r, const char *target, const uint8_t *data,
                                size_t size) __attribute__((noreturn));

/* A malloc'd copy of n bytes and a NUL, so that a sanitizer detects reads past the end. */
char *fa_fuzzer_text(const uint8_t *data, size_t n);

#endif
