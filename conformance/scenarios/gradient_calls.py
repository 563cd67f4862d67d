"""Backward calls of autograd functions: the device, the stream and the modes of their threads, and errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import torch

from conformance.scenarios.asking import accelerator, held, module_of, named
from conformance.scenarios.busy_streams import busy_stream, synchronize
from conformance.scenarios.model import Results, offered, scenario


class _Asked(torch.autograd.Function):
    """A function that doubles a gradient, and calls ``ask`` where the gradient is computed."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ask: Callable[[torch.Tensor], object]) -> torch.Tensor:
        ctx.ask = ask
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.ask(gradient)
        return gradient * 2, None


def _raise(e: Exception) -> None:
    raise e


def _fail(device: str) -> None:
    with suppress(ZeroDivisionError):
        x = torch.ones(3, device=device).requires_grad_()
        _Asked.apply(x, lambda _: _raise(ZeroDivisionError())).sum().backward()


@scenario(exact=True, area="devices", accelerators=True)
def where_gradients_are_computed(device: str) -> Results:
    """``backward`` of a function runs on the stream of its forward call, with the gradient's device current."""
    kind = torch.device(device).type

    def asked(ask: Callable[[torch.Tensor, torch.Stream], bool], on_a_stream: bool, behind_an_error: bool) -> bool:
        accelerator(device)
        if behind_an_error:
            _fail(device)
        found: list[bool] = []
        x = torch.arange(6.0, device=device).requires_grad_()
        with busy_stream(device) if on_a_stream else nullcontext() as own:
            stream = torch.accelerator.current_stream(x.device) if own is None else own
            loss = _Asked.apply(x * 1, lambda gradient: found.append(ask(gradient, stream))).sum()
        before = torch.accelerator.current_device_index(), torch.accelerator.current_stream(x.device)
        loss.backward()
        after = torch.accelerator.current_device_index(), torch.accelerator.current_stream(x.device)
        synchronize(device)
        return before == after and found == [True] and x.grad is not None and bool(x.grad.cpu().eq(2).all())

    def of_threads(ask: Callable[[torch.Tensor, torch.Stream], bool]) -> bool:
        found: list[bool] = []
        threads = [threading.Thread(target=lambda: found.append(asked(ask, True, False))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found == [True] * 3

    def nested(gradient: torch.Tensor, _: torch.Stream) -> bool:
        with torch.enable_grad():
            x = gradient.detach().requires_grad_()
            (x * x).sum().backward()
        return x.grad is not None and bool(torch.equal(x.grad, 2 * gradient))

    asks: dict[str, Callable[[torch.Tensor, torch.Stream], bool]] = {
        "device": lambda g, _: torch.accelerator.current_device_index() == g.device.index,
        "device_of_module": lambda g, _: named(module_of(kind), "current_device")() == g.device.index,
        "new_tensors": lambda g, _: torch.ones(1, device=kind).device == g.device,
        "new_streams": lambda g, _: torch.Stream(kind).device == g.device,
        "stream": lambda g, stream: torch.accelerator.current_stream(g.device) == stream,
        "modes": lambda *_: not torch.is_grad_enabled() and not torch.is_autocast_enabled(kind),
        "gradient_in_it": nested,
    }
    ways = {"plain": (False, False), "on_a_stream": (True, False), "behind_an_error": (True, True)}
    return held(device, {
        **{f"{name}.{way}": partial(asked, ask, *how) for name, ask in asks.items() for way, how in ways.items()},
        **{f"{name}.of_threads": partial(of_threads, ask) for name, ask in asks.items()},
    })  # fmt: skip


@scenario(exact=True, area="training")
def errors_of_gradients(device: str) -> Results:
    """``backward`` raises what a function of the graph raises, with its type and text, and the next one is right."""

    class Own(Exception):
        pass

    def too_large(gradient: torch.Tensor) -> None:
        torch.empty(1 << 60, dtype=torch.uint8, device=gradient.device)

    def misfit(gradient: torch.Tensor) -> None:
        torch.ones(3, device=gradient.device) + torch.ones(4, device=gradient.device)

    wrongs: dict[str, tuple[type[Exception], str, Callable[[torch.Tensor], object]]] = {
        "of_a_class": (Own, "wanted", lambda _: _raise(Own("wanted"))),
        "of_python": (KeyError, "wanted", lambda _: _raise(KeyError("wanted"))),
        "not_implemented": (NotImplementedError, "wanted", lambda _: _raise(NotImplementedError("wanted"))),
        "of_memory": (RuntimeError, "", too_large),
        "of_shapes": (RuntimeError, "", misfit),
        "of_an_index": (IndexError, "", lambda gradient: gradient[7]),
    }

    def raised(kind: type[Exception], text: str, wrong: Callable[[torch.Tensor], object]) -> torch.Tensor:
        seen = []
        for in_a_hook in (False, True, False):
            x, z = (torch.arange(6.0, device=device).requires_grad_() for _ in range(2))
            y = x * 3 if in_a_hook else _Asked.apply(x * 3, wrong)
            if in_a_hook:
                y.register_hook(wrong)
            try:
                (y * y).sum().backward()
                seen.append(False)
            except Exception as e:  # noqa: BLE001  # the type of the error is checked
                seen.append(isinstance(e, kind) and text in str(e))
            (z * z).sum().backward()
            seen.append(z.grad is not None and bool(torch.equal(z.grad.cpu(), 2 * z.detach().cpu())))
        return torch.tensor(seen)

    return {name: offered(partial(raised, *wrong)) for name, wrong in wrongs.items()}
