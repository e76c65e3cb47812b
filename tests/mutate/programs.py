"""Which of the project's own tests judge a subject.

A test is a command. "@NAME" in it stands for a program of the build, which is linked again with the mutated sources."""
from dataclasses import dataclass

import casefiles

GOLDEN = ("golden", "check", "tests/golden/reference", "--cases", "tests/golden/reference.json")
RUN = ("run", "--jobs", "1", "-q", "--no-progress", "--fail-fast", "--schedule-seed", "1")


@dataclass(frozen=True)
class Program:
    name: str
    words: tuple

    def targets(self):
        return [w[1:] for w in self.words if w.startswith("@")]


def tests(*names):
    """Programs that a test is by itself."""
    return [Program(name, (f"@test_{name}",)) for name in names]


def script(name, path, *targets):
    return Program(name, ("bash", path, *(f"@{t}" for t in targets)))


def judged(name, backend="host"):
    """A case file of which every case passes."""
    return Program(f"cases/{name} {backend}", ("@fa-verify", *RUN, "--backend", backend, "--cases", f"cases/{name}.json"))


GOLDENS = Program("golden", ("@fa-verify", *GOLDEN))
KERNELS = tests("p_debug", "flex_exact", "flex_lists", "flex_forward", "flex_backward", "kv_kernels", "cache_steps", "host_kernels", "host_flash",
                "host_backward", "hopper_backward", "visible_nan", "wide", "kernel_eight")
PLAN = tests("kv", "kv_splits", "fa", "fa_flex", "host_backend")
HELD = [Program(f"ref_recorded {f}", ("@test_ref_recorded", f)) for f in (*casefiles.RECORDED, "drawn")]
BY_ITSELF = [judged(f, "ref-f32") for f in casefiles.RECORDED]
REF = tests(*(f"ref_{t}" for t in ("values", "beyond", "edges", "places", "terms", "mods_edges", "signs", "far_rows", "mixed", "delta", "dbuffer", "merge", "row_errors", "sets", "threads", "rows", "narrow", "narrow_terms", "largest", "steps", "by_hand", "formula", "element", "twists", "memory", "lanes",
                                   "expr", "rows_bounds", "bounds", "dropout", "mla", "serving", "expr_functions")),
            "compare", "compare_edges", "compare_memory", "compare_drawn", "compare_mutants", "compare_vacuous", "compare_map", "compare_where", "blas_core", "gemm")
DATA = tests("tensors_edges", "islands", "data_held", "device_fill", "tensor", "fill", "tables", "fill_values", "safetensors", "parts", "build", "build_cache", "data_edges", "data_memory", "row_loops")
CODEC = tests("count", "codec_edges", "case_errors", "case_roundtrip", "case_recorded", "case_lines", "case_file", "case_hostile", "case_memory", "case_refused")
WHOLE = tests("journal", "judging_edges", "judges_agree", "judges_asked", "one_case", "traps_between", "run_files", "report_added", "device_fill", "ref_f32", "sample", "sample_exact", "delivered", "empty_rows", "padded_lse", "flex", "flex_planted", "shrink", "turns", "worker")
JUDGED = tests("ref_f32", "sample", "sample_exact", "padded_lse", "flex", "flex_planted", "flex_slope", "explain_hypotheses", "report_maps")
TWO = [Program("two_judges few", ("@test_two_judges", "few")), *tests("judge_trial", "judge_trial_edges", "two_judges", "device_judge", "ref_f32_parts", "untrusted_narrow")]
LAWS = tests("laws_held", "runs_memory", "laws", "laws_class", "laws_skips", "laws_bound", "laws_compare", "within", "cascade")
RECORDED = Program("recorded", ("@test_recorded", "@fa-verify", "tests/golden"))
RUNS = [script("cli", "tests/fuzz/test_cli.sh", "fa-verify", "faulty_verify"),
        script("require", "tests/fuzz/test_require.sh", "faulty_verify"),
        script("sample_cli", "tests/fuzz/test_sample.sh", "fa-verify", "faulty_verify"),
        script("waivers", "tests/fuzz/test_waivers.sh", "faulty_verify"),
        script("campaign", "tests/fuzz/test_campaign.sh", "fa-verify", "faulty_verify"),
        script("ci_runs", "tests/ci/test_runs.sh", "faulty_verify"),
        script("untrusted_rules", "tests/untrusted/test_rules.sh", "fa-verify"),
        script("untrusted_run", "tests/untrusted/test_run.sh", "fa-verify"),
        script("random_profiles", "tests/fuzz/test_random_profiles.sh", "fa-verify", "faulty_verify"),
        script("case_names", "tests/fuzz/test_case_names.sh", "fa-verify"),
        script("exec", "tests/gpu/test_exec.sh", "fa-verify"),
        script("exec2", "tests/gpu/test_exec2.sh", "fa-verify"),
        script("session", "tests/fuzz/test_session.sh", "fa-verify", "faulty_verify"),
        script("judge_lies", "tests/device/test_lying.sh", "fa-verify", "lying_verify"),
        script("forks", "tests/gpu/test_forks.sh", "fa-verify")]
PAGES = [Program(f"sessions {page}", ("python3", "tests/fuzz/test_sessions.py", "@fa-verify" if page == "untrusted" else "@faulty_verify", page))
         for page in ("verdicts", "random", "resumed", "known", "tiers", "untrusted")]
OF = {
    "kernels": KERNELS,
    "plan": [*PLAN, *KERNELS],
    "ref": [*REF, *HELD, *JUDGED, *TWO, GOLDENS, *(judged(f) for f in ("gqa", "alibi", "softcap", "mixed", "merge", "sinks")),
            *BY_ITSELF, *LAWS, RUNS[0], RUNS[2]],
    "cases": [*DATA, *CODEC, *HELD, *BY_ITSELF, *tests("ref_values", "ref_merge", "ref_mla", "ref_serving", "ref_f32", "generate", "delivered",
                                                        "expr", "laws", "untrusted_group", "two_judges", "shrink", "report"),
              *(judged(f) for f in ("kvcache", "gqa", "edge")), RECORDED, GOLDENS, RUNS[0], RUNS[1], RUNS[7], RUNS[8]],
    "fuzz": [*WHOLE, *LAWS, *TWO, *BY_ITSELF, *tests("ci_tier", "untrusted_group", "delivered", "bench_pairs", "flex_slope",
                                                     "explain_hypotheses", "report_untrusted", "report_claims", "report_causes", "report", "report_maps", "report_merge",
                                                     "report_causes_report", "generate", "judge_process", "judge_canaries", "option_rows", "session_memory", "session_kept", "ci_ask", "lanes_usual"),
             *(judged(f) for f in ("kvcache", "gqa", "edge", "merge", "topk")), RECORDED, GOLDENS, *PAGES, *RUNS],
}
OF["formulas"] = OF["ref"]


def chosen(what, names=None):
    """Those of these names; None: all."""
    unique = {p.name: p for p in OF[what]}
    return [p for p in unique.values() if names is None or p.name in names]
