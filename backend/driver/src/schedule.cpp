// The schedule of late work: the mode, and the delay of each piece of work.
#include "driver/src/schedule.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "driver/src/environment.h"
#include "driver/src/error.h"
#include "driver/src/mix.h"
#include "refnpu/driver.h"

namespace refnpu::driver {
namespace {

constexpr uint64_t kLongest = 10'000'000;  // microseconds
constexpr std::string_view kRandom = "random:";

// Aligned as its atomic is, without which Clang asks libatomic.
struct alignas(8) Delay {
  uint32_t number = 0;  // microseconds, or the seed
  bool random = false;
};
static_assert(std::atomic<Delay>::is_always_lock_free, "read and written by threads in one piece");

struct Schedule {
  std::atomic<bool> late{false}, lazy{false}, been_late{false}, blocking{false};
  std::atomic<Delay> delay{};
  std::string error;
};

bool parse(std::string_view digits, uint64_t largest, uint32_t* number) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value > largest) return false;
  *number = static_cast<uint32_t>(value);
  return true;
}

std::string store_delay(std::atomic<Delay>& stored, std::string_view text) {
  Delay delay;
  delay.random = text.substr(0, kRandom.size()) == kRandom;
  const bool valid = delay.random ? parse(text.substr(kRandom.size()), UINT32_MAX, &delay.number)
                                  : parse(text, kLongest, &delay.number);
  if (!valid) {
    return "delay '" + std::string(text) + "': expected microseconds from 0 to " + std::to_string(kLongest) +
           ", or random:SEED with a seed from 0 to " + std::to_string(UINT32_MAX);
  }
  stored = delay;
  return {};
}

Schedule& schedule() {
  static Schedule* instance = [] {
    auto* made = new Schedule;
    made->late = number_from_environment("REFNPU_LATE", 0, 0, 1, &made->error) == 1;
    made->lazy = number_from_environment("REFNPU_LAZY", 0, 0, 1, &made->error) == 1;
    made->been_late = made->late || made->lazy;
    made->blocking = number_from_environment("REFNPU_LAUNCH_BLOCKING", 0, 0, 1, &made->error) == 1;
    const char* delay = std::getenv("REFNPU_DELAY_US");
    if (!delay || !*delay) return made;
    if (std::string wrong = store_delay(made->delay, delay); !wrong.empty()) made->error = "REFNPU_DELAY_US: " + wrong;
    return made;
  }();
  return *instance;
}

// Three of four pieces of work start at once, so that one stream overtakes another that has to wait.
std::chrono::microseconds random_delay(uint64_t bits) {
  const uint64_t amount = bits >> 8;
  if ((bits & 3) != 0) return std::chrono::microseconds(0);
  return std::chrono::microseconds((bits & 12) != 0 ? amount % 200 : amount % 1000);
}

}  // namespace

bool is_lazy() { return schedule().lazy.load(std::memory_order_relaxed); }
bool is_late() { return schedule().late.load(std::memory_order_relaxed) || is_lazy(); }
bool has_been_late() { return schedule().been_late.load(std::memory_order_relaxed); }
bool launch_blocking() { return schedule().blocking.load(std::memory_order_relaxed); }

void set_late(bool late) {
  if (late) schedule().been_late = true;
  schedule().late = late;
  if (!late) schedule().lazy = false;
}

void set_lazy(bool lazy) {
  if (lazy) schedule().been_late = true;
  schedule().lazy = lazy;
}

std::chrono::microseconds delay_of(uint64_t stream, uint64_t work) {
  const Delay delay = schedule().delay.load(std::memory_order_relaxed);
  if (!delay.random) return std::chrono::microseconds(delay.number);
  return random_delay(mixed(mixed(mixed(delay.number) + stream) + work));
}

std::string set_delay(const std::string& text) { return store_delay(schedule().delay, text); }

const std::string& schedule_environment_error() { return schedule().error; }

}  // namespace refnpu::driver

using namespace refnpu::driver;  // NOLINT: the API's own definitions follow

extern "C" {

npuError_t npuSetLate(int late) {
  set_late(late != 0);
  return npuSuccess;
}

int npuIsLate(void) { return is_late(); }

npuError_t npuSetLazy(int lazy) {
  set_lazy(lazy != 0);
  return npuSuccess;
}

int npuIsLazy(void) { return is_lazy(); }

npuError_t npuSetDelay(const char* delay) {
  if (!delay) return fail(npuErrorInvalidValue, "npuSetDelay: null delay");
  const std::string wrong = set_delay(delay);
  return wrong.empty() ? npuSuccess : fail(npuErrorInvalidValue, "npuSetDelay: " + wrong);
}

}  // extern "C"
