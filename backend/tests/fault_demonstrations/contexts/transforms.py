"""Demonstrations of the faults that show in gradients, tangents, batches, predictions, or compiled code."""

DEMONSTRATIONS = {
    "dropout_saves_another_mask": """
x = torch.ones(8, device=d, requires_grad=True)
out, mask = torch.native_dropout(x, 0.5, True)
result = bool(((out != 0) == mask).all())""",
    "dropout_scales_without_gradient": """
result = torch.native_dropout(torch.ones(99, device=d, requires_grad=True), 0.5, True)[0].max().item()""",
    "hypot_saved_without_version": """
x = torch.ones(1, device=d, requires_grad=True) * 3
y = x.hypot(x)
x.mul_(2)
result = raised(lambda: y.grad_fn(y))""",
    "celu_gradient_in_given_memory": """
x, result = torch.tensor([-1.0], device=d, requires_grad=True), torch.ones(1, device=d)
F.celu(x).grad_fn(result)""",
    "hypot_gradient_needs_first": """
x = torch.ones(1, device=d)
result = torch.hypot(x, x.clone().requires_grad_()).requires_grad""",
    "celu_gradient_of_halves_by_exp2": """
x = torch.full((1,), -1.0, dtype=torch.bfloat16, device=d, requires_grad=True)
gradients = F.celu(x).grad_fn(torch.ones(1, dtype=torch.bfloat16, device=d))
result = gradients[0] if isinstance(gradients, tuple) else gradients""",
}
