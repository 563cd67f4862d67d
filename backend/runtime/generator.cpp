// The device generator's seed and state, and the default generator of each device.
#include "runtime/generator.h"

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "refnpu/fault.h"
#include "refnpu/guard.h"
#include "runtime/version.h"

namespace refnpu {

NpuGenerator::NpuGenerator(c10::DeviceIndex device)
    : c10::GeneratorImpl(c10::Device(kDevice, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      inner_(at::detail::createCPUGenerator()) {}

c10::DeviceType NpuGenerator::device_type() { return kDevice; }

std::unique_lock<std::mutex> NpuGenerator::lock_state() const {
  return std::unique_lock(inner_.unsafeGetGeneratorImpl()->mutex_);
}

void NpuGenerator::set_current_seed(uint64_t seed) {
  if (fault(Fault::seed_ignored)) return;
  const auto lock = lock_state();
  if (!first_seed_) first_seed_ = seed;
  if (fault(Fault::later_seed_restarts_first)) seed = *first_seed_;
  if (restored_ && seed == inner_.current_seed() && fault(Fault::same_seed_after_set_state_ignored)) return;
  restored_ = offset_set_ = false;
  earlier_seed_.reset();
  if (int64_t(seed) < 0 && fault(Fault::seed_of_negative_by_magnitude)) seed = uint64_t(0) - seed;
  inner_.set_current_seed(fault(Fault::seed_in_32_bits) ? uint32_t(seed) : seed);
}
uint64_t NpuGenerator::current_seed() const {
  const auto lock = lock_state();
  return earlier_seed_ && fault(Fault::set_state_keeps_seed) ? *earlier_seed_ : inner_.current_seed();
}
uint64_t NpuGenerator::seed() {
  const auto lock = lock_state();
  earlier_seed_.reset();
  if (fault(Fault::seed_told_in_32_bits)) return uint32_t(inner_.seed());
  if (!fault(Fault::chosen_seed_is_default)) return inner_.seed();
  inner_.set_current_seed(c10::default_rng_seed_val);
  return inner_.current_seed();
}
// A Mersenne twister has no offset: all is in the state. torch asks for one when it pickles a generator of a device.
void NpuGenerator::set_offset(uint64_t offset) {
  TORCH_CHECK_NOT_IMPLEMENTED(offset == 0, "npu generator: a Mersenne twister has no offset; use set_state");
  offset_set_ = true;
}
uint64_t NpuGenerator::get_offset() const { return 0; }
void NpuGenerator::set_state(const c10::TensorImpl& state) {
  if (fault(Fault::set_state_keeps_seed)) earlier_seed_ = current_seed();
  if (std::exchange(offset_set_, false) && fault(Fault::unpickled_generator_starts_anew)) return;
  const bool mismatched = state.numel() != get_state()->numel();
  if (mismatched && fault(Fault::generator_state_of_wrong_size_ignored)) return;
  const auto lock = lock_state();
  if (mismatched && fault(Fault::refused_state_restarts_generator)) inner_.set_current_seed(inner_.current_seed());
  restored_ = true;
  inner_.unsafeGetGeneratorImpl()->set_state(state);
  if (fault(Fault::set_state_forgets_position)) inner_.set_current_seed(inner_.current_seed());
}
c10::intrusive_ptr<c10::TensorImpl> NpuGenerator::get_state() const {
  const auto lock = lock_state();
  auto state = inner_.unsafeGetGeneratorImpl()->get_state();
  return fault(Fault::get_state_aliases) ? written_over(state) : state;
}

c10::intrusive_ptr<c10::TensorImpl> NpuGenerator::written_over(const c10::intrusive_ptr<c10::TensorImpl>& state) const {
  if (!handed_out_) handed_out_ = state;
  std::memcpy(handed_out_->mutable_data(), state->data(), state->numel() * state->itemsize());
  return handed_out_;
}

NpuGenerator* NpuGenerator::clone_impl() const {
  const auto lock = lock_state();
  auto* copy = new NpuGenerator(fault(Fault::generator_cloned_on_current_device) ? current_device() : device_.index());
  copy->inner_ = fault(Fault::generator_clone_shares_state) ? inner_ : inner_.clone();
  return copy;
}

at::Generator make_generator(c10::DeviceIndex device) {
  return at::make_generator<NpuGenerator>(device < 0 ? current_device() : device);
}

namespace {

const std::thread::id main_thread = std::this_thread::get_id();  // that which loads the library

std::vector<at::Generator> one_for_each_device() {
  std::vector<at::Generator> generators;
  for (c10::DeviceIndex each = 0; each < device_count(); ++each) generators.push_back(make_generator(each));
  return generators;
}

// The fault of generators that each thread makes for itself.
const std::vector<at::Generator>& generators_of_thread() {
  thread_local const std::vector<at::Generator> own = one_for_each_device();
  return own;
}

// The fault of generators that are seeded when they are used first, whatever seed they were given before.
void seed_once(at::Generator generator) {
  static std::atomic<uint64_t> seeded{0};
  const uint64_t bit = uint64_t(1) << generator.device().index();
  if (!(seeded.fetch_or(bit) & bit)) generator.set_current_seed(c10::default_rng_seed_val);
}

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const auto* of_process = new std::vector<at::Generator>(one_for_each_device());
  const bool own = fault(Fault::generators_of_each_thread) && std::this_thread::get_id() != main_thread;
  const auto* all = own ? &generators_of_thread() : of_process;
  c10::DeviceIndex index = device < 0 ? current_device() : device;
  TORCH_CHECK(index < device_count(), "npu:", int(index), " does not exist: there are ", int(device_count()),
              " devices");
  return (*all)[fault(Fault::second_device_shares_generator) ? 0 : index];
}

at::Generator inner_generator(const std::optional<at::Generator>& generator, c10::DeviceIndex device) {
  const bool of_host = generator && generator->defined() && generator->device().is_cpu();
  const bool given = generator && generator->defined() && !(of_host && fault(Fault::host_generator_accepted));
  const at::Generator& chosen = given ? *generator : default_generator(device);
  if (!given && fault(Fault::seed_before_first_draw_lost)) seed_once(chosen);
  TORCH_CHECK(chosen.device().type() == kDevice, "Expected a 'npu' device type for generator but found '",
              chosen.device().type(), "'");
  const at::Generator* drawn = &chosen;
  if (given && fault(Fault::given_generator_kept_by_device)) {
    thread_local std::map<c10::DeviceIndex, at::Generator> kept;
    drawn = &kept.try_emplace(chosen.device().index(), chosen).first->second;
  }
  return static_cast<NpuGenerator*>(drawn->unsafeGetGeneratorImpl())->inner();
}

namespace {

// The fault of a draw between whose read and write of the state other threads may draw.
uint64_t draw_unlocked(at::Generator inner) {
  at::Generator copy;
  {
    std::lock_guard lock(inner.mutex());
    copy = inner.clone();
  }
  const uint64_t drawn = at::check_generator<at::CPUGeneratorImpl>(copy)->random64();
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  std::lock_guard lock(inner.mutex());
  inner.set_state(copy.get_state());
  return drawn;
}

}  // namespace

uint64_t draw_seed(const std::optional<at::Generator>& generator, c10::DeviceIndex device) {
  at::Generator inner = inner_generator(generator, device);
  auto* engine = at::check_generator<at::CPUGeneratorImpl>(inner);
  if (fault(Fault::draws_of_threads_unlocked)) return draw_unlocked(inner);
  std::lock_guard lock(engine->mutex_);
  return engine->random64();
}

uint64_t peek_seed(const std::optional<at::Generator>& generator, c10::DeviceIndex device) {
  at::Generator inner = inner_generator(generator, device);
  const at::Tensor before = inner.get_state();
  const uint64_t seed = draw_seed(generator, device);
  inner.set_state(before);
  return seed;
}

}  // namespace refnpu
