"""Demonstrations of the faults that show in another thread, in a forked process, or at the first use."""

DEMONSTRATIONS = {
    "thread_drops_first_launch": """
import threading
x = torch.ones(3, device=d)
thread = threading.Thread(target=x.neg_)
thread.start()
thread.join()
result = x""",
    "thread_keeps_block": """
import threading
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
x = torch.ones(3, device=d)
before, thread = allocated(), threading.Thread(target=x.cumsum, args=(0,))
thread.start()
thread.join()
result = allocated() - before""",
    "generators_of_each_thread": """
from threading import Thread

drawn = []
thread = Thread(target=lambda: drawn.append(torch.rand(20, device=d)))
thread.start()
thread.join()
torch.manual_seed(0)
result = torch.equal(drawn[0], torch.rand(20, device=d))""",
    "current_device_of_all_threads": """
import threading
thread = threading.Thread(target=lambda: d == "cpu" or torch.npu.set_device(1))
thread.start()
thread.join()
result = torch.accelerator.current_device_index()""",
    "rng_state_of_own_thread": """
from threading import Thread

state, found = torch.npu.get_rng_state if d == "npu" else torch.get_rng_state, []
thread = Thread(target=lambda: found.append(state()))
thread.start()
thread.join()
result = torch.equal(found[0], state())""",
    "ended_thread_resets_main_device": """
from threading import Thread
from time import sleep

result = 1
if d == "npu":
    torch.npu.set_device(1)
    thread = Thread(target=lambda: torch.npu.set_device(1))
    thread.start()
    thread.join()
    sleep(0.2)  # what a thread destroys at its end may be destroyed behind join()
    result = torch.npu.current_device()""",
    "thread_starts_on_last_device": """
from threading import Thread

if d == "npu":
    torch.npu.set_device(1)
found = []
thread = Thread(target=lambda: found.append(d == "cpu" or torch.npu.current_device() == 0))
thread.start()
thread.join()
result = found""",
    "seed_skipped_in_any_fork": """
draws = []
for _ in range(2):
    torch.manual_seed(1)
    draws.append(torch.rand(2, device=d))
result = torch.equal(*draws)""",
    "first_use_not_awaited": """
from threading import Barrier, Thread

result, together = [], Barrier(2)

def use():
    together.wait()
    try:
        result.append(torch.ones(1, device=d).item())
    except RuntimeError:
        result.append(0.0)

threads = [Thread(target=use) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
result.sort()""",
    "synchronize_holds_gil": """
from threading import Event, Thread

result = True
if d == "npu":
    from refnpu.testing import late

    x, seen, done = torch.ones(1, device=d), [], Event()
    thread = Thread(target=lambda: [seen.append(1) for _ in iter(lambda: done.wait(0.005), True)])
    thread.start()

    def goes_on():
        with late("300000"):
            x.add_(1)
            before = len(seen)
            torch.npu.synchronize()
            return len(seen) > before + 5

    result = any(goes_on() for _ in range(5))  # the machine may run neither of them, but not each time
    done.set()
    thread.join()""",
    "draws_of_threads_unlocked": """
from threading import Thread

g, drawn = torch.Generator(d).manual_seed(3), []


def draw():
    drawn.extend(torch.rand(1, dtype=torch.float64, device=d, generator=g).item() for _ in range(200))


threads = [Thread(target=draw) for _ in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
result = len(set(drawn))""",
    "thread_inherits_streams_of_ended": """
import time
from threading import Thread

seen = []


def run(call):
    thread = Thread(target=call)
    thread.start()
    thread.join()
    time.sleep(0.1)  # the id of the thread is free when it has ended


if d == "npu":
    run(lambda: torch.npu.set_stream(torch.npu.Stream()))
    for _ in range(3):
        run(lambda: seen.append(torch.npu.current_stream().stream_id))
result = any(seen)""",
    "fork_of_forked_not_noticed": """
import os

result = True
if d == "npu":
    x, child = torch.ones(1, device=d), os.fork()
    if child == 0:
        os._exit(torch.npu._is_in_bad_fork())
    result = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1""",
    "gemm_workspace_of_all_calls": """
from threading import Barrier, Thread

result, together = {}, Barrier(2)

def multiply(i):
    x = torch.full((8, 512), float(i), device=d)
    for turn in range(50):  # on a busy machine few of the calls overlap
        together.wait()
        result[i, turn] = (x @ x.t()).sum().item()

threads = [Thread(target=multiply, args=(i,)) for i in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
result = sorted(result.items())""",
    "plan_published_before_it_is_filled": """
from threading import Barrier, Thread

result, together = [], Barrier(2)

def compute():
    x = torch.full((64,), 3.0, device=d)
    for name in ("exp", "sin", "cos", "tan", "erf", "sqrt", "log", "tanh", "ceil", "sinh", "cosh", "atan"):
        together.wait()
        result.append(round(getattr(x, name)().sum().item(), 3))

threads = [Thread(target=compute) for _ in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
result.sort()""",
    "last_plan_kept_without_lock": """
from threading import Barrier, Thread

result, together = {}, Barrier(2)

def compute(name):
    x = torch.full((64,), 3.0, device=d)
    for turn in range(50):  # on a busy machine few of the calls overlap
        together.wait()
        result[name, turn] = round(getattr(x, name)().sum().item(), 3)

threads = [Thread(target=compute, args=(name,)) for name in ("exp", "neg")]
for each in threads:
    each.start()
for each in threads:
    each.join()
result = sorted(result.items())""",
}
