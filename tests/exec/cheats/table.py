"""The cheats, a row each: what it exploits, which layers keep it off, how it must end, and without which layers it passes.

Layers are those of gpu/wall/layers.c. A row that no layer catches alone names all that must be left out together: each of them
is enough. A row without such a list is kept off by how the judge is built, which no option can switch off, and `always` says how."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


def case(**keys: Any) -> str:
    """A small forward case; keys change it."""
    plain = {"dtype": "f32", "heads_q": 2, "seqlen_q": 24, "seqlen_k": 40, "head_dim": 16, "backward": False}
    return json.dumps({**plain, **keys})


#: How a verdict begins that counts wrong elements.
WRONG = r"\b(o|lse)[^:]*: [\d,]+ of [\d,]+ bad"
REPLAY = r"answered as for other data"
PLAIN = case()


def many(n: int, **keys: Any) -> tuple[str, ...]:
    """So many cases of one shape. Which trap stands between a case's runs is drawn: what only one kind of them catches needs some."""
    return tuple(case(data_seed=str(1000 + i), **keys) for i in range(n))


def lengths(n: int, **keys: Any) -> tuple[str, ...]:
    """So many cases, each of another shape."""
    return tuple(case(seqlen_k=40 + i, **keys) for i in range(n))


#: So many keys of so small values that every element of O is below 1e-2.
FLAT = case(seqlen_k=4096, fill="small")
#: The key before counts for so little that O is almost V.
NEXT = case(seqlen_q=32, seqlen_k=32, mask={"type": "window", "left": 1, "right": 0}, alibi={"slopes": [7, 7.5]}, fill={"default": "small", "v": "normal"})
SHORT = case(seqlen_q=24, seqlen_k=8, mask={"type": "causal"})  # rows without a key
BACK = case(backward=True)
NARROW_WINDOW = case(seqlen_q=40, mask={"type": "window", "left": 8, "right": 0})
WIDE = case(dtype="f16", heads_q=4, seqlen_q=64, seqlen_k=128, head_dim=64)


#: Which hidden cases there are is drawn, and only some have what these cheats cannot do: one secret, the same in every run.
DRAWN = ("--secret", "5c" * 32)
#: Instead of layers: it passes where the candidate is trusted.
TRUSTED = ("untrusted",)


#: A wrong answer is wrong in a trap and in a hidden case too.
SEEN = ("bounds", "replay", "hidden")


@dataclass(frozen=True)
class Row:
    id: str  # the exploit's kind; several rows may try the same
    child: str  # a class of answers.py, evasions.py, replays.py, walls.py, endings.py or redteam.py
    text: str  # the exploit, in a line
    state: str  # how its case ends: FAIL, OOB, ...; "exit 1": the whole run; PASS: it behaves, and its effect does not show
    reason: str  # a regular expression, found in what is said of that case
    without: tuple[str, ...] = ()  # the layers to leave out, with which it passes
    cases: tuple[str, ...] = (PLAIN,)
    always: str = ""  # instead of `without`: why nothing can switch it off
    argument: str = ""  # of the child: {victim}, {port}, {token} ... are filled in
    options: tuple[str, ...] = ()
    effect: str = ""  # what shows of it outside: "victim", "daemon", "text"
    runs: int = 1  # how often it is run; the last counts
    claims: str = "f32"  # element types and features that it claims; "backward" is one here
    record: str = ""  # an honest child that is run before, trusted, with the same argument


