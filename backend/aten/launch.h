// How host code reaches device memory: by submitting a kernel to the current stream, and in no other way.
#pragma once

#include <memory>
#include <type_traits>

#include "refnpu/driver.h"
#include "refnpu/fault.h"
#include "runtime/check.h"

namespace refnpu {

// Submits `body()` to the current stream of the current device. `body` captures pointers, numbers and kernels' own
// plain structs (View, Nest) by value: the driver keeps a bitwise copy of it until it has run. `kernel` is a literal;
// faults and diagnoses go by that name.
template <class Body>
void launch(const char* kernel, Body&& body) {
  using Plain = std::remove_cvref_t<Body>;
  static_assert(std::is_trivially_copyable_v<Plain>, "a kernel captures plain data by value: no tensors, no vectors");
  npuStream_t stream = nullptr;
  int device = 0;
  check(npuGetDevice(&device));
  check(npuGetCurrentStream(&stream, device));
  auto run = [](const void* arguments) { (*static_cast<const Plain*>(arguments))(); };
  check(npuLaunch(stream, kernel, run, std::addressof(body), sizeof(Plain)));
}

}  // namespace refnpu
