// What the tests of late work are written with.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/driver_test.h"

inline npuStream_t new_stream() {
  npuStream_t stream = nullptr;
  EXPECT(npuStreamCreate(&stream) == npuSuccess);
  return stream;
}

inline npuEvent_t new_event() {
  npuEvent_t event = nullptr;
  EXPECT(npuEventCreate(&event) == npuSuccess);
  return event;
}

template <class Body>
npuError_t launch_on(npuStream_t stream, const Body& body, const char* name = "test") {
  static_assert(std::is_trivially_copyable_v<Body>, "a launch copies bytes");
  return npuLaunch(stream, name, [](const void* it) { (*static_cast<const Body*>(it))(); }, &body, sizeof body);
}

// Work that ends when the test says so.
class Gate {
 public:
  explicit Gate(npuStream_t stream) {
    EXPECT(launch_on(stream, [this] {
             started_ = true;
             while (!open_) std::this_thread::yield();
             passed_ = true;
           }) == npuSuccess);
    while (!started_) npuStreamQuery(stream);  // which starts recorded work, too
  }
  ~Gate() {
    open();
    while (!passed_) std::this_thread::yield();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() { open_ = true; }

 private:
  std::atomic<bool> started_{false}, open_{false}, passed_{false};
};

// For what must not happen meanwhile.
inline void let_time_pass() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }
