/* How long programs of others take, beside rivals: bench --backend exec:... and py:... */
#ifndef FA_FUZZ_TIMING_FOREIGN_H
#define FA_FUZZ_TIMING_FOREIGN_H

#include "fuzz/options/command.h"

/* Times every case of --cases and --case on the candidate, and by turns on the rivals (--rival, else cuda where it is usable,
 * else ref-f32). docs/guide/benchmarking.md says how. FA_EXIT_MISMATCH: a case got no speed because an answer was wrong or its
 * time cannot be. */
int fa_bench_foreign(const fa_cli *cli, const char *backend);

#endif
