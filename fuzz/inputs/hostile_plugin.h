/* A plugin (gpu/plugin.h) that does what a script says, in this process.
 *
 * The script is FA_HOSTILE_PLUGIN_HEAD bytes, then texts in lines: its name, what open says, its hello, why it does not
 * support a case, what it says of a run, the name of its kernel, the outputs that it wrote, and bytes for these. Missing
 * bytes read as 0, missing lines are empty. Byte by byte:
 *   0, 1   the version of its table: 1, 2, or another
 *   2      its size: as it is, less by the next, more by it, or only up to run
 *   3      by how much
 *   4      bits: functions that are NULL, and the name
 *   5      what open returns
 *   6      what supports returns
 *   7      what run returns, as a signed number
 *   8      bits: which texts are written without a NUL, as far as their buffer reaches
 *   9      bits: outputs that it writes, of o, lse, p_debug, dq, dk, dv, dbias; and q, which it must not
 *   10, 11 where in them, from 32 bytes before their first element */
#ifndef FA_FUZZ_INPUTS_HOSTILE_PLUGIN_H
#define FA_FUZZ_INPUTS_HOSTILE_PLUGIN_H

#include "gpu/plugin.h"

enum { FA_HOSTILE_PLUGIN_HEAD = 12 };

/* The table of a plugin that follows the script until the next call. */
const fa_plugin *fa_hostile_plugin_table(const uint8_t *script, size_t size);

#endif
