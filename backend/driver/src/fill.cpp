// The fills by name, chosen by REFNPU_FILL_FRESH and REFNPU_FILL_FREED or at run time.
#include "driver/src/fill.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "driver/src/mix.h"
#include "driver/src/near_names.h"

namespace refnpu::driver {
namespace {

enum class Kind : uint8_t { none, byte, random };

// Aligned as its atomic is, without which Clang asks libatomic.
struct alignas(8) Fill {
  Kind kind = Kind::none;
  uint8_t byte = 0;
  uint32_t seed = 0;
};
static_assert(std::atomic<Fill>::is_always_lock_free, "read and written by threads in one piece");

struct Fills {
  std::atomic<Fill> fresh{}, freed{};
  std::atomic<uint64_t> filled{0};  // blocks, so that each gets other random bytes, the same in every run
  std::string error;
};

template <class Number>
std::optional<Number> parse(std::string_view text, int base) {
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// All bits set is NaN in every floating dtype that has more than one.
std::optional<Fill> fill_named(std::string_view name) {
  if (name == "none") return Fill{};
  if (name == "zero") return Fill{Kind::byte, 0};
  if (name == "nan") return Fill{Kind::byte, 0xFF};
  if (name.substr(0, 2) == "0x") {
    auto byte = parse<uint8_t>(name.substr(2), 16);
    return byte ? std::optional(Fill{Kind::byte, *byte}) : std::nullopt;
  }
  constexpr std::string_view kRandom = "random:";
  if (name.substr(0, kRandom.size()) != kRandom) return std::nullopt;
  auto seed = parse<uint32_t>(name.substr(kRandom.size()), 10);
  return seed ? std::optional(Fill{Kind::random, 0, *seed}) : std::nullopt;
}

std::string set(std::atomic<Fill>& which, std::string_view name) {
  auto fill = fill_named(name);
  if (!fill) return unknown_name("fill", name, {"none", "zero", "nan", "0xAB", "random:1"});
  which = *fill;
  return {};
}

void read(const char* variable, std::atomic<Fill>& which, std::string* error) {
  const char* name = std::getenv(variable);
  if (!name || !*name) return;
  std::string wrong = set(which, name);
  if (!wrong.empty()) *error = std::string(variable) + ": " + wrong;
}

Fills& fills() {
  static Fills* instance = [] {
    auto* made = new Fills;
    read("REFNPU_FILL_FRESH", made->fresh, &made->error);
    read("REFNPU_FILL_FREED", made->freed, &made->error);
    return made;
  }();
  return *instance;
}

uint64_t next_bits(uint64_t* state) {
  const uint64_t bits = mixed(*state);
  *state += kGamma;
  return bits;
}

void fill_random(const Block& block, uint32_t seed) {
  uint64_t state = (uint64_t{seed} << 32) + fills().filled.fetch_add(1, std::memory_order_relaxed);
  state = next_bits(&state);
  for (size_t at = 0; at < block.size; at += sizeof state) {
    uint64_t bits = next_bits(&state);
    std::memcpy(block.start + at, &bits, std::min(sizeof bits, block.size - at));
  }
}

void apply(const Fill& fill, const Block& block) {
  if (fill.kind == Kind::byte) std::memset(block.start, fill.byte, block.size);
  if (fill.kind == Kind::random) fill_random(block, fill.seed);
}

}  // namespace

void fill_fresh(const Block& block) { apply(fills().fresh.load(std::memory_order_relaxed), block); }
void fill_freed(const Block& block) { apply(fills().freed.load(std::memory_order_relaxed), block); }

std::string set_fill_of_fresh(std::string_view name) { return set(fills().fresh, name); }
std::string set_fill_of_freed(std::string_view name) { return set(fills().freed, name); }

const std::string& fill_environment_error() { return fills().error; }

}  // namespace refnpu::driver
