#!/usr/bin/env python3
"""Removes each barrier, wait and commit from the kernels, one at a time, and expects the host backend to notice.

usage: test_barriers.py BARRIER_VERIFY CXX [--all] [--write docs/notes/detection.md] [--only TEXT]

BARRIER_VERIFY is fa-verify with the kernels in a shared library, so that a changed copy can replace them. Without
--all only the cases selected by the filters of FAMILIES are run. Exit: 0 if every removal was caught or is in
HARMLESS, otherwise 1."""
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from share import share_of_neighbours

WORKERS = 2  # at a time: compilers, and removals

FLASH = "^(square_(17|65)|gqa_5.*|d200|scale_negative.*|deterministic_.*|splits_(bf16|mixed)|bias_b.*)$"
FLASH_FILES = ["cases/causal.json", "cases/headdim.json", "cases/edge.json", "cases/gqa.json", "cases/memeff.json"]
MORE_FILES = ["cases/varlen.json", "cases/window.json", "cases/dropout.json", "cases/alibi.json", "cases/softcap.json"]
# Family -> (backend, case files, filter of the quick run, schedule seeds), in the order they
# are run. Filter None: not in the quick run.
# More processors than the host has by default reach the backward that is parallel over query blocks with several key
# blocks to a head. One processor gives a block of the kernels for sm_90a a tile to load while lanes still wait for
# the one before; that they are overtaken takes luck, hence several seeds.
FAMILIES = {
    "flash": [("host", FLASH_FILES, FLASH, [1]), ("host", MORE_FILES, None, [1]),
              ("host:processors=132", ["cases/crossattn.json"], "^two_blocks_d64$", [1])],
    "hopper": [("host:hopper", ["cases/hopper.json"],
                "^(bf16_64_(rings|no_keys|dropout|varlen|varlen_ordered)|bf16_256_(window|varlen|wide)|"
                "f16_32_ordered|f16_96_varlen_backward|f16_192_wide_(varlen|ordered)|bf16_192_wide_dropout_three|f16_256_wide_dropout|"
                "f16_64_biased(|_idle_groups)|f16_128_biased(|_unseen))$", [1]),
               ("host:hopper", ["cases/hopper_cache.json"], "^(pages_16|heads_8|rows_before_keys|d256)$", [1]),
               ("host:hopper,processors=1", ["cases/hopper_cache.json"], "^(many_entries|pages_64)$", range(1, 9)),
               ("host:hopper", ["cases/flex.json"], "^(dense|mod_alibi_bf16)$", [1]),
               ("host:hopper", ["cases/quantized.json"], "^(tensors|heads|packed)$", [1]),
               ("host:hopper,processors=1", ["cases/hopper.json"],
                "^(bf16_64_(window|window_short|idle)|bf16_256_dropout)$", range(1, 9))],
    "flex": [("host", ["cases/flex.json"], "^(dense|density_30|k_ne_v|mod_columns)$", [1])],
    "cache": [("host", ["cases/kvcache.json"], "^(splits_2|tall_unmasked|splits_causal_tall|page_gqa_splits)$", [1]),
              ("host", ["cases/kvcache_large.json", "cases/mla.json"], "^(window|two_rows)$", [1])],
    "latent": [("host:hopper", ["cases/mla.json"], "^(rings|rings_128|one_key|rows_128)$", [1])],
    "memeff": [("host", ["cases/memeff.json"],
              "^(bias_b.*|d_72_f32|f32_gqa|d_300|k_ne_v_wide_values|f32_two_passes)$", [1]),
             ("host", ["cases/sinks.json"], "^plain$", [1]),
             ("host", FLASH_FILES[:-1], None, [1])],
}
CAUGHT = re.compile(r"(FAIL|RACE|OOB|DEADLOCK|CRASH|HANG|ERROR|REJECTED) (\S+)  \S+  \S+  (?:r=\S+  )?[\d.]+ m?s  "
                    r"(.*?)(?: \[.*)?$")
SITE = re.compile(r"\b(sync_block|sync_warp|sync_team<C>|named_sync(?:_of_roles)?<\d+>|cp_async_commit|cp_async_wait<[^<>;]+>|"
                  r"fence_async|tma_store_commit|tma_store_wait_read<\d+>)\((?:\d*|HOPPER_PAIR_KEYS_READ)\);")
