"""check: verdicts about kernels of this process, and what they say."""

import kernels
import numpy as np
import pytest

import fa_verify
from fa_verify._arrays import Host

SMALL = "^(square_(15|16|17|65|127)|gqa.*)$"


def test_a_right_kernel_passes_every_case() -> None:
    report = fa_verify.check(kernels.attention, "causal", require="all")
    assert report.passed == report.total == 90


def test_a_kernel_that_is_only_a_function_is_judged_on_plain_attention() -> None:
    def plain(call):
        return kernels.softmax_v(call, kernels.scores(call))

    assert fa_verify.check(plain, {"seqlen_q": 30, "dtype": "f32"}).passed == 1


def test_random_cases_come_from_a_profile() -> None:
    report = fa_verify.check(kernels.attention, "causal", count=12, seed=5)
    assert report.total == 12 and report.passed > 0


@pytest.mark.parametrize(
    ("kernel", "tensor", "words"),
    [(kernels.scaled, "o", "all over"), (kernels.without_last_key, "o", "k"), (kernels.lse_in_base_2, "lse", "140 of 140")],
)
def test_a_wrong_kernel_fails_and_the_text_says_where(kernel: fa_verify.Kernel, tensor: str, words: str) -> None:
    with pytest.raises(fa_verify.Mismatch) as failed:
        fa_verify.check(kernel, {"name": "case", "dtype": "f32", "seqlen_q": 70, "heads_q": 2, "mask": {"type": "causal"}})
    text = str(failed.value)
    assert text.startswith(f"{kernel.name}: passed 0, failed 1") and f"  {tensor}: " in text and words in text
    assert f"again: fa_verify.check({kernel.name}, cases='" in text and "connect:" not in text.split("note:")[0]


def test_the_last_key_is_missed_in_the_last_row_alone() -> None:
    with pytest.raises(fa_verify.Mismatch) as failed:
        fa_verify.check(kernels.without_last_key, {"dtype": "f32", "seqlen_q": 70, "mask": {"type": "causal"}})
    assert "q == 69" in str(failed.value) or "q >= 69" in str(failed.value)


def test_a_failure_can_be_run_again_from_its_text() -> None:
    with pytest.raises(fa_verify.Mismatch) as first:
        fa_verify.check(kernels.scaled, {"name": "again", "seqlen_q": 9})
    (failure,) = first.value.report.failures
    with pytest.raises(fa_verify.Mismatch) as second:
        fa_verify.check(kernels.scaled, failure.case)
    assert second.value.report.failures[0].tensors == failure.tensors


def test_a_kernel_without_lse_is_judged() -> None:
    assert fa_verify.check(kernels.without_lse, "causal", filter=SMALL, require="all").passed > 0


def test_an_lse_in_base_2_that_is_declared_passes() -> None:
    assert fa_verify.check(kernels.honest_base_2, "causal", filter=SMALL, require="all").passed > 0


def test_gradients_are_judged() -> None:
    assert fa_verify.check(kernels.with_gradients, "causal", filter=SMALL, require="all").raw["summary"].get("backward_left_out", 0) == 0


def test_a_write_into_an_input_is_found() -> None:
    @fa_verify.kernel(lse="natural", arithmetic="recorded")
    def kernel(call):
        result = kernels.attention(call)
        call.q[0, 0, 0, 0] = 7
        return result

    with pytest.raises(fa_verify.Mismatch) as failed:
        fa_verify.check(kernel, {"dtype": "f32", "seqlen_q": 5})
    assert failed.value.report.failures[0].state == "INPUT_MODIFIED"


def test_outputs_may_be_written_in_place() -> None:
    @fa_verify.kernel(lse="natural", arithmetic="recorded")
    def kernel(call):
        call.empty("o")[...], call.empty("lse")[...] = kernels.attention(call)

    strides = {"o": {"gap": [64, 8, 8], "offset": 3}}
    for dtype in ("f16", "bf16", "f32"):
        assert fa_verify.check(kernel, {"dtype": dtype, "seqlen_q": 5, "heads_q": 2, "strides": strides}).passed == 1


