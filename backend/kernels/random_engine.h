// Where random bits come from: the counter-based generator Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As
// Easy as 1, 2, 3" (SC 2011), so that every element draws by itself, in any order.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace refnpu {

// What a launch takes from the device's generator: its seed, and a number that no other launch under this seed has.
struct Draw {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t seed) {
  uint32_t key0 = uint32_t(seed), key1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xD2511F53u) * counter[0], b = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key0, uint32_t(b), uint32_t(a >> 32) ^ counter[3] ^ key1, uint32_t(a)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// The random bits of one element of one launch. Also a uniform random bit generator as <random> wants it.
// The counter has 32 bits for the block within the element, 48 for the element, 48 for the launch.
class Stream {
 public:
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return std::numeric_limits<uint64_t>::max(); }

  Stream(Draw draw, int64_t element) : draw_(draw), element_(uint64_t(element)) {}

  uint64_t operator()() {
    if (left_ == 0) refill();
    --left_;
    return uint64_t(block_[2 * left_]) | uint64_t(block_[2 * left_ + 1]) << 32;
  }

  // In [0, 1), a multiple of 2^-digits.
  double uniform(int digits = 53) { return double((*this)() >> (64 - digits)) / double(uint64_t(1) << digits); }
  // In (0, 1), both ends excluded.
  double open_uniform() { return (double((*this)() >> 12) + 0.5) / double(uint64_t(1) << 52); }
  // In [0, range), or any 64 bits when range is 0.
  uint64_t below(uint64_t range) {
    const uint64_t bits = (*this)();
    return range == 0 ? bits : uint64_t((static_cast<unsigned __int128>(bits) * range) >> 64);
  }

 private:
  void refill() {
    const uint32_t high = uint32_t(element_ >> 32) << 16 | uint32_t(draw_.offset >> 32 & 0xffff);
    block_ = philox({blocks_++, uint32_t(element_), uint32_t(draw_.offset), high}, draw_.seed);
    left_ = 2;
  }

  Draw draw_;
  uint64_t element_;
  uint32_t blocks_ = 0;
  int left_ = 0;
  std::array<uint32_t, 4> block_{};
};

}  // namespace refnpu
