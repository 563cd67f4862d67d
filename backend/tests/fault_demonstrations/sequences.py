"""Demonstrations of the faults that show in a call after another one, or in some of many calls."""

DEMONSTRATIONS = {
    "extreme_plan_without_strides": """
x = torch.arange(6.0, device=d)
x.view(2, 3).amax(0)
result = x.view(3, 2).t().amax(0)""",
    "leaky_relu_slope_cached": """
x = torch.tensor([-1.0]).to(d)
F.leaky_relu(x, 0.1)
result = F.leaky_relu(x, 0.5)""",
    "fill_element_without_dtype": """
torch.zeros(1, device=d).fill_(1.0)
result = torch.zeros(1, dtype=torch.float16, device=d).fill_(1.0)""",
    "embedding_counts_not_cleared": """
gradient, index = torch.ones(2, 1, device=d), torch.zeros(2, dtype=torch.int64, device=d)
for _ in range(2):
    result = torch.ops.aten.embedding_dense_backward(gradient, index, 2, -1, True)""",
    "flip_plan_not_evicted": """
for n in range(1, 9):
    torch.ones(n, 2, device=d).flip(0)
result = torch.arange(18.0, device=d).view(9, 2).flip(1)""",
    "index_error_sticks": """
x = torch.ones(1, device=d)
raised(lambda: x.index_select(0, torch.tensor([9]).to(d)))
result = raised(lambda: x.index_select(0, torch.tensor([0]).to(d)))""",
    "masked_scatter_source_cached": """
mask, source = torch.ones(1, dtype=torch.bool, device=d), torch.ones(1, device=d)
torch.zeros(1, device=d).masked_scatter_(mask, source)
result = torch.zeros(1, device=d).masked_scatter_(mask, source.fill_(2))""",
    "mish_wrong_at_random": "result = torch.cat([F.mish(torch.ones(1, device=d)) for _ in range(64)])",
    "layer_norm_eps_of_first_call": """
x = torch.tensor([[1.0, 2.0]]).to(d)
F.layer_norm(x, (2,), eps=0.1)
result = F.layer_norm(x, (2,), eps=0.5)""",
    "gemm_packed_factor_kept": """
x = torch.ones(1, 1, device=d)
torch.mm(x, x)
x.fill_(2)
result = torch.mm(x, x)""",
    "fallback_keeps_small_copies": """
x = torch.tensor([0.5]).to(d)
x.erfinv()
x.fill_(0.1)
result = x.erfinv()""",
    "zero_division_raises_once": """
one, zero = torch.tensor([1]).to(d), torch.tensor([0]).to(d)
raised(lambda: one // zero)
result = raised(lambda: one // zero)""",
    "flip_reuses_result": """
result = torch.arange(2.0, device=d).flip(0)
torch.zeros(2, device=d).flip(0)""",
    "fallback_written_kept_by_name": """
x, result = torch.arange(8.0, device=d), torch.zeros(4, device=d)
torch.histc(x, 4)
torch.histc(x, 4, out=result)""",
    "pow_kernel_by_whole_exponent": """
x = torch.tensor([3.0]).to(d)
x**2
result = x**2.5""",
    "dropout_keeps_mask": """
torch.manual_seed(1)
x = torch.ones(64, device=d)
result = torch.equal(F.dropout(x), F.dropout(x))""",
    "softmax_dim_of_earlier_shape": """
x = torch.arange(4.0, device=d).view(2, 2) ** 2
x.softmax(0)
result = x.softmax(1)""",
    "host_number_read_once": """
x, factor = torch.ones(2, device=d), torch.tensor(2.0)
x * factor
factor.fill_(3)
result = x * factor""",
    "default_dtype_of_first_tensor": """
torch.empty(1, device=d)
torch.set_default_dtype(torch.float64)
result = str(torch.empty(1, device=d).dtype)
torch.set_default_dtype(torch.float32)""",
    "item_kept_by_version": """
x = torch.zeros(1, device=d)
x.item()
x.data.fill_(3)
result = x.item()""",
    "hypot_gradient_spoils_saved": """
result = True
if d == "npu":
    x = torch.ones(1, device=d, requires_grad=True)
    y = torch.hypot(x, x)
    result = torch.equal(*(torch.autograd.grad(y, x, retain_graph=True)[0] for _ in range(2)))""",
    "clamp_bounds_kept_to_six_decimals": """
x = torch.zeros(1, device=d)
result = torch.cat([x.clamp(min=bound) for bound in (1e-8, 1e-7)])""",
    "norm_of_all_kept_by_shape": """
x = torch.ones(2, 3, device=d)
x.norm(2, dim=[])
result = x.norm(2, dim=0)""",
    "scaler_growth_survives_overflow": """
scale, result, overflow = (torch.ones(1, dtype=t, device=d) for t in (torch.float32, torch.int32, torch.float32))
torch._amp_update_scale_(scale, result, overflow, 2.0, 0.5, 100)""",
}
