"""Prints what the build must know of the installed torch: version; 100 * major + minor; directory; C++11 ABI."""

import pathlib

import torch

major, minor = (int(part) for part in torch.__version__.split(".")[:2])
root = pathlib.Path(torch.__file__).parent
print(torch.__version__, 100 * major + minor, root, int(torch.compiled_with_cxx11_abi()), sep=";")
