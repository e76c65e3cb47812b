"""judge: tensors that exist already."""

import numpy as np
import pytest

import fa_verify


def tensors(causal: bool, dtype: type = np.float32) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    q, k, v, do = (rng.standard_normal((2, 60, 3, 64)).astype(dtype) for _ in range(4))
    s = np.einsum("bqhd,bkhd->bhqk", *(x.astype(np.float32) for x in (q, k))) / np.float32(8)
    if causal:
        s[..., np.triu(np.ones((60, 60), bool), 1)] = -np.inf
    top = s.max(-1, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    o = np.einsum("bhqk,bkhd->bqhd", p / total, v.astype(np.float32)).astype(dtype)
    return {"q": q, "k": k, "v": v, "o": o, "lse": (top + np.log(total))[..., 0], "p": p / total, "do": do}


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_right_output_passes(dtype: type) -> None:
    t = tensors(True, dtype)
    assert fa_verify.judge(q=t["q"], k=t["k"], v=t["v"], o=t["o"], lse=t["lse"], causal=True).passed == 1


def test_the_wrong_mask_fails() -> None:
    t = tensors(False)
    with pytest.raises(fa_verify.Mismatch, match="o: "):
        fa_verify.judge(q=t["q"], k=t["k"], v=t["v"], o=t["o"], causal=True)


def test_the_layout_of_pytorch() -> None:
    t = {name: x.transpose(0, 2, 1, 3) for name, x in tensors(False).items() if name in ("q", "k", "v", "o")}
    assert fa_verify.judge(**t, layout="bhsd").passed == 1
    with pytest.raises(fa_verify.Mismatch):
        fa_verify.judge(**t)


def test_gradients() -> None:
    t = tensors(False)
    p = t["p"]
    dp = np.einsum("bqhd,bkhd->bhqk", t["do"], t["v"])
    ds = p * (dp - np.einsum("bqhd,bqhd->bhq", t["do"], t["o"])[..., None]) / np.float32(8)
    dq, dk = np.einsum("bhqk,bkhd->bqhd", ds, t["k"]), np.einsum("bhqk,bqhd->bkhd", ds, t["q"])
    dv = np.einsum("bhqk,bqhd->bkhd", p, t["do"])
    given = {name: t[name] for name in ("q", "k", "v", "o", "lse", "do")}
    assert fa_verify.judge(**given, dq=dq, dk=dk, dv=dv).passed == 1
    with pytest.raises(fa_verify.Mismatch, match="dk: ") as failed:
        fa_verify.judge(**given, dq=dq, dk=-dk, dv=dv)
    assert "dq: " not in str(failed.value)


def test_packed_sequences() -> None:
    t = tensors(False)
    packed = {name: t[name].reshape(120, 3, 64) for name in ("q", "k", "v", "o")}
    assert fa_verify.judge(**packed, cu_seqlens_q=np.array([0, 60, 120]), cu_seqlens_k=[0, 60, 120]).passed == 1


def test_tensors_that_do_not_fit_are_the_callers_mistake() -> None:
    t = tensors(False)
    with pytest.raises(fa_verify.MachineFailed, match="the case needs"):
        fa_verify.judge(q=t["q"], k=t["k"], v=t["v"], o=t["o"][:, 1:])
    with pytest.raises(TypeError, match="o is int64"):
        fa_verify.judge(q=t["q"], k=t["k"], v=t["v"], o=t["o"].astype(np.int64))