# The end of the line, preceded by the line before it -> why its removal has no visible effect.
HARMLESS = {
    "sync_block(); /* the tiles have been read before the next block's copies start */":
        "each thread copies into the chunks that it alone read before; the barrier stays because only it orders an "
        "asynchronous copy after reads",
    "named_arrive<64>(HOPPER_PAIR_P_FULL + thread / 32); sync_warp();":
        "the producer also waits for the other group, which gets P when all lanes have read LSE; the barrier stays "
        "because the arrival after it says that they have",
    "if (C::APART && lane == 0) tma_store_wait_read<0>(); sync_warp();":
        "the shuffles of quad_sum come between the first lane's wait and any lane's store; the barrier stays because a "
        "shuffle orders no memory",
    "sync_warp(); /* every lane is done with this key block */":
        "the lane that arrives also waits for the bulk stores, before which a barrier of its own has all lanes' writes; "
        "the barrier stays because only it says that of lanes that have nothing to store",
    "ldmatrix_x4(q.step[i], latent_q_chunk<C>(row, 2 * i + lane / 16)); fence_async();":
        "the executor orders a bulk copy's writes after reads by the barrier alone; the fence stays because a device may not",
    "sync_warp(); /* or the compiler would begin with more than it has registers for */":
        "it orders no accesses at all, only what the compiler does first",
    "producer.load(work, i + C::STAGES - 1); sync_warp();":
        "the other lanes wait for nothing that the first has loaded without its barrier; it stays so that the MMAs, which ask for "
        "whole warps, find them together",
}


# A folder of kernels -> the family whose cases run them; files in none of these also belong to
# flash.
FOLDERS = {"hopper": "hopper", "hopper_backward": "hopper", "hopper_latent": "latent", "flex": "flex", "mods": "flex", "cache": "cache", "memeff": "memeff"}


def kernel_files(endings):
    """Paths below gpu/kernels of all files with these endings."""
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk("gpu/kernels") for name in names
                  if name.endswith(endings))


def sources():
    return [path for path in kernel_files(".cuh") if not path.startswith("gpu/kernels/machine/")]


def family_of(path):
    return FOLDERS.get(os.path.basename(os.path.dirname(path)), "flash")


def sites():
    """(file, line number, column span, what) of every removable call."""
    for path in sources():
        with open(path) as f:
            for number, line in enumerate(f, 1):
                for m in SITE.finditer(line):
                    yield path, number, m.span(), m.group(1)


# Prepended to copies of the kernels: reads the number of the call to leave out, 0 for none.
SWITCH = """
#include <stdlib.h>
static const int fa_test_removed = getenv("FA_TEST_REMOVED") ? atoi(getenv("FA_TEST_REMOVED")) : 0;
#line 1
"""


def copy_kernels(folder, every_site):
    """The kernels with each call that can be removed behind a switch: compiled once for all removals. No line moves."""
    for name in kernel_files((".cuh", ".h", ".def", ".cu")):
        with open(name) as f:
            lines = f.readlines()
        for i, (path, number, (begin, end), _) in reversed(list(enumerate(every_site, 1))):
            if name == path:
                line = lines[number - 1]
                lines[number - 1] = f"{line[:begin]}fa_test_removed == {i} ? (void)0 : {line[begin:]}"
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "w") as f:
            f.writelines(([SWITCH] if name.endswith(".cu") else []) + lines)


def included(path, seen):
    """Adds path, and what it includes of the kernels, to seen."""
    if path in seen:
        return seen
    seen.add(path)
    with open(path) as f:
        for name in re.findall(r'^ *#include "(gpu/kernels/[^"]+)"', f.read(), re.MULTILINE):
            included(name, seen)
    return seen


def runs_hopper(family):
    return any(backend.startswith("host:hopper") for backend, *_ in FAMILIES[family])


def units_with(paths):
    """The units that hold one of these files and are run by its family's cases; the program has the others, unchanged."""
    return [unit for unit in kernel_files(".cu") if any(not unit.startswith("gpu/kernels/hopper") or runs_hopper(family_of(path))
                                                        for path in included(unit, set()) & set(paths))]


