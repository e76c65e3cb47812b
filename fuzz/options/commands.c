/* The commands: what help, the manual page and completions say about each. */
#include "fuzz/options/table.h"

#include <string.h>

#define SHELLS "bash|zsh|fish"
#define LISTS "backends|profiles|fills|hypotheses|mutants|cases"
#define COMMANDS "run|random|repro|shrink|probe|check|golden|report|bench|list|serve|help|completion|man"

const fa_command_row fa_commands[] = {
    {.name = "run",
     .bit = FA_ON_RUN,
     .brief = "--cases FILE...",
     .does = "run every case of the files",
     .forms = {"--cases FILE... [OPTION...]", "--case JSON [OPTION...]", "--tier NAME [OPTION...]"},
     .about = "Runs every case of the files on a kernel and judges each output, element by element: a line "
              "for each "
              "case, a summary last. The word run may be left out where --cases or --tier is given. A tier "
              "chooses "
              "what is worth most in a given time, out of all case files and of random cases.",
     .examples =
         {{"fa-verify --cases causal --filter gqa --report out.json",
           "the cases of a file whose names match, with a report"},
          {"fa-verify run --cases causal window --backend plugin:./mine.so --require all",
           "a kernel of yours, which may skip none"},
          {"fa-verify run --case '{\"seqlen_q\":113,\"seqlen_k\":113,\"mask\":{\"type\":\"causal\"}}' -v",
           "one case, with everything that is known of it"},
          {"fa-verify --tier smoke --backend plugin:./mine.so --baseline before.json --annotations github",
           "30 seconds for a pull request, which fails only on what is new"},
          {"fa-verify run --laws --cases gqa", "laws between two runs instead of the reference"}}},
    {.name = "random",
     .bit = FA_ON_RANDOM,
     .brief = "--count N",
     .does = "generate cases and run them",
     .forms = {"--count N [--seed S] [--profile NAME] [OPTION...]",
               "--seconds T [--seed S] [--profile NAME] [OPTION...]"},
     .about = "Generates random cases and runs them. Case K of a profile and a seed is the same everywhere, "
              "so any of "
              "them can be run again alone. A case that the kernel cannot run is drawn again.",
     .examples =
         {{"fa-verify random --count 1000 --seed 7 --coverage", "and which features were among them"},
          {"fa-verify random --seconds 28800 --report night.json -q",
           "a night; after a kill the same command with --resume goes on"},
          {"fa-verify random --count 500 --profile kvcache --backend exec:'python3 kernel.py' --require 90%",
           "exit code 1 unless 90 % of them were judged"},
          {"fa-verify random --count 20 --profile adversarial --emit cases.json",
           "keep what was drawn as a case file"}}},
    {.name = "repro",
     .bit = FA_ON_REPRO,
     .brief = "REPORT.json[:K]",
     .does = "run reported failures again, exactly",
     .forms = {"REPORT.json[:K]... [OPTION...]"},
     .about = "Runs failure K of a report again, or all of them: the same case, backend and schedule. The "
              "report's "
              "journal serves as well, while the run is under way or after it was killed.",
     .words = {{FA_VALUE_JSON, NULL}},
     .repeats = true,
     .examples = {{"fa-verify repro out.json:0 -v", "the first failure, with everything that is known of it"},
                  {"fa-verify repro out.json --shrunk --keep dumps",
                   "all of them, as small as they were shrunk, with their tensors as files"},
                  {"fa-verify repro out.json:2 --backend host", "the third failure, on another backend"}}},
    {.name = "shrink",
     .bit = FA_ON_SHRINK,
     .brief = "REPORT.json[:K]",
     .does = "find the smallest case that fails the same way",
     .forms = {"REPORT.json[:K]... [OPTION...]", "CASE.json... [OPTION...]", "--case JSON [OPTION...]"},
     .about = "Makes a failing case smaller as long as it fails in the same way, and prints what is left; "
              "--out keeps it as a case file.",
     .words = {{FA_VALUE_JSON, NULL}},
     .repeats = true,
     .examples = {{"fa-verify shrink out.json:0 --out small.json",
                   "the first failure of a report, into a case file"},
                  {"fa-verify shrink fails.json --backend plugin:./mine.so --seconds 60",
                   "the cases of a file, each for about a minute at most"}},
     .exit_codes = "0 it does not fail; 1 it fails, and was shrunk or is flaky; 4 it was skipped."},
    {.name = "probe",
     .bit = FA_ON_PROBE,
     .brief = "--backend NAME",
     .does = "find out what a kernel computes, by asking it",
     .forms = {"--backend NAME [OPTION...]"},
     .about = "Asks a kernel questions whose answers show its conventions (the scale, where masks are "
              "aligned, what LSE "
              "is) and its arithmetic (what is rounded, to which type), and prints them as the kernel could "
              "declare them.",
     .examples = {{"fa-verify probe --backend plugin:./mine.so", "everything, in each element type"},
                  {"fa-verify probe --backend py:torch_sdpa --dtype bf16 --strict --json found.json",
                   "exit code 1 if it is not as declared"}},
     .exit_codes =
         "1 with --strict, a finding contradicts what is declared; 4 no element type could be probed."},
    {.name = "check",
     .bit = FA_ON_CHECK,
     .brief = "FILE.safetensors...",
     .does = "judge recorded runs, made elsewhere",
     .forms = {"FILE.safetensors... [OPTION...]"},
     .about = "Judges outputs and gradients that were made elsewhere and stored beside their inputs. No "
              "kernel and no "
              "GPU is needed.",
     .words = {{FA_VALUE_SAFETENSORS, NULL}},
     .repeats = true,
     .examples = {{"fa-verify check recorded.safetensors", "every group of the file"},
                  {"fa-verify check *.safetensors --filter bf16 --html page.html",
                   "groups whose names match, and a page with pictures of what is wrong"}}},
    {.name = "golden",
     .bit = FA_ON_GOLDEN,
     .brief = "write|check DIR",
     .does = "store expected outputs, or verify them",
     .forms = {"write DIR --cases FILE... [OPTION...]", "check DIR [--cases FILE...] [OPTION...]"},
     .about = "Stores what the reference computes for each case as safetensors, or verifies that the "
              "reference still "
              "computes what was stored. Without --cases, check takes every case that the folder has.",
     .words = {{FA_VALUE_ONE_OF, "write|check"}, {FA_VALUE_FOLDER, NULL}},
     .examples = {{"fa-verify golden write goldens --cases causal window", "a file for each case and pass"},
                  {"fa-verify golden check goldens", "all that were written"}},
     .exit_codes = "1 an output is not what was stored."},
    {.name = "report",
     .bit = FA_ON_REPORT,
     .brief = "FILE.json...",
     .does = "merge, convert or compare reports",
     .forms = {"FILE.json... [--html OUT] [--junit OUT] [--merge OUT] [--score OUT]",
               "--compare OLD.json NEW.json [--html OUT]"},
     .about = "Takes reports together, those of shards for example, and prints their counts and what their "
              "failures "
              "have in common; or writes them as a page, as JUnit XML, as one report. With --compare: what "
              "is new, "
              "fixed or slower in the second of two.",
     .words = {{FA_VALUE_JSON, NULL}},
     .repeats = true,
     .examples = {{"fa-verify report part.*.json --merge all.json --junit all.xml", "shards as one"},
                  {"fa-verify report out.json --html out.html", "a page that needs nothing else"},
                  {"fa-verify report out.json --score score.json", "one kernel's score, for tables"},
                  {"fa-verify report part.*.json --require 90%",
                   "exit code 1 unless all of them together judged so much"},
                  {"fa-verify report --compare yesterday.json today.json",
                   "exit code 1 if something fails that did not"}},
     .exit_codes =
         "0 also if there are failures in the reports; 1 with --compare, a case fails that did not, or "
         "--require is not met."},
    {.name = "bench",
     .bit = FA_ON_BENCH,
     .brief = "--cases FILE...",
     .does = "time kernels on a GPU, or the reference",
     .forms = {"--cases FILE... [OPTION...]", "--backend ref [--jobs N]",
               "--backend judge[:NAME] [--jobs N] [--case JSON]"},
     .about = "Times the kernels on a GPU: the median of many runs, TFLOP/s and GB/s. --backend ref times "
              "the reference "
              "beside a matrix product, --backend judge everything but the kernel.",
     .examples = {{"fa-verify bench --cases causal --filter bf16", "cases whose names match"},
                  {"fa-verify bench --cases headdim --cold --report times.json",
                   "with an empty L2 cache before each run"},
                  {"fa-verify bench --backend ref", "how fast the judge is here"}},
     .exit_codes = "4 nothing was timed."},
    {.name = "list",
     .bit = FA_ON_LIST,
     .brief = "WHAT",
     .does = "print what this build and machine have",
     .forms = {"backends|profiles|fills|hypotheses|mutants", "cases [--cases FILE...] [--filter REGEX]"},
     .about = "Prints what --backend, --profile, a case's fill, and backend mutant: may be; the mistakes "
              "that a failure "
              "is held against; or the cases of files, a JSON object a line, sweeps written out. "
              "`list cases` alone prints the case files that have a name.",
     .words = {{FA_VALUE_ONE_OF, LISTS}},
     .examples = {{"fa-verify list backends", "and why one is not usable here"},
                  {"fa-verify list profiles", "the kinds of random cases"},
                  {"fa-verify list cases --cases gqa", "for programs that run cases one by one"}}},
    {.name = "serve",
     .bit = FA_ON_SERVE,
     .brief = "--backend NAME",
     .does = "run a backend for another fa-verify, as its child",
     .forms = {"--backend NAME"},
     .about = "Answers on stdout the requests that come in on stdin, so that a backend is judged by another "
              "fa-verify "
              "while it runs in a process of its own: a plugin then shares no memory with the judge but the "
              "call's tensors. "
              "The requests are those of docs/reference/protocol.md, version 2.",
     .examples = {{"fa-verify serve --backend plugin:./mine.so",
                   "what a judge calls by --backend 'exec:fa-verify serve --backend plugin:./mine.so'"},
                  {"fa-verify serve --backend cuda",
                   "the kernels of this program, behind another one's wall"}},
     .exit_codes = "0 when stdin ends; 2 the backend cannot be opened like this."},
    {.name = "help",
     .bit = FA_ON_ABOUT,
     .brief = "[COMMAND]",
     .does = "print a command's options and examples",
     .forms = {"[COMMAND]"},
     .about = "Prints the list of commands, or one command's options and examples.",
     .words = {{FA_VALUE_ONE_OF, COMMANDS}},
     .examples = {{"fa-verify help random", "the same as fa-verify random --help"}}},
    {.name = "completion",
     .bit = FA_ON_ABOUT,
     .brief = "SHELL",
     .does = "print a completion script for bash, zsh or fish",
     .forms = {SHELLS},
     .about = "Prints a script with which a shell completes commands, options, and their values. An "
              "installed program "
              "has brought these scripts along, where shells look for them.",
     .words = {{FA_VALUE_ONE_OF, SHELLS}},
     .examples = {{"fa-verify completion bash >~/.local/share/bash-completion/completions/fa-verify",
                   "bash, from its next start on"},
                  {"fa-verify completion zsh >~/.zfunc/_fa-verify",
                   "zsh, if ~/.zfunc is in $fpath before compinit"},
                  {"fa-verify completion fish >~/.config/fish/completions/fa-verify.fish", "fish, at once"}}},
    {.name = "man",
     .bit = FA_ON_ABOUT,
     .brief = "",
     .does = "print the manual page",
     .forms = {""},
     .about = "Prints the manual page, for man to read.",
     .examples = {{"fa-verify man | man -l -", "read it, where it is not installed"}}},
};
const int fa_n_commands = sizeof fa_commands / sizeof *fa_commands;

const fa_command_row *fa_command_find(const char *name) {
  for (int i = 0; i < fa_n_commands; ++i)
    if (strcmp(fa_commands[i].name, name) == 0) return &fa_commands[i];
  return NULL;
}
