/* A child of docs/reference/protocol.md that says what a script says, in a thread of this process: fast enough for a
 * fuzzer, and as free as a process to answer nonsense and to write into the shared memory.
 *
 * The script is bytes in lines. For every request the child writes the next line, and when there is none left it closes
 * the connection; a child that is started again goes on where the last one stopped. In a line @ stands for the request's
 * id. The first byte of a line may be
 *   1   no answer: three bytes are an offset in the shared memory where the others are written. The next line follows
 *   2   the rest is written again and again without an end, until it is longer than a line may be
 *   3   the next line follows without waiting for a request */
#ifndef FA_FUZZ_INPUTS_HOSTILE_CHILD_H
#define FA_FUZZ_INPUTS_HOSTILE_CHILD_H

#include "gpu/backends/exec_subject.h"

#include <stdint.h>

/* The script that the next children follow; it must stay where it is. */
void fa_hostile_child_follow(const uint8_t *script, size_t size);
/* How a subject reaches such a child: for fa_exec_open. */
extern const fa_exec_reach fa_hostile_child_reach;

#endif
