"""PyTorch's cuDNN attention: two backward calls that differ in the layout of dO alone; the second uses what was made for the first."""
import torch

torch.manual_seed(0)
ops = torch.ops.aten
q, k, v, do = (torch.randn(1, 2, 64, 64, dtype=torch.float16, device="cuda") for _ in range(4))
turned = do.transpose(1, 2).contiguous().transpose(1, 2)  # the same numbers, [B, S, H, D] in memory
o, lse, cu_q, cu_k, most_q, most_k, seed, offset, _ = ops._scaled_dot_product_cudnn_attention(q, k, v, None, True)


def gradient(do):
    return ops._scaled_dot_product_cudnn_attention_backward(do, q, k, v, o, lse, seed, offset, None, cu_q, cu_k, most_q, most_k, 0.0, False)[2]


first, second = gradient(do), gradient(turned)
p = (q.double() @ k.double().mT / 8).softmax(-1)
got, want = second[0].float().cpu().numpy(), (p.mT @ do.double())[0].cpu().numpy()
print("dV: largest error", abs(first[0].double().cpu().numpy() - want).max(), "; after another layout of dO", abs(got - want).max())
raise SystemExit(int(abs(got - want).max() > 0.05))
