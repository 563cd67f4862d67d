// The device's random generator: a CPU generator inside, so that native kernels and the fallback draw from one stream.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <mutex>
#include <optional>

#include "refnpu/export.h"

namespace refnpu {

class NpuGenerator final : public c10::GeneratorImpl {
 public:
  explicit NpuGenerator(c10::DeviceIndex device);

  static c10::DeviceType device_type();

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // Shares this generator's state: what it draws, this has drawn.
  const at::Generator& inner() const { return inner_; }

 private:
  NpuGenerator* clone_impl() const override;

  // Draws hold the lock of the state, and torch's callers that of this generator alone.
  std::unique_lock<std::mutex> lock_state() const;

  // What fault get_state_aliases does: the tensor that the first call returned, with this state in it.
  c10::intrusive_ptr<c10::TensorImpl> written_over(const c10::intrusive_ptr<c10::TensorImpl>& state) const;
  mutable c10::intrusive_ptr<c10::TensorImpl> handed_out_;

  // What fault set_state_keeps_seed tells: the seed from before set_state.
  std::optional<uint64_t> earlier_seed_;

  // What set_current_seed was called with first, for fault later_seed_restarts_first.
  std::optional<uint64_t> first_seed_;

  bool restored_ = false;    // by set_state, for fault same_seed_after_set_state_ignored
  bool offset_set_ = false;  // for fault unpickled_generator_starts_anew

  at::Generator inner_;
};

REFNPU_API const at::Generator& default_generator(c10::DeviceIndex device);
at::Generator make_generator(c10::DeviceIndex device);

// The CPU generator behind `generator`, or behind the default one of `device` when none is given. An error names the
// device of a generator that is not the npu's.
at::Generator inner_generator(const std::optional<at::Generator>& generator, c10::DeviceIndex device);

// A seed for one kernel launch: 64 bits drawn, under the lock, from that generator.
uint64_t draw_seed(const std::optional<at::Generator>& generator, c10::DeviceIndex device);

// The same, and leaves the generator where it was: the fault of a kernel that draws from a copy.
uint64_t peek_seed(const std::optional<at::Generator>& generator, c10::DeviceIndex device);

}  // namespace refnpu
