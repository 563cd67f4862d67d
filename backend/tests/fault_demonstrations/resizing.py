"""Demonstrations of the faults that show in a storage that changes its size."""

DEMONSTRATIONS = {
    "resize_keeps_first_bytes": "result = torch.arange(1.0, 33.0, device=d).resize_(40)[:32]",
    "resize_to_zero_ignored": """
storage = torch.ones(4, device=d).untyped_storage()
storage.resize_(0)
result = storage.nbytes()""",
    "resized_nbytes_rounded": "result = torch.ones(4, device=d).resize_(5).untyped_storage().nbytes()",
    "set_tensor_drops_offset": "result = torch.empty(0, device=d).set_(torch.arange(4.0, device=d)[2:])",
    "resize_forgets_offset": "result = torch.ones(4, device=d)[2:].resize_(4).untyped_storage().nbytes()",
    "resize_shrinks_storage": "result = torch.ones(4, device=d).resize_(2).untyped_storage().nbytes()",
    "resize_growth_leaves_aliases": """
x = torch.zeros(2, device=d)
result = x[:]
x.resize_(4).fill_(7)""",
    "set_to_storage_of_other_device_accepted": """
result = "RuntimeError"
if d == "npu":
    result = raised(lambda: torch.empty(0, device=d).set_(torch.ones(3).untyped_storage()))""",
    "resized_out_loses_offset": """
out = torch.empty(4, device=d)[2:]
result = torch.neg(torch.ones(3, device=d), out=out).storage_offset()""",
    "set_storage_keeps_offset": """
result = torch.ones(2, device=d)[1:].set_(torch.arange(4.0, device=d).untyped_storage())""",
    "set_of_nothing_on_first_device": """
result = raised(torch.ones(1, device=torch.device(d, 1 if d == "npu" else None)).set_)""",
    "set_leaves_storage_small": """
storage = torch.ones(2, device=d).untyped_storage()
result = torch.empty(0, device=d).set_(storage, 0, (4,)).untyped_storage().nbytes()""",
    "resized_on_other_device_keeps_nothing": """
result = torch.arange(1.0, 5.0, device=torch.device(d, 1 if d == "npu" else None))
result.untyped_storage().resize_(64)""",
    "shrunk_storage_is_cleared": """
storage = torch.ones(4, device=d).untyped_storage()
storage.resize_(8)
result = torch.empty(0, device=d).set_(storage)""",
    "failed_growth_empties_storage": """
result = torch.ones(2, device=d)
raised(lambda: result.untyped_storage().resize_(1 << 60))""",
    "deterministic_resize_fills_kept": """
torch.use_deterministic_algorithms(True)
result = torch.ones(2, device=d).resize_(3)
torch.use_deterministic_algorithms(False)""",
    "fallback_result_not_resizable": """
result = torch.ones(3, device=d).histc(2).resize_(3)[:2]""",
}
