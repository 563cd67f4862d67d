// The one place where torch versions differ, on the C++ side. REFNPU_TORCH is 100 * major + minor of the torch that
// this is compiled against (2.13 is 213), defined by the build.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/ScalarType.h>

#include <string>

#ifndef REFNPU_TORCH
#error "REFNPU_TORCH is not defined: build with the CMakeLists.txt of this directory"
#endif

// 2.9: c10::DeviceAllocator is what torch.accelerator.memory_* asks. Before, an allocator is a plain c10::Allocator.
#define REFNPU_HAS_DEVICE_ALLOCATOR (REFNPU_TORCH >= 209)
// 2.10: DeviceAllocator::getMemoryInfo and DeviceGuardImplInterface::getDeviceCapability.
#define REFNPU_HAS_MEMORY_INFO (REFNPU_TORCH >= 210)
// 2.7: hooks make generators; before, REGISTER_GENERATOR_PRIVATEUSE1 does.
#define REFNPU_HOOKS_MAKE_GENERATORS (REFNPU_TORCH >= 207)
// 2.8: pinned memory comes from a HostAllocator registered for the device; before, from the hooks.
#define REFNPU_HAS_HOST_ALLOCATOR (REFNPU_TORCH >= 208)

// 2.8: getStream and exchangeStream of a device guard may throw. Before, an error there ends the process.
#define REFNPU_STREAM_CALLS_MAY_THROW (REFNPU_TORCH >= 208)

// 2.13: a device gives Kineto a profiler of its own. USE_KINETO is defined by the build where torch has Kineto.
#if defined(USE_KINETO) && __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)
#define REFNPU_HAS_ACTIVITY_PROFILER 1
#else
#define REFNPU_HAS_ACTIVITY_PROFILER 0
#endif

// uint16, uint32 and uint64 come to CPU's ops bit by bit, and the npu takes what CPU takes. Measured on 2.6, 2.8, 2.13
// and 2.15: where and signbit have them from 2.13, the ops that take a minimum or maximum from 2.15.
#define REFNPU_WHERE_TAKES_WIDE_UNSIGNED (REFNPU_TORCH >= 213)
#define REFNPU_EXTREMA_TAKE_WIDE_UNSIGNED (REFNPU_TORCH >= 215)
// 2.14: arange counts the steps to a fractional bound before it cuts the values to int64; before, it cuts the bounds.
#define REFNPU_ARANGE_COUNTS_FRACTIONS (REFNPU_TORCH >= 214)
// 2.8: elu and selu take expm1 of a small number; before, exp minus 1, which cancels.
#define REFNPU_ELU_TAKES_EXPM1 (REFNPU_TORCH >= 208)
// 2.15: a bound that clamp cannot represent is left out, or refused if no element could be within it. Before, the bound
// is converted to the dtype: -1 is 255 in uint8, and more than 255 raises.
#define REFNPU_CLAMP_LEAVES_BOUNDS_OUT (REFNPU_TORCH >= 215)
// 2.8: where takes the 8-bit floats.
#define REFNPU_WHERE_TAKES_FLOAT8 (REFNPU_TORCH >= 208)

// 2.8: an op that has no kernel for a dtype raises NotImplementedError. In 2.6 it raises RuntimeError.
#if REFNPU_TORCH >= 208
#define REFNPU_CHECK_DTYPE TORCH_CHECK_NOT_IMPLEMENTED
#else
#define REFNPU_CHECK_DTYPE TORCH_CHECK
#endif

// 2.14: relu and hardtanh refuse booleans with NotImplementedError. Before, they raise RuntimeError.
#if REFNPU_TORCH >= 214
#define REFNPU_CHECK_NOT_BOOL TORCH_CHECK_NOT_IMPLEMENTED
#else
#define REFNPU_CHECK_NOT_BOOL TORCH_CHECK
#endif

#if REFNPU_HAS_DEVICE_ALLOCATOR
#include <c10/core/CachingDeviceAllocator.h>
#endif
#if REFNPU_HAS_HOST_ALLOCATOR
#include <ATen/core/CachingHostAllocator.h>
#endif

namespace refnpu {

// 2.14: bfloat16 and a complex number are promoted to pairs of bfloat16, which the device has no kernels for.
constexpr bool is_pair_of_bfloat16([[maybe_unused]] c10::ScalarType dtype) {
#if REFNPU_TORCH >= 214
  return dtype == c10::ScalarType::BComplex32;
#else
  return false;
#endif
}

#if REFNPU_HAS_DEVICE_ALLOCATOR
using DeviceAllocatorBase = c10::DeviceAllocator;
#else
using DeviceAllocatorBase = c10::Allocator;
#endif

#if REFNPU_HAS_HOST_ALLOCATOR
using HostAllocatorBase = at::HostAllocator;
#else
using HostAllocatorBase = c10::Allocator;
#endif

// 2.8: a storage can refuse its use with words of the backend's own.
template <class Storage>
inline constexpr bool can_refuse_access =
    requires(Storage* storage) { storage->release_data_and_set_meta_custom_data_ptr_error_msg_(std::string()); };

template <class Storage>
void refuse_access(Storage* storage, const std::string& message) {
  if constexpr (can_refuse_access<Storage>) storage->release_data_and_set_meta_custom_data_ptr_error_msg_(message);
}

}  // namespace refnpu

// `override` for what a torch version may not have yet.
#if REFNPU_HOOKS_MAKE_GENERATORS
#define REFNPU_OVERRIDE_SINCE_2_7 override
#else
#define REFNPU_OVERRIDE_SINCE_2_7
#endif
