// How host code reaches device memory: by submitting a kernel to the current stream, and in no other way.
#pragma once

#include <memory>
#include <type_traits>

#include "refnpu/check.h"
#include "refnpu/driver.h"

namespace refnpu {

// Submits `body()` to the current stream of the current device. `body` captures pointers, numbers and kernels' own
// plain structs (View, Nest) by value: the driver keeps a bitwise copy of it until it has run. `kernel` is a literal;
// faults, diagnoses and profiles go by that name.
template <class Body>
void launch(const char* kernel, Body&& body) {
  using Plain = std::remove_cvref_t<Body>;
  static_assert(std::is_trivially_copyable_v<Plain>, "a kernel captures plain data by value: no tensors, no vectors");
  static_assert(alignof(Plain) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__, "the driver's copy is aligned as malloc aligns");
  npuStream_t stream = nullptr;
  int device = 0;
  REFNPU_CHECK(npuGetDevice(&device));
  REFNPU_CHECK(npuGetCurrentStream(&stream, device));
  const auto run = [](const void* arguments) { (*static_cast<const Plain*>(arguments))(); };
  REFNPU_CHECK(npuLaunch(stream, kernel, run, std::addressof(body), sizeof(Plain)));
}

}  // namespace refnpu