def build(cxx, folder, units):
    """Those of the copied kernels as a shared library. Which header is found must not depend on where the others lie: the
    whole folder has been copied."""
    flags = ["-std=gnu++17", "-Og", "-fPIC", f"-fmacro-prefix-map={folder}/=", f"-I{folder}", "-I."]
    units.sort(key=lambda u: "/flash/" not in u)  # slow compilations first

    def compile_one(unit):
        return command([cxx, *flags, "-x", "c++", "-c", os.path.join(folder, unit), "-o", os.path.join(folder, f"{unit}.o")])

    with ThreadPoolExecutor(WORKERS) as pool:
        for done in pool.map(compile_one, units):
            if done.returncode != 0:
                sys.exit(f"does not compile:\n{done.stderr[:2000]}")
    library = os.path.join(folder, "kernels.so")
    done = command([cxx, "-shared", *[os.path.join(folder, f"{u}.o") for u in units], "-o", library])
    if done.returncode != 0:
        sys.exit(f"does not link:\n{done.stderr[:2000]}")
    return library


def command(words, **environment):
    return subprocess.run(words, env=dict(os.environ, **environment), capture_output=True, text=True)


def judge(verify, library, family, removed, everything):
    """None, or the first case that failed, with its message."""
    for backend, files, quick, seeds in FAMILIES[family]:
        if not quick and not everything:
            continue
        words = [verify, "run", "-v", "--backend", backend, "--jobs", "1", "--fail-fast", "--timeout", "60", "--color", "never",
                 "--no-progress", "--cases", *files, *([] if everything else ["--filter", quick])]
        for seed in seeds:
            done = command([*words, "--schedule-seed", str(seed)], LD_PRELOAD=library, FA_TEST_REMOVED=str(removed))
            if done.returncode != 0:
                return first_failure(done)
    return None


def why_harmless(path, number):
    with open(path) as f:
        two = " ".join(line.strip() for line in f.readlines()[max(number - 2, 0):number])
    return next((why for code, why in HARMLESS.items() if two.endswith(code)), None)


def first_failure(done):
    if done.returncode != 1:
        sys.exit(f"exit status {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    for line in done.stdout.splitlines():
        m = CAUGHT.match(line.split("  repro:")[0])
        if m:
            return m.groups()
    return "FAIL", "?", done.stdout[-300:]


def write_table(path, rows):
    """Replaces the rows of the table between the two marks."""
    with open(path) as f:
        before, _, rest = f.read().partition("<!-- barriers -->\n")
        _, _, after = rest.partition("<!-- end of barriers -->\n")
    table = "| Removed | Outcome | First case | What it said |\n|---|---|---|---|\n"
    for where, number, text, said, harmless in rows:
        outcome, case, detail = said or ("not caught", "", harmless or "")
        call = text.split(";")[0]
        table += f"| {where.removeprefix('gpu/kernels/')}:{number} `{call}` | {outcome} | {case} | {detail} |\n"
    with open(path, "w") as f:
        f.write(f"{before}<!-- barriers -->\n{table}<!-- end of barriers -->\n{after}")


def main(arguments):
    everything, only, write = "--all" in arguments, None, None
    if "--only" in arguments:
        only = arguments[arguments.index("--only") + 1]
    if "--write" in arguments:
        write = arguments[arguments.index("--write") + 1]
    verify, cxx = os.path.abspath(arguments[0]), arguments[1]
    every_site = list(sites())
    chosen = share_of_neighbours([(i, s) for i, s in enumerate(every_site, 1) if not only or only in f"{s[0]}:{s[1]}"])
    if not chosen:
        sys.exit("no barrier found in any kernel")
    missed, rows = 0, []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        copy_kernels(folder, every_site)
        library = build(cxx, folder, units_with([s[0] for _, s in chosen]))
        families = sorted({family_of(s[0]) for _, s in chosen})
        for family, said in zip(families, pool.map(lambda f: judge(verify, library, f, 0, False), families)):
            if said:
                sys.exit(f"the unchanged {family} kernels fail: {said}")
        verdicts = pool.map(lambda x: judge(verify, library, family_of(x[1][0]), x[0], everything), chosen)
        for (_, (path, number, _, what)), said in zip(chosen, verdicts):
            text = open(path).readlines()[number - 1].strip()
            harmless = None if said else why_harmless(path, number)
            print(f"{path}:{number}: {what}: {' | '.join(said) if said else harmless or 'NOT CAUGHT'}", flush=True)
            missed += not said and not harmless
            rows.append((path, number, text, said, harmless))
    print(f"{len(rows)} of {len(every_site)} removals, {missed} not caught")
    if write:
        write_table(write, rows)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
