"""Demonstrations of the faults that show in the order of work on streams, or in the lifetime of its memory."""

DEMONSTRATIONS = {
    "staged_pinned_upload_not_awaited": """
source, copy = torch.ones(2), torch.zeros(2, dtype=torch.float64, device=d)
if d == "npu":
    from refnpu.testing import late

    source = source.pin_memory()
    with late("20000"):
        copy.copy_(source)
        source.zero_()
result = d == "cpu" or bool(copy.cpu().all())""",
    "record_stream_of_view_ignored": """
result = True
if d == "npu":
    from refnpu.testing import fill, late

    x, side = torch.ones(1000, device=d)[200:400], torch.npu.Stream()
    with late("20000"), fill(freed="0x00"):
        with torch.npu.stream(side):
            y = x + 1
        x.record_stream(side)
        del x
        torch.npu.synchronize()
    result = bool(y.cpu().eq(2).all())""",
    "event_waited_for_once": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, side, event = torch.zeros(2, device=d), torch.npu.Stream(), torch.Event(d)
    with late("10000"):
        for _ in range(2):
            with torch.npu.stream(side):
                for _ in range(5):
                    x.add_(1)
                event.record()
            event.wait()
            y = x + 0
        result = bool(y.cpu().eq(10).all())""",
    "event_destroyed_is_not_awaited": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, y, z = torch.zeros(3, 2, device=d).unbind()
    first, second, event = torch.npu.Stream(), torch.npu.Stream(), torch.Event(d)
    torch.npu.synchronize()
    with late("20000"):
        with torch.npu.stream(first):
            for _ in range(5):
                x.add_(1)
            event.record()
        with torch.npu.stream(second):
            z.add_(1)
            event.wait()
            del event
            y.copy_(x)
        torch.npu.synchronize()
    result = bool(y.cpu().eq(5).all())""",
    "async_copies_on_default_stream": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, y, side = torch.zeros(9, device=d), torch.zeros(9).pin_memory(), torch.npu.Stream()
    torch.npu.synchronize()
    with late("20000"):
        with torch.npu.stream(side):
            for _ in range(5):
                x.add_(1)
            y.copy_(x, non_blocking=True)
        side.synchronize()
    result = bool(y.eq(5).all())""",
    "event_stays_on_first_stream": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, (first, second), event = torch.zeros(2, device=d), (torch.npu.Stream() for _ in range(2)), torch.Event(d)
    torch.npu.synchronize()
    with late("100000"):
        event.record(first)
        event.synchronize()
        with torch.npu.stream(second):
            x.add_(1)
        event.record(second)
        event.synchronize()
        result = second.query()""",
    "second_wait_forgets_first": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, y, z = torch.zeros(3, 2, device=d).unbind()
    torch.npu.synchronize()
    with late("10000"):
        for tensor, count in ((x, 20), (y, 1)):
            with torch.npu.stream(torch.npu.Stream()) as stream:
                for _ in range(count):
                    tensor.add_(1)
                event = torch.Event(d)
                event.record()
            event.wait()
        z.copy_(x)
        result = bool(z.cpu().eq(20).all())""",
    "recorded_stream_replaces_own": """
result = True
if d == "npu":
    from refnpu.testing import fill, late

    x, side = torch.ones(1000, device=d), torch.npu.Stream()
    torch.npu.synchronize()
    with late("50000"), fill(freed="0xFF"):
        y = x + 1
        x.record_stream(side)
        del x
        torch.npu.synchronize()
    result = bool(y.cpu().eq(2).all())""",
    "storage_resized_on_default_stream": """
result = True
if d == "npu":
    from refnpu.testing import late

    with torch.npu.stream(torch.npu.Stream()):
        x = torch.zeros(64, device=d)
        torch.npu.synchronize()
        with late("20000"):
            for _ in range(3):
                x.add_(1)
            x.resize_(1024)
            y = x[:64].clone()
            torch.npu.synchronize()
        result = bool(y.cpu().eq(3).all())""",
    "pinned_target_not_held": """
if d == "npu":
    from refnpu.testing import late

    # So large that malloc gives it back to the system at once: the copy ends the process.
    x, target = torch.ones(1 << 24, device=d), torch.empty(1 << 24, pin_memory=True)
    torch.npu.synchronize()
    with late("50000"):
        target.copy_(x, non_blocking=True)
        del target
        torch.npu.synchronize()
result = True""",
    "held_memory_is_out_of_memory": """
result = True
if d == "npu":
    from refnpu.testing import capacity, late

    with capacity(1 << 20), late("20000"):
        try:
            for _ in range(3):
                torch.zeros(600_000, dtype=torch.uint8, device=d).add_(1)
        except torch.OutOfMemoryError:
            result = False""",
    "full_queue_drops_work": """
result = True
if d == "npu":
    from refnpu.testing import late

    x = torch.zeros(2, device=d)
    with late("200"):
        for _ in range(2000):
            x.add_(1)
        result = bool(x.cpu().eq(2000).all())""",
    "stream_query_of_device": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, side = torch.zeros(2, device=d), torch.npu.Stream()
    torch.npu.synchronize()
    with late("200000"):
        x.add_(1)
        result = side.query()""",
    "item_on_default_stream": """
result = 8.0
if d == "npu":
    from refnpu.testing import late

    x = torch.zeros((), device=d)
    with late("50000"), torch.npu.stream(torch.npu.Stream()):
        for _ in range(8):
            x.add_(1)
        result = x.item()
        torch.npu.synchronize()""",
    "profiler_measures_default_stream": """
from torch.autograd.profiler import profile

result = True
if d == "npu":
    from refnpu.testing import late

    x, side = torch.ones(4, device=d), torch.npu.Stream()
    torch.npu.synchronize()
    with late("20000"), torch.npu.stream(side):
        with profile(use_device=d, use_kineto=False) as profiler:
            x.add_(1)
        result = max(event.device_time for event in profiler.function_events) > 10_000""",
    "fallback_results_on_default_stream": """
x, busy = torch.ones(2, device=d), torch.ones(2, device=d)
result = x.erfinv()
if d == "npu":
    from refnpu.testing import fill, late

    torch.npu.synchronize()
    with late("50000"), fill(fresh="zero"):
        for _ in range(4):
            busy.add_(1)
        with torch.npu.stream(torch.npu.Stream()):
            result = x.erfinv().cpu()
        torch.npu.synchronize()""",
    "scan_workspace_of_all_streams": """
result = [1.0, 2.0]
if d == "npu":
    from refnpu.testing import late

    x, made = [torch.full((1,), float(i), device=d) for i in (1, 2)], []
    with late():
        for each in x:
            with torch.npu.stream(torch.npu.Stream()):
                made.append(each.cumsum(0))
        torch.npu.synchronize()
        result = [each.item() for each in made]""",
}
