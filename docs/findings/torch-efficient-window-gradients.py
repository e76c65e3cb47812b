"""Memory-efficient attention of PyTorch, one query over the last 11 of 65 keys: keys outside the window get a gradient of V."""
import torch

torch.manual_seed(0)
ops = torch.ops.aten
q, k, v, do = (torch.randn(1, n, 1, 64, device="cuda") for n in (1, 65, 65, 1))
bottom_right, window = 2, 11  # it counts the row's own key
o, lse, seed, offset, most_q, most_k = ops._efficient_attention_forward(q, k, v, None, None, None, None, None, 0.0, bottom_right, True, window_size=window)
grads = ops._efficient_attention_backward(do, q, k, v, None, o, None, None, most_q, most_k, lse, 0.0, seed, offset, bottom_right, False, window_size=window)
p = (q[0, :, 0].double() @ k[0, -window:, 0].double().T / 8).softmax(1)
want = torch.zeros(65, 64, dtype=torch.float64, device="cuda")
want[-window:] = p.T @ do[0, :, 0].double()
got, want = grads[2][0, :, 0].cpu().numpy(), want.cpu().numpy()
print("dV of keys outside the window, largest:", abs(got[:-window]).max(), "(want 0), and of O the error is", (o[0, 0, 0] - p[0] @ v[0, -window:, 0].double()).abs().max().item())
raise SystemExit(int(abs(got - want).max() > 1e-2))
