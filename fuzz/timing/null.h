/* The child that does nothing: what an exchange costs by itself. */
#ifndef FA_FUZZ_TIMING_NULL_H
#define FA_FUZZ_TIMING_NULL_H

/* Answers every request on stdin at once, as a child of docs/reference/protocol.md would that takes everything, until stdin
 * ends. Returns an exit code. */
int fa_timing_null(void);

#endif
