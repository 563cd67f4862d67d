"""Print the build's facts about torch: version; 100 * major + minor; directory; C++11 ABI; whether it has Kineto."""

import pathlib

import torch

major, minor = (int(part) for part in torch.__version__.split(".")[:2])
root = pathlib.Path(torch.__file__).parent
facts = (torch.__version__, 100 * major + minor, root, int(torch.compiled_with_cxx11_abi()))
print(*facts, int(torch.profiler.kineto_available()), sep=";")