def test_a_refusing_kernel_is_no_success() -> None:
    for require in (None, "all", "50%", 0.5):
        with pytest.raises(fa_verify.NotJudged, match="not today"):
            fa_verify.check(kernels.refusing, {"seqlen_q": 5}, require=require)


def test_less_than_required_is_no_success() -> None:
    cases = [{"seqlen_q": 5}, {"seqlen_q": 5, "softcap": 3}]
    assert fa_verify.check(kernels.attention, cases, require="50%").skipped == 1
    with pytest.raises(fa_verify.NotJudged, match="1 of 2 cases were judged, 51% required\n.*no softcap"):
        fa_verify.check(kernels.attention, cases, require="51%")


def test_only_the_wanted_types_are_judged() -> None:
    report = fa_verify.check(kernels.attention, [{"seqlen_q": 5, "dtype": dtype} for dtype in ("f16", "bf16", "f32")], dtype="bf16")
    assert (report.passed, report.skipped) == (1, 2)


def test_an_exception_fails_the_case_and_names_its_line() -> None:
    @fa_verify.kernel(lse="natural")
    def kernel(call):
        return kernels.attention(call)[0][:, 1:], None

    with pytest.raises(fa_verify.Mismatch, match=r"o has shape \[1, 4, 1, 64\], the call needs \[1, 5, 1, 64\]"):
        fa_verify.check(kernel, {"seqlen_q": 5})

    @fa_verify.kernel(lse="natural")
    def raising(call):
        return np.zeros((0,)).max()

    with pytest.raises(fa_verify.Mismatch, match=r"ValueError: zero-size array .* \(test_check.py:\d+: return np.zeros"):
        fa_verify.check(raising, {"seqlen_q": 5})


@pytest.mark.parametrize("exception", [fa_verify.Unsupported, NotImplementedError])
def test_a_kernel_may_refuse_late(exception: type[Exception]) -> None:
    @fa_verify.kernel(lse="natural")
    def kernel(call):
        raise exception("no rows of 5")

    with pytest.raises(fa_verify.NotJudged, match="1 skipped: .*no rows of 5"):
        fa_verify.check(kernel, {"seqlen_q": 5})


def test_a_write_outside_that_the_kernels_place_has_found_is_reported() -> None:
    class Place(Host):
        def finish(self, tensors):
            return "oob", "o: written 8 bytes past its end, on the device"

    kernel = fa_verify.kernel(lse="natural")(kernels.attention.function)
    kernel.place = lambda: Place("numpy")
    with pytest.raises(fa_verify.Mismatch, match="OOB .*o: written 8 bytes past its end, on the device"):
        fa_verify.check(kernel, {"name": "case", "seqlen_q": 5})


@pytest.mark.parametrize("declared", [True, False])
def test_a_kernel_that_hangs_does_not_stop_the_caller(declared: bool) -> None:
    """Also where a probe hangs first, because nothing is declared."""
    import threading

    release = threading.Event()
    all_of_it = {"lse": {"base": "e", "scaled": True, "empty": "as_case"}, "empty_o": "0", "arithmetic": "recorded"}

    @fa_verify.kernel(**(all_of_it if declared else {"lse": True}))
    def kernel(call):
        release.wait(30)
        return kernels.attention(call)

    with pytest.raises(fa_verify.Mismatch) as failed:
        fa_verify.check(kernel, [{"seqlen_q": 5}], timeout=1)
    release.set()
    assert failed.value.report.failures[0].state == "HANG"


def test_a_case_that_cannot_be_is_the_callers_mistake() -> None:
    with pytest.raises(fa_verify.MachineFailed, match="heads_q"):
        fa_verify.check(kernels.attention, {"heads_q": 0})
    with pytest.raises(ValueError, match="neither a case file nor a profile"):
        fa_verify.check(kernels.attention, "no_such_cases")


def test_values_of_bf16_are_exact_and_rounded_to_nearest() -> None:
    seen = []

    @fa_verify.kernel(lse="natural", arithmetic="recorded")
    def kernel(call):
        seen.append(call.q.copy())
        return kernels.attention(call)

    fa_verify.check(kernel, {"seqlen_q": 5, "dtype": "bf16"})
    last = seen[-1]  # a probe came before the case
    assert last.dtype == np.float32 and np.any(last) and not np.any(last.view(np.uint32) & 0xFFFF)