ROWS = [
    # A: wrong answers
    Row("A1", "Zeros", "all zeros, where answers are small", "FAIL", WRONG, SEEN, (FLAT,)),
    Row("A1", "Constant", "one constant for every element", "FAIL", WRONG, SEEN, (FLAT,)),
    Row("A2", "MeanOfV", "the mean of V", "FAIL", WRONG, SEEN, (FLAT,)),
    Row("A2", "CopyOfV", "V itself", "FAIL", WRONG, SEEN, (NEXT,), claims="f32,window,alibi"),
    Row("A2", "OtherHead", "another head's answer", "FAIL", WRONG, SEEN, (FLAT,)),
    Row("A3", "AllNan", "NaN everywhere, which comparisons skip", "FAIL", r"NaN/Inf where they must not be", (), always="the class of every element is compared first"),
    Row("A3", "AllInfinite", "infinity everywhere", "FAIL", r"NaN/Inf where they must not be", (), always="the class of every element is compared first"),
    Row("A4", "OneElement", "one element of all is wrong, a little", "FAIL", r"\bo: 1 of [\d,]+ bad", SEEN),
    Row("A4", "FivePercent", "5 % of the elements are wrong, a little", "FAIL", WRONG, SEEN),
    Row("A5", "FirstTile", "only the first tile is computed", "FAIL", "never written", ("poison", *SEEN), (FLAT,)),
    Row("A5", "SkipsEmptyRows", "rows without a key are not written", "FAIL", "never written", ("poison",), (SHORT,), claims="f32,causal,bottom_right"),
    Row("A6", "AddsToOutputs", "adds to what the outputs hold", "FAIL", "NaN/Inf where they must not be", ("poison",)),
    Row("A7", "Bf16Operands", "an f32 problem in bf16, declared so", "FAIL", WRONG, ("profile",)),
    Row("A7", "Tf32Operands", "an f32 problem in tf32, declared so", "FAIL", WRONG, ("profile",)),
    Row("A7", "F16Sums", "f16 accumulators, declared so", "FAIL", WRONG, ("profile",), (case(dtype="f16", heads_q=1, seqlen_q=16, seqlen_k=512, fill={"default": "logits_4x", "v": "v_offset"}),), claims="f16"),
    Row("A7", "Bf16Scores", "scores rounded to bf16, declared so", "FAIL", WRONG, ("profile",), (case(fill="logits_4x"),)),
    Row("A8", "MoreExact", "P in the element type is declared, and f32 computed", "PASS", "o is more exact than flash", (), (case(dtype="f16", heads_q=4, seqlen_q=128, seqlen_k=64, head_dim=64),), always="a right answer is right; a note says that it is finer than declared", claims="f16", options=("-v",)),
    Row("A9", "IgnoresSoftcap", "leaves out the softcap", "FAIL", WRONG, SEEN, (case(softcap=50),), claims="f32,softcap"),
    Row("A9", "IgnoresAlibi", "leaves out ALiBi", "FAIL", WRONG, SEEN, (case(alibi={"slopes": [0.00002, 0.00001]}),), claims="f32,alibi"),
    Row("A9", "IgnoresWindow", "takes a window for causal", "FAIL", WRONG, SEEN, (case(fill="staircase_up", mask={"type": "window", "left": 20, "right": 0}),), claims="f32,window,bottom_right"),
    Row("A9", "IgnoresDlse", "leaves out the LSE's gradient", "FAIL", r"\bdq.*bad", SEEN, (case(backward=True, grad_lse=True, fill={"default": "small"}),), claims="f32,backward,dlse"),
    Row("A9", "IgnoresScale", "takes the usual scale", "FAIL", WRONG, SEEN, (case(scale=0.2502),)),
    Row("A10", "NoMaximum", "no maximum in the softmax", "FAIL", "bad", ("hidden",), many(48), options=DRAWN),
    Row("A10", "ClampedScores", "scores clamped at 20", "FAIL", "bad", ("hidden",), many(48), options=DRAWN),
    Row("A10", "FirstTileMaximum", "the maximum of the first tile only", "FAIL", "NaN/Inf where they must not be", (), (NARROW_WINDOW,), always="a window hides the first tile from some rows", claims="f32,window"),
    Row("A11", "Multiples", "right for multiples of the tile only", "FAIL", "bad", ("hidden",), many(24, seqlen_k=64), options=DRAWN),
    Row("A11", "KnownShapes", "right for the named shapes only", "FAIL", WRONG, ("hidden",), many(24, seqlen_q=64, seqlen_k=64), options=DRAWN),
    Row("A12", "WrongLater", "right in a check's two calls, then wrong", "FAIL", WRONG, ("replay", "hidden", "fresh")),
    Row("A12", "WrongEverySeventh", "wrong in every seventh call", "FAIL|NONDETERMINISTIC", r"elements (out of bounds|differ)|bad", ("replay", "hidden", "fresh")),
    Row("A13", "Racy", "the last bits depend on chance", "NONDETERMINISTIC", "differ between two runs", ("repeat", "replay", "fresh")),
    Row("A13", "RacyGradient", "likewise, declared as order of sums", "NONDETERMINISTIC", "differ between two runs", ("profile",), (BACK,), claims="f32,backward"),
    Row("A14", "ReadsPast", "reads past K, and takes it for 0", "FAIL", "NaN/Inf where they must not be|bad", (), always="guards are NaN"),
    Row("A14", "WritesPast", "writes past the end of O", "OOB", "back guard of o", ("guards",)),
    Row("A15", "WritesInput", "zeroes V, and answers 0", "INPUT_MODIFIED", "input v was modified", ("guards", *SEEN), (FLAT,)),
    Row("A15", "CheapensInput", "leaves K scaled by half", "INPUT_MODIFIED", "input k was modified", ("guards",)),
    Row("A16", "RefusesEverySecond", "refuses every second case", "FAIL", "not today", ("contract",), tuple(case(seqlen_k=n) for n in (17, 33, 40))),
    Row("A16", "RefusesWide", "finds late that it cannot", "FAIL", "no such head dim", ("contract", "final"), (PLAIN, case(head_dim=64))),
    Row("A17", "Honest", "claims no features", "exit 1", "required, but not judged", (), (PLAIN, SHORT), always="`--require` counts what was not judged", options=("--require", "all"), claims="f32"),
    Row("A17", "OtherClaims", "claims something else in each hello", "FAIL|CRASH|ERROR", "hello|contract", ("contract",), lengths(4)),
    Row("A18", "TruncatedP", "P truncated, the widest bounds declared", "FAIL", "rms|bad", ("profile",), (WIDE,), claims="f16"),
    Row("A18", "ManySplits", "a million splits declared", "FAIL", "bad", ("profile",)),
    Row("A19", "TruncatedTwice", "exact where odd statistics are tried again", "FAIL", "rms|bad", ("final", "replay", "hidden", "fresh"), (WIDE,), claims="f16"),
    Row("A20", "ForwardOnly", "answers a backward case with its forward", "FAIL", "dq", ("contract",), (BACK,), claims="f32,backward"),
    Row("A20", "LseOnly", "delivers the LSE alone", "FAIL", r"\bo\b", ("contract",)),
    Row("A21", "SkipsTiles", "skips tiles below e^-8 of the maximum", "FAIL", WRONG, SEEN, (case(fill="logits_4x", seqlen_k=256),)),
    # Whether a tile lies between the two depends on the data: several cases, so that one of them has such a row.
    Row("A21", "SkipsTiles12", "skips tiles below e^-12", "FAIL", WRONG, SEEN, tuple(case(fill="logits_4x", seqlen_k=256 + i) for i in range(8))),
    # B: right answers that were not computed
    Row("B1", "Stale", "writes nothing and hopes for old memory", "FAIL", REPLAY, ("poison", "repeat", "fresh", *SEEN), (FLAT,)),
    Row("B2", "SearchesHeap", "looks for the expected answer in its heap", "FAIL", "no expected answer among", (), always="no expected value exists while the child runs"),
    Row("B3", "SearchesMemory", "looks for it in the shared memory", "FAIL", "no expected answer in", (), always="no expected value exists while the child runs"),
    Row("B4", "ByPointer", "a cache by addresses and shapes", "FAIL", REPLAY, ("replay", "hidden"), lengths(8)),
    Row("B5", "ByShape", "a cache by shape", "FAIL", REPLAY, ("replay", "hidden"), lengths(8)),
    Row("B5", "BySamples", "a cache by a hash of samples", "FAIL", REPLAY, ("replay",), many(24, seqlen_k=512)),
    Row("B5", "KeptKeys", "what is made of K and V is kept by a hash of q", "FAIL", REPLAY, ("replay",), many(24)),
    Row("B5", "WithoutScale", "a cache by all tensors, but not the scalars", "FAIL", REPLAY, ("replay",), many(24)),
    Row("B6", "BySum", "a cache by the sum of a row", "FAIL", REPLAY, ("replay",), many(24)),
    Row("B6", "OnDisk", "a cache in files", "FAIL", REPLAY, ("replay", "hidden"), lengths(8), argument="{token}"),
    Row("B7", "GuessesSeed", "knows the recipe, guesses the seed", "FAIL", "no data seed up to 1000", ("seeds", "hidden", "replay"), (case(fill="uniform"),)),
    Row("B7", "ReadsCommandLine", "reads the cases from the judge's command line", "FAIL", "no ancestor has cases", ("processes",)),
    Row("B8", "Bank", "a bank of answers to the public cases", "FAIL", "the bank has no such inputs", ("seeds", "hidden", "replay"), argument="{bank}", record="Recorder"),
    Row("B8", "ReadsGolden", "reads the judge's golden files", "FAIL", "no file of the judge", ("files",), argument="{golden}"),
    Row("B9", "AsksJudge", "lets the judge's program compute", "FAIL", "the judge's program does not run", ("files",), argument="{program}"),
    Row("B10", "CallsLibrary", "a decoy kernel, and a library that answers, which `--hide` names", "FAIL", "there is no library", ("files",), argument="{library}", options=("--hide", "{library}")),
    Row("B11", "AsksServer", "lets a server compute", "FAIL", "no server can be reached", ("network",), argument="{port}"),
    # C: against the judge
    Row("C1", "PlantsModule", "plants a module on the judge's search path", "FAIL", r"PlantsModule: \w+( \w+)*", ("files",), argument="{victim}", effect="victim"),
    Row("C2", "patcher.so", "a plugin in the judge's own process", "exit 2", "no hello: the child ended|does not judge", TRUSTED),
    Row("C3", "ReadsJudge", "reads the judge's memory", "FAIL", r"no process of the judge|ReadsJudge: \w+( \w+)*", ("processes", "seccomp")),
    Row("C3", "TracesJudge", "attaches to the judge", "FAIL", r"no process of the judge|TracesJudge: \w+( \w+)*", ("processes", "seccomp")),
    Row("C3", "TracesFork", "traces a process of its own", "FAIL", r"TracesFork: \w+( \w+)*", ("seccomp",)),
    Row("C3", "ReadsFork", "reads another process by process_vm_readv", "FAIL", r"ReadsFork: \w+( \w+)*", ("seccomp",)),
    Row("C3", "NestsNamespaces", "becomes root of its own namespace", "FAIL", r"NestsNamespaces: \w+( \w+)*", ("seccomp", "processes")),
    Row("C3", "AsksRing", "opens an io_uring", "FAIL", r"AsksRing: \w+( \w+)*", ("seccomp",)),
    Row("C4", "ReopensPipes", "opens the worker's pipe for writing", "FAIL", "no process of the judge|no pipe", ("processes",)),
    Row("C5", "StopsJudge", "sends the judge a signal", "FAIL", "no process of the judge", ("processes",)),
    Row("C5", "KillsWorker", "kills the worker, and is asked again", "FAIL", "no process of the judge", ("processes", "final", "files"), argument="{token}"),
    Row("C6", "LeavesDaemon", "leaves a process behind", "PASS", "", ("processes",), argument="{token}", effect="daemon"),
    Row("C7", "RewritesJudge", "overwrites the judge's program", "FAIL", r"RewritesJudge: \w+( \w+)*", ("files",), argument="{victim}", effect="victim"),
    Row("C8", "LinksExchange", "a link in the exchange folder", "exit 2", "files", ("memory",), argument="{victim}", effect="victim"),
    Row("C9", "Shrinks", "cuts the region off", "FAIL", r"Shrinks: \w+( \w+)*", (), always="the region is sealed against it in every mode"),
    Row("C9", "Grows", "makes the region huge", "FAIL", r"Grows: \w+( \w+)*", ("memory", "limits")),
    Row("C9", "LateAnswer", "writes after it has answered", "FAIL|OOB|NONDETERMINISTIC", "never written|nan|out of bounds", (), always="what it has not written when it answers is NaN"),
    Row("C10", "ForgesText", "prints a summary of its own", "FAIL", "it has printed a summary", ("stderr",), effect="text"),
    Row("C11", "SeesEnvironment", "sees the judge's environment", "FAIL", "no variable of the judge's", ("environment",)),
    Row("C11", "KnowsHost", "knows the machine's name", "FAIL", "not the machine that it knows", ("processes",), argument="{host}"),
    Row("C12", "Exits", "ends with status 0 before it answers", "CRASH", "ended with status 0", (), always="no answer is a failure"),
    Row("C13", "Hangs", "hangs in its third call", "HANG", "", ("replay", "hidden", "fresh"), options=("--timeout", "4")),
    Row("C14", "ClearsRegion", "resets what it shares with the judge, where errors might be counted", "FAIL|OOB|INPUT_MODIFIED", WRONG, (), always="errors are counted in the judge's own memory, on the host"),
    Row("C15", "EndlessLine", "a line without an end", "CRASH", "does not end", (), always="lines have a longest length"),
    Row("C15", "DeepAnswer", "a hundred thousand brackets", "CRASH", "no answer", (), always="the parser has a deepest level"),
    Row("C15", "OddNumbers", "numbers that are none", "CRASH", "no answer|lacks", (), always="an answer must be JSON"),
    Row("C15", "TwoAnswers", "answers the next request before it comes", "CRASH", "", (), always="an answer must have the id of the request at hand"),
    Row("C15", "Forks", "starts 700 processes", "FAIL", "Forks: can't start new thread", ("limits",)),
    Row("C15", "FillsDisk", "a file of 3 GiB", "FAIL", r"FillsDisk: \w+( \w+)*", ("limits", "files"), argument="{token}"),
    Row("C15", "EatsMemory", "1.5 GiB of memory, where the judge gives it 512 MiB", "CRASH|FAIL", "it wanted more memory than", ("limits",), options=("--memory-limit", "512M")),
    Row("C15", "DumpsCore", "asks for core dumps", "FAIL", r"DumpsCore: \w+( \w+)*", ("limits",)),
    Row("C16", "LeavesNotes", "leaves notes for its next run", "FAIL", "no notes of an earlier run", ("files",), argument="{token}", runs=2),
    Row("C17", "BuildsWithJudge", "a build that copies the judge's files", "FAIL", "its build finds no file of the judge", ("files",), argument="{golden}|{token}"),
    # R: invented against the mode
    Row("R1", "RemembersChance", "a racy kernel that remembers its answers", "NONDETERMINISTIC|FAIL", "differ", ("fresh",)),
    Row("R2", "SaysError", "blames the machine", "FAIL|CRASH", "the device is lost", (), always="an error is a failure of who reports it"),
    Row("R4", "DeclaresLse", "delivers the LSE alone, declared so", "exit 2", "promises no o", (), always="a contract must promise O"),
    Row("R5", "SignalsPeer", "signals the process at the other end of its socket", "FAIL", r"SignalsPeer: \w+( \w+)*", ("processes", "seccomp")),
    Row("R6", "SendsFiles", "passes open files to the judge", "FAIL", r"SendsFiles: \w+( \w+)*", (), always="what it reads requests from can only be read"),
    Row("R7", "FindsFiles", "looks for inherited files", "FAIL", "no other file is open", (), always="all others are closed"),
    Row("R8", "ReadsInit", "reads how it was started", "FAIL", "no command line tells", ("processes",)),
    Row("R9", "LongName", "a kernel's name of 10 MB", "CRASH", "does not end", (), always="lines have a longest length"),
    Row("R10", "LongHello", "a hello of 64 MB", "exit 2", "does not end", (), always="lines have a longest length"),
    Row("R11", "NamesItself", "control codes and markup as its name", "PASS", "", (), always="names are cleaned", effect="codes"),
    Row("R12", "ReadsCgroup", "looks at the machine's files and groups", "FAIL", "nothing of the machine", ("files",)),
    Row("R13", "MapsKernel", "userfaultfd", "FAIL", r"MapsKernel: \w+( \w+)*", ("seccomp",)),
    Row("R15", "WrongForLong", "wrong beyond 3000 keys, and claims any number", "FAIL", WRONG, ("hidden",)),
    Row("R16", "RoughGradient", "declares a coarser dS", "FAIL", "d[qk][^:]*: ", SEEN, (case(backward=True, fill="small"),), claims="f32,backward"),
]  # fmt: skip

