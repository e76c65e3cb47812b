"""PyTorch's cuDNN attention, packed, Q, K and V views of one tensor [T, 3, H, D]: gradients have room for T rows, and are written 3 apart."""
import torch

torch.manual_seed(0)
ops = torch.ops.aten
q, k, v = torch.randn(40, 3, 2, 64, dtype=torch.float16, device="cuda").unbind(1)
do = torch.randn(40, 2, 64, dtype=torch.float16, device="cuda")
ends = torch.tensor([0, 40], dtype=torch.int32, device="cuda")
p = (q.double().transpose(0, 1) @ k.double().permute(1, 2, 0) / 8).softmax(-1)
want = (p.mT @ do.double().transpose(0, 1)).transpose(0, 1).cpu().numpy()
o, lse, cu_q, cu_k, most_q, most_k, seed, offset, _ = ops._cudnn_attention_forward(q, k, v, None, ends, ends, 40, 40, True, 0.0, False, False)
try:
    dv = ops._cudnn_attention_backward(do, q, k, v, o, lse, seed, offset, None, cu_q, cu_k, most_q, most_k, 0.0, False)[2]
    got = dv.float().cpu().numpy()
    wrong = ~(abs(got - want) < 0.05).all((1, 2))
    said = f"rows of dV that are wrong: {wrong.sum()} of 40"
except RuntimeError as e:
    wrong, said = torch.tensor("CUDA error" in str(e)), str(e).splitlines()[0]
print("views of one packed tensor:", said)
raise SystemExit(int(wrong.any()))
