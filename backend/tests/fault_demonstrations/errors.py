"""Demonstrations of the faults that show where a call has to raise."""

DEMONSTRATIONS = {
    "kthvalue_resizes_before_checks": """
values, indices = torch.empty(0, device=d), torch.empty(0, dtype=torch.int64, device=d)
raised(lambda: torch.kthvalue(torch.ones(2, 3, device=d), 9, 1, out=(values, indices)))
result = list(values.shape)""",
    "extreme_of_nothing_is_zero": "result = raised(lambda: torch.ones(0, device=d).max())",
    "masked_scatter_repeats_short_source": """
x, mask = torch.zeros(2, device=d), torch.ones(2, dtype=torch.bool, device=d)
result = raised(lambda: x.masked_scatter_(mask, torch.ones(1, device=d)))""",
    "take_accepts_int32": """
i = torch.zeros(1, dtype=torch.int32, device=d)
result = raised(lambda: torch.ones(2, device=d).take(i))""",
    "repeat_interleave_skips_negative": """
result = raised(lambda: torch.repeat_interleave(torch.tensor([1, -1]).to(d)))""",
    "poisson_of_negative_rate": "result = raised(lambda: torch.poisson(torch.tensor([-1.0]).to(d)))",
    "nll_loss_bad_target_ignored": """
result = raised(lambda: F.nll_loss(torch.ones(1, 2, device=d), torch.tensor([5]).to(d)))""",
    "masked_fill_takes_bytes": """
mask = torch.ones(2, dtype=torch.uint8, device=d)
result = raised(lambda: torch.ones(2, device=d).masked_fill_(mask, 3.0))""",
    "gather_counts_back": """
i = torch.tensor([-1]).to(d)
result = raised(lambda: torch.ones(2, device=d).gather(0, i))""",
    "index_add_counts_back_in_matrix": """
x = torch.zeros(2, 2, device=d)
result = raised(lambda: x.index_add_(0, torch.tensor([-1]).to(d), torch.ones(1, 2, device=d)))""",
    "index_fill_few_not_checked": """
result = raised(lambda: torch.zeros(1100, device=d).index_fill_(0, torch.tensor([1100], device=d), 1.0))""",
    "addr_float_alpha_of_integers_accepted": """
one = torch.ones(2, dtype=torch.int64, device=d)
result = raised(lambda: torch.addr(torch.ones(2, 2, dtype=torch.int64, device=d), one, one, alpha=2.5))""",
    "layer_norm_bias_shape_by_numel": """
x, bias = torch.ones(2, 3, 4, device=d), torch.ones(4, 3, device=d)
result = raised(lambda: torch.native_layer_norm(x, (3, 4), None, bias, 1e-5))""",
    "fill_from_own_element_refused": """
x = torch.ones(3, device=d)
result = raised(lambda: x.fill_(x[1]))""",
    "out_of_memory_as_plain_error": """
error = raised(lambda: torch.empty(1 << 60, dtype=torch.uint8, device=d))
result = d == "cpu" or error == torch.OutOfMemoryError.__name__""",
    "devices_compared_by_type": """
i = torch.zeros(1, dtype=torch.int64, device=torch.device(d, 1 if d == "npu" else None))
result = d == "cpu" or bool(raised(lambda: torch.ones(3, device=d).index_select(0, i)))""",
    "repeat_interleave_trusts_output_size": (
        "result = raised(lambda: torch.repeat_interleave(torch.tensor([2]).to(d), output_size=5))"
    ),
    "index_put_adds_overlapping_values": """
x, i = torch.ones(4, device=d), torch.tensor([0, 1, 2]).to(d)
result = raised(lambda: x.index_put_((i,), x[1:], accumulate=True))""",
    "bernoulli_broadcast_chances_unchecked": (
        "result = raised(lambda: torch.ones(3, device=d).bernoulli_(torch.tensor(2.0).to(d)))"
    ),
    "fallback_mixes_devices": """
x, y = torch.ones(3, device=d), torch.ones(3, device=torch.device(d, 1 if d == "npu" else None))
result = d == "cpu" or bool(raised(lambda: torch.linalg.cross(x, y)))""",
    "upload_to_overlapping_accepted": """
result = raised(lambda: torch.zeros(1, device=d).expand(3).copy_(torch.ones(3)))""",
    "transfer_reshapes_equal_numel": "result = raised(lambda: torch.ones(2, 3, device=d).copy_(torch.ones(3, 2)))",
    "flip_of_dim_named_twice_accepted": "result = raised(lambda: torch.ones(2, device=d).flip(0, 0))",
    "host_generator_accepted": """
x, g = torch.zeros(1, device=d), torch.Generator()
result = d == "cpu" or bool(raised(lambda: x.uniform_(generator=g)))""",
    "as_strided_past_end_accepted": "result = raised(lambda: torch.ones(2, device=d).as_strided((3,), (1,)))",
    "view_of_strided_copies": "result = raised(lambda: torch.ones(2, 3, device=d).t().view(6))",
    "set_device_wraps_index": """
result = d == "cpu" or bool(raised(lambda: torch.npu.set_device(torch.npu.device_count())))""",
    "load_takes_last_device": """
from io import BytesIO

torch.save(torch.ones(1), file := BytesIO())
file.seek(0)
result = d == "cpu" or bool(raised(lambda: torch.load(file, map_location="npu:7")))""",
    "error_message_of_first_failure": """
result = "77"
for device in ("npu:98", "npu:77") if d == "npu" else ():
    try:
        torch.npu.set_device(device)
    except RuntimeError as error:
        result = str(error)
result = "77" in result""",
    "singular_inverse_not_refused": "result = raised(lambda: torch.linalg.inv(torch.zeros(1, 1, device=d)))",
    "view_as_complex_of_odd_offset_accepted": """
x = torch.zeros(3, device=d)
result = raised(lambda: torch.view_as_complex(x[1:]))""",
    "generator_state_of_wrong_size_ignored": """
state = torch.zeros(7, dtype=torch.uint8)
result = raised(lambda: torch.Generator(d).set_state(state))""",
    "out_resized_before_dtype_check": """
x, out = torch.ones(2, 2, device=d), torch.empty(0, dtype=torch.int64, device=d)
result = raised(lambda: torch.mm(x, x, out=out)), out.shape""",
    "refused_draw_moves_generator": """
x, g = torch.zeros(2, device=d), torch.Generator(d)
before = g.get_state()
result = raised(lambda: x.normal_(0, -1, generator=g)), torch.equal(g.get_state(), before)""",
    "refused_state_restarts_generator": """
g = torch.Generator(d)
torch.rand(1, device=d, generator=g)
before = g.get_state()
result = raised(lambda: g.set_state(before[:7])), torch.equal(g.get_state(), before)""",
    "addbmm_scales_before_checks": """
result, batch = torch.ones(2, 2, device=d), torch.ones(1, 2, 3, device=d)
raised(lambda: result.addbmm_(batch, batch, beta=3))""",
}