#: What cannot be tested so, or is not caught, and why.
OPEN: list[tuple[str, str, str]] = [
    ("A8", "is more exact than declared, and too few elements show it", "a right answer is right. The note takes 4096 elements whose error is mostly that of the declared rounding; which instructions ran, no answer tells"),
    ("A14", "writes a guard's own value back, or restores what it has overwritten", "nothing differs when the judge looks"),
    ("B10", "a decoy kernel beside a library that `--hide` does not name, or that the candidate has copied into its own files", "answers are judged, not where they come from; reading the source tells"),
    ("B11", "computes on the CPU what should run on the GPU", "likewise; its time shows it"),
    ("C14", "the same on a GPU", "nothing of the judge is in the candidate's GPU memory: it has no counter there, and computes on the host"),
    ("C17", "attacks the judge through a build that ran before", "the judge builds nothing. A build that the command of `exec:` begins with is behind the wall; one that was made before it is not"),
    ("R", "wrong for one input in 2^40, which it knows (`OddTrigger`)", "no test by examples sees it; reading the source may"),
    ("R", "declares that rows without a key hold anything, and leaves garbage there (`DeclaresAny`)", "it is what it has declared: the contract in the report says so"),
    ("R", "declares an LSE in bf16, whose bound is as wide (`RoughLse`)", "likewise"),
    ("R", "declares in its limits that it takes the named shapes only (`OnlyTheNamed`)", "likewise; `--require` says what a contract must have"),
    ("R", "locks a file of the system: another process of the same candidate sees the lock, a word passed on (`LocksFiles`)", "no data come that way; it gains nothing while every answer is judged"),
    ("A10", "fits what random data look like (`NoMaximum`, `ClampedScores` ...)", "which hidden cases there are is drawn: a run of few cases may have none that tells"),
    ("R", "reads the clock or the machine's load to learn what other processes do", "clocks cannot be hidden; it gains nothing while every answer is judged"),
]
