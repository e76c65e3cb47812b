/* The commands. */
#include "fuzz/options/table.h"

#include <string.h>

const fa_command_row fa_commands[] = {
    {"run", "--cases FILE...", "run every case of the files (- is stdin)", FA_ON_RUN},
    {"random", "--count N --seed S", "generate and run random cases; --seconds T runs a campaign",
     FA_ON_RANDOM},
    {"repro", "REPORT.json[:K]", "run failure K of a report again (default: all), exactly as reported",
     FA_ON_REPRO},
    {"check", "FILE.safetensors...", "judge recorded runs: outputs made elsewhere", FA_ON_CHECK},
    {"golden", "write|check DIR --cases FILE...",
     "write expected outputs, or verify that they still come out", FA_ON_GOLDEN},
    {"bench", "--cases FILE... | --backend ref",
     "time the kernels on the GPU, or the reference beside a matrix product", FA_ON_BENCH},
    {"list", "backends|profiles|fills|hypotheses|mutants|cases",
     "what this build and machine have; the cases of --cases", FA_ON_LIST},
    {"report", "FILE.json... [--html OUT ...]",
     "reports as one: its counts, also by kernel; or a page, JUnit XML, a merged report; --compare two",
     FA_ON_REPORT},
    {"shrink", "REPORT.json[:K] | CASE.json", "the smallest case that still fails in the same way",
     FA_ON_SHRINK},
    {"probe", "--backend NAME", "find out by asking what a kernel's conventions and arithmetic are",
     FA_ON_PROBE},
};
const int fa_n_commands = sizeof fa_commands / sizeof *fa_commands;

const fa_command_row *fa_command_find(const char *name) {
  for (int i = 0; i < fa_n_commands; ++i)
    if (strcmp(fa_commands[i].name, name) == 0) return &fa_commands[i];
  return NULL;
}
