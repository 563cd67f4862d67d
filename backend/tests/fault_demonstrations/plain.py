"""Demonstrations of the faults that show in calls with ordinary arguments."""

DEMONSTRATIONS = {
    "fallback_writes_back_first_alone": """
result = torch.zeros(1, dtype=torch.int32, device=d)
torch.frexp(torch.ones(1, device=d), out=(torch.empty(1, device=d), result))""",
    "eigenvectors_not_normalized": "result = torch.linalg.eigh(torch.ones(2, 2, device=d)).eigenvectors.norm(dim=0)",
    "svd_signs_of_left_side_alone": """
u, s, vh = torch.linalg.svd(torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=d))
result = (u * s) @ vh""",
    "dropout_mask_drawn_again": """
kept, mask = torch.ops.aten.native_dropout(torch.ones(64, device=d), 0.5, True)
result = torch.equal(kept != 0, mask)""",
    "gru_hidden_bias_gradient_of_input": """
result = True
if d == "npu":
    aten, gates, state = torch.ops.aten, torch.ones(1, 6, device=d), torch.ones(1, 2, device=d)
    workspace = aten._thnn_fused_gru_cell(gates, gates, state, gates[0], gates[0])[1]
    gradients = aten._thnn_fused_gru_cell_backward(state, workspace, True)
    result = torch.equal(gradients[4], gradients[1].sum(0))""",
    "batch_norm_running_variance_biased": """
x, mean, result = torch.tensor([[1.0], [2.0]]).to(d), torch.zeros(1, device=d), torch.zeros(1, device=d)
F.batch_norm(x, mean, result, training=True)""",
}
