"""The decorator: what it makes of what is declared."""

import kernels
import pytest

import fa_verify
from fa_verify._features import FEATURES
from fa_verify._session import Session


def declared(**options):
    return fa_verify.kernel(**options)(lambda call: None).hello()


def test_nothing_is_claimed_that_is_not_declared():
    hello = declared()
    assert hello["features"] == [] and hello["outputs"] == ["o"] and hello["passes"] == ["forward"] and "lse" not in hello
    assert hello["families"] == ["flash", "memeff"] and "arithmetic" not in hello


def test_every_feature_is_a_word_that_fa_verify_knows():
    everything = fa_verify.kernel(**dict.fromkeys(FEATURES, True), lse="natural", arithmetic="recorded", backward=True)
    assert fa_verify.check(everything(kernels.softmax_of), {"seqlen_q": 5, "backward": False}).passed == 1


def test_what_goes_with_something_comes_with_it():
    assert declared(causal=True)["features"] == ["causal", "bottom_right"]
    assert declared(window=True, top_left=True, bottom_right=False)["features"] == ["window", "top_left"]
    assert declared(score_mod=True)["families"] == ["flash", "memeff", "flex"]
    assert declared(paged=True)["families"] == ["flash", "memeff", "kvcache"]
    assert declared(backward=True, bias=True, bias_grad=True, lse=True)["outputs"] == ["o", "lse", "dq", "dk", "dv", "dbias"]


def test_sizes_and_conventions():
    hello = declared(head_dim={"among": [64, 128]}, limits={"batch": {"max": 4}}, lse={"base": "2", "layout": "padded"}, empty_o="nan")
    assert hello["limits"] == {"batch": {"max": 4}, "head_dim": {"among": [64, 128]}}
    assert hello["lse"] == {"base": "2", "layout": "padded"} and hello["empty_o"] == "nan"


def test_a_mistake_in_the_declaration_is_named():
    with pytest.raises(TypeError, match="no option 'casual'; it has name, .*causal"):
        fa_verify.kernel(casual=True)
    with pytest.raises(ValueError, match="lse='base10': one of natural, base2"):
        declared(lse="base10")
    with pytest.raises(fa_verify.MachineFailed, match="head_dim"):
        fa_verify.check(fa_verify.kernel(limits={"head_dim": {"most": 3}})(lambda call: None), {})


def test_a_harness_of_version_1_hears_what_it_understands():
    def hello_1(kernel):
        return Session(kernel).answer({"fa_exec": 1, "type": "hello", "id": 3})

    said = hello_1(kernels.attention)
    assert said["fa_exec"] == 1 and said["id"] == 3 and said["features"] == ["causal", "gqa"] and "outputs" not in said
    assert "version 2" in hello_1(kernels.without_lse)["why_not"] and "version 2" in hello_1(kernels.honest_base_2)["why_not"]


def test_a_decorated_function_can_still_be_called():
    assert fa_verify.kernel(lambda call: call + 1)(2) == 3


def test_supports_is_asked():
    @fa_verify.kernel(supports=lambda case: (["forward"], "no backward above 64") if case.head_dim > 64 else True)
    def kernel(call): ...

    assert kernel.supports(fa_verify.Case({"head_dim": 80})) == {"passes": ["forward"], "reason": "no backward above 64"}
    assert kernel.supports(fa_verify.Case({})) == {}


@pytest.mark.parametrize(
    "text, state",
    [
        ("SinglePrefillWithKVCache kernel launch failed, error: misaligned address", "error"),
        ("CUDA error: an illegal instruction was encountered", "error"),
        ("K has 3 heads, Q has 4", "rejected"),
    ],
)
def test_an_exception_that_says_the_device_is_lost_is_no_refusal(text, state):
    session = Session(fa_verify.kernel(lambda call: None))
    assert session._failed(RuntimeError(text))["state"] == state
