/* What a manual says besides commands and options. */
#include "fuzz/options/table.h"

const fa_fact fa_exit_codes[] = {
    {"0", "all judged cases passed, and at least one was judged"},
    {"1", "a mismatch, or --require is not met, or something is worse than in the baseline"},
    {"2", "usage or malformed input"},
    {"3", "infrastructure: device lost, out of memory, I/O"},
    {"4", "nothing was judged"},
    {"130, 143",
     "interrupted by ^C or SIGTERM: running cases are finished and reported, and the journal stays for "
     "--resume; a second one stops at once"},
    {NULL, NULL},
};

const fa_fact fa_environment[] = {
    {"FA_CASES_DIR", "the folder in which case files that are given by name are looked for first"},
    {"FA_SHARD_INDEX, FA_SHARD_TOTAL", "the shard, where there is no --shard"},
    {"TEST_SHARD_INDEX, TEST_TOTAL_SHARDS, TEST_SHARD_STATUS_FILE", "the same, as Bazel sets them"},
    {"GTEST_SHARD_INDEX, GTEST_TOTAL_SHARDS", "the same, as test runners for GoogleTest set them"},
    {"SLURM_ARRAY_TASK_ID, SLURM_ARRAY_TASK_COUNT, SLURM_ARRAY_TASK_MIN, SLURM_ARRAY_TASK_STEP",
     "the same, as Slurm sets them in an array job"},
    {"GITHUB_WORKSPACE", "the folder that annotations name files in; default: the working folder"},
    {"GITHUB_STEP_SUMMARY", "a file that --annotations github appends a table of the causes to"},
    {"NO_COLOR", "no colours, unless --color asks for them"},
    {"FA_EXEC_DIR, TMPDIR", "the folder for the tensors of backend exec: the first that is set, else /tmp"},
    {"FA_PYTHON", "the Python that runs adapters of backend py (python3)"},
    {"FA_PY_FORK", "backend py: one process imports the library and forks the others (auto, the default), or "
                   "each imports it for itself (off)"},
    {"FA_MUTANT_DIR", "the folder of the mutants' libraries, instead of mutants/ beside the program"},
    {"FA_HOPPER",
     "on devices that run them, kernels for sm_90a do what they can (auto, the default), or nothing (off)"},
    {"FA_NVRTC", "which kernels are compiled at run time: those that the program has no code for (auto, the "
                 "default), none (off), or all (always)"},
    {"FA_FLEX_COMPILE", "how well expressions are compiled: best (the default), or quick, which takes half "
                        "the time and makes slower kernels"},
    {"FA_LIBCUDA, FA_LIBNVRTC",
     "the CUDA driver's library and NVRTC's, instead of those that the loader finds"},
    {"CUDA_PATH, CUDA_HOME, LD_LIBRARY_PATH", "where NVRTC is looked for"},
    {"CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, HIP_VISIBLE_DEVICES, JAX_PLATFORMS, OMP_NUM_THREADS, "
     "OPENBLAS_NUM_THREADS, MKL_NUM_THREADS, TRITON_CACHE_DIR, LC_ALL",
     "of those that are set, the few that a kernel is handed with --untrusted"},
    {"FA_CACHE_DIR, XDG_CACHE_HOME, HOME",
     "where compiled kernels are kept: FA_CACHE_DIR, or XDG_CACHE_HOME/fa-verify, or HOME/.cache/fa-verify"},
    {"FA_CACHE_MEGABYTES", "how many megabytes of them are kept (256)"},
    {"FA_JUDGE_WIDE_FROM", "from how many pairs a launch on the GPU's judge takes large tiles (8388608); for tests"},
    {"CUDA_MODULE_LOADING", "whether the GPU's judge loads its kernels at once, where it is set (EAGER)"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "hardware queues of a worker's CUDA context, where it is set (1)"},
    {"FA_VERIFY_BLAS_CORE, OPENBLAS_CORETYPE",
     "which of OpenBLAS's kernels the reference uses: OPENBLAS_CORETYPE names them; FA_VERIFY_BLAS_CORE=keep "
     "leaves the "
     "choice to OpenBLAS"},
    {NULL, NULL},
};

const fa_fact fa_files[] = {
    {"PREFIX/share/fa-verify/cases/*.json",
     "the installed case files; --cases causal is short for one of them"},
    {"OUT.json.journal",
     "the results of a run with --report OUT.json, until the report is written; what --resume needs"},
    {"~/.cache/fa-verify/", "kernels that were compiled at run time"},
    {NULL, NULL},
};

const char *fa_theme_title(fa_theme theme) {
  static const char *const titles[FA_N_THEMES] = {
      [FA_THEME_CASES] = "which cases",        [FA_THEME_SUBJECT] = "the kernel",
      [FA_THEME_JUDGING] = "how it is judged", [FA_THEME_RUNNING] = "how it runs",
      [FA_THEME_WRITTEN] = "what is written",  [FA_THEME_PRINTED] = "what is printed",
  };
  return titles[theme];
}
