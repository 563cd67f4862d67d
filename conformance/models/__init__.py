"""The recorded models that ship with the suite: the ATen calls of their programs, without the values of tensors."""
