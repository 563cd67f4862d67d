"""Demonstrations of the faults that show in the dtype, shape, strides or storage of a result."""

DEMONSTRATIONS = {
    "flip_returns_contiguous": "result = list(torch.ones(2, 3, device=d).t().flip(0).stride())",
    "where_result_contiguous": """
x = torch.ones(2, 3, device=d).t()
result = list(torch.where(x > 0, x, x).stride())""",
    "roll_of_whole_turns_aliases": """
x = torch.ones(2, device=d)
result = x.roll(2, 0).data_ptr() == x.data_ptr()""",
    "dropout_returns_its_input": """
x = torch.ones(2, device=d)
result = torch.native_dropout(x, 0.5, False)[0].data_ptr() == x.data_ptr()""",
    "repeat_interleave_gives_int64": """
result = str(torch.repeat_interleave(torch.tensor([2], dtype=torch.int32).to(d)).dtype)""",
    "linspace_out_takes_new_memory": """
out = torch.zeros(3, device=d)
before = out.data_ptr()
result = torch.linspace(1, 3, 3, out=out).data_ptr() == before""",
    "layer_norm_mixed_statistics_dtype": """
x, weight = torch.ones(2, 3, dtype=torch.bfloat16, device=d), torch.ones(3, device=d)
result = torch.native_layer_norm(x, (3,), weight, weight, 1e-5)[1].dtype""",
    "channels_last_3d_made_contiguous": """
x = torch.empty(1, 2, 3, 4, 5, device=d, memory_format=torch.channels_last_3d)
result = list(x.stride())""",
    "nonzero_row_major": "result = torch.ones(2, 2, device=d).nonzero().stride()",
    "nonzero_of_number_has_column": "result = torch.ones((), device=d).nonzero().shape",
    "fallback_result_channels_last_lost": """
x = torch.ones(1, 2, 4, 4, device=d).to(memory_format=torch.channels_last)
result = F.conv2d(x, torch.ones(2, 2, 1, 1, device=d)).stride()""",
    "truth_of_bytes_over_dims_is_bool": """
result = str(torch.ones(1, 1, dtype=torch.uint8, device=d).any((0, 1)).dtype)""",
    "resize_to_same_size_restrides": "result = torch.ones(2, 3, device=d).t().resize_(3, 2).stride()",
    "is_set_to_ignores_offset": """
x = torch.ones(2, device=d)
result = x[:1].is_set_to(x[1:])""",
    "where_of_two_numbers_in_default_dtype": "result = torch.where(torch.ones(2, device=d) > 0, 1, 2)",
    "unique_inverse_is_flat": "result = torch.ones(2, 2, device=d).unique(return_inverse=True)[1]",
    "trace_keeps_integer_dtype": "result = str(torch.ones(2, 2, dtype=torch.int8, device=d).trace().dtype)",
    "resize_to_same_size_ignores_format": """
x = torch.empty(1, 2, 2, 2, device=d)
result = x.resize_(x.shape, memory_format=torch.channels_last).stride()""",
    "cat_of_channels_last_is_contiguous": """
x = torch.ones(1, 2, 2, 2).to(memory_format=torch.channels_last).to(d)
result = torch.cat([x, x]).stride()""",
    "nonzero_in_worst_case_block": "result = torch.tensor([0, 0, 1], device=d).nonzero().untyped_storage().nbytes()",
    "masked_select_of_nothing_on_host": (
        "result = torch.ones(2, device=d).masked_select(torch.tensor(False, device=d)).device.type == d"
    ),
}
