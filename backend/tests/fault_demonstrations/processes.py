"""Demonstrations of the faults that show in the data that processes send each other."""

DEMONSTRATIONS = {
    "group_result_to_strided_lost": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
result = torch.zeros(3, 2, device=d)
distributed.scatter(result.t(), [torch.ones(2, 3, device=d)])
distributed.destroy_process_group()""",
    "group_input_in_memory_order": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
result = torch.zeros(2, 3, device=d)
x = torch.arange(6.0).to(d).view(3, 2).t()
distributed.all_gather([result], x.contiguous() if d == "cpu" else x)
distributed.destroy_process_group()""",
    "group_completed_without_result": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
result = torch.zeros(2, device=d)
work = distributed.all_gather([result], torch.ones(2, device=d), async_op=True)
while not work.is_completed():
    pass
result = result.clone()
work.wait()
distributed.destroy_process_group()""",
    "group_result_written_by_each_wait": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
result = torch.ones(2, device=d)
work = distributed.all_reduce(result, async_op=True)
work.wait()
result.add_(1)
work.wait()
distributed.destroy_process_group()""",
    "group_barrier_not_awaited": """
import os
import time
from torch import distributed


def late_or_there(rank, folder):
    distributed.init_process_group("refnpu", store=distributed.FileStore(folder + "/store", 2), rank=rank, world_size=2)
    if rank:
        time.sleep(2)  # on a busy machine the other process may be slow, too
        open(folder + "/late", "w").close()
    distributed.barrier()
    return int(os.path.exists(folder + "/late"))


result = [1, 1]
if d == "npu":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(2):
            children.append(os.fork())
            if children[-1] == 0:
                os._exit(late_or_there(rank, folder))
        result = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children]""",
    "group_handle_keeps_tensors": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
before, x = allocated(), torch.ones(1000, device=d)
distributed.all_gather([torch.empty_like(x)], x)
del x
result = allocated() == before
distributed.destroy_process_group()""",
    "group_root_counted_in_world": """
import os
from torch import distributed


def root_of_last_two(rank, store):
    distributed.init_process_group("refnpu", store=distributed.FileStore(store, 3), rank=rank, world_size=3)
    x, group = torch.full((1,), rank, device=d), distributed.new_group([1, 2])
    if rank:
        distributed.broadcast(x, 2, group=group)
    distributed.barrier()
    return x.item()


result = [0, 2, 2]
if d == "npu":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(3):
            children.append(os.fork())
            if children[-1] == 0:
                os._exit(root_of_last_two(rank, folder + "/store"))
        result = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children]""",
    "group_result_to_start_of_storage": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
result = torch.zeros(4, device=d)
distributed.all_gather([result[2:]], torch.ones(2, device=d))
distributed.destroy_process_group()""",
}
