// Late work: order, lifetimes, copies, errors, and the end of a process. test_late.py runs these with REFNPU_LATE=1.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "driver/src/schedule.h"
#include "tests/driver_test.h"

namespace {

npuStream_t new_stream() {
  npuStream_t stream = nullptr;
  EXPECT(npuStreamCreate(&stream) == npuSuccess);
  return stream;
}

npuEvent_t new_event() {
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

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }  // for what must not happen meanwhile

PRINTS(work_is_pending_until_it_is_awaited) {
  npuStream_t stream = new_stream();
  npuEvent_t before = new_event(), after = new_event();
  std::atomic<int> done{0};
  EXPECT(npuEventRecord(before, stream) == npuSuccess && npuEventSynchronize(before) == npuSuccess);
  Gate gate(stream);
  launch_on(stream, [&] { done = 1; });
  EXPECT(npuEventRecord(after, stream) == npuSuccess);
  pause();
  float milliseconds = 0;
  EXPECT(done == 0 && npuStreamQuery(stream) == npuErrorNotReady && npuEventQuery(after) == npuErrorNotReady);
  EXPECT(npuEventQuery(before) == npuSuccess);
  EXPECT(npuEventElapsedTime(&milliseconds, before, after) == npuErrorNotReady && message_has("synchronize it first"));
  gate.open();
  EXPECT(npuEventSynchronize(after) == npuSuccess && done == 1 && npuEventQuery(after) == npuSuccess);
  EXPECT(npuStreamSynchronize(stream) == npuSuccess && npuStreamQuery(stream) == npuSuccess);
  EXPECT(npuEventElapsedTime(&milliseconds, before, after) == npuSuccess && milliseconds >= 30);
}

PRINTS(streams_run_beside_each_other) {
  npuStream_t slow = new_stream(), quick = new_stream();
  std::atomic<int> done{0};
  Gate gate(slow);
  launch_on(quick, [&] { done = 1; });
  EXPECT(npuStreamSynchronize(quick) == npuSuccess && done == 1);
  EXPECT(npuStreamQuery(slow) == npuErrorNotReady);
}

PRINTS(a_stream_waits_for_an_event_of_another) {
  npuStream_t first = new_stream(), second = new_stream();
  npuEvent_t event = new_event();
  std::atomic<int> value{0}, seen{-1};
  Gate gate(first);
  launch_on(first, [&] { value = 7; });
  EXPECT(npuEventRecord(event, first) == npuSuccess && npuStreamWaitEvent(second, event) == npuSuccess);
  EXPECT(npuEventDestroy(event) == npuSuccess);  // what was recorded stays waited for
  launch_on(second, [&] { seen = value.load(); });
  pause();
  EXPECT(seen == -1 && npuStreamQuery(second) == npuErrorNotReady);
  gate.open();
  EXPECT(npuStreamSynchronize(second) == npuSuccess && seen == 7);
}

PRINTS(devices_wait_for_events_of_each_other) {
  npuStream_t here = nullptr, there = nullptr;
  EXPECT(npuGetDefaultStream(&here, 0) == npuSuccess && npuGetDefaultStream(&there, 1) == npuSuccess);
  npuEvent_t event = new_event();
  std::atomic<int> value{0}, seen{-1};
  Gate gate(here);
  launch_on(here, [&] { value = 7; });
  EXPECT(npuEventRecord(event, here) == npuSuccess && npuStreamWaitEvent(there, event) == npuSuccess);
  launch_on(there, [&] { seen = value.load(); });
  pause();
  EXPECT(seen == -1);
  gate.open();
  EXPECT(npuStreamSynchronize(there) == npuSuccess && seen == 7);
}

PRINTS(an_event_recorded_again_moves_for_those_who_ask_later) {
  npuStream_t first = new_stream(), second = new_stream();
  npuEvent_t event = new_event();
  std::atomic<int> done{0};
  EXPECT(npuEventRecord(event, first) == npuSuccess && npuStreamWaitEvent(second, event) == npuSuccess);
  EXPECT(npuEventSynchronize(event) == npuSuccess);
  Gate gate(first);
  EXPECT(npuEventRecord(event, first) == npuSuccess && npuEventQuery(event) == npuErrorNotReady);
  launch_on(second, [&] { done = 1; });
  EXPECT(npuStreamSynchronize(second) == npuSuccess && done == 1);  // it waits for the first recording alone
}

PRINTS(a_device_is_synchronized_with_all_its_streams) {
  npuStream_t stream = new_stream();
  std::atomic<int> done{0};
  std::thread opens;
  {
    Gate gate(stream);
    launch_on(stream, [&] { ++done; });
    launch_on(nullptr, [&] { ++done; });
    opens = std::thread([&] { pause(), gate.open(); });
    EXPECT(npuDeviceSynchronize() == npuSuccess && done == 2);
    opens.join();
  }
}

// Memory ---------------------------------------------------------------------------------------------------------

// Frees a block while work on `stream` that reads it is queued, and takes the freed memory for others.
int read_after_free(npuStream_t stream, bool recorded) {
  npuSetFill(nullptr, "0xDD");
  char* block = allocate(64);
  EXPECT(npuMemset(block, 7, 64) == npuSuccess && npuDeviceSynchronize() == npuSuccess);
  if (recorded) EXPECT(npuRecordStream(block + 9, stream) == npuSuccess);
  std::atomic<int> read{-1};
  Gate gate(stream);
  launch_on(stream, [&read, block] { read = static_cast<unsigned char>(block[63]); });
  EXPECT(npuFree(block) == npuSuccess && npuFree(block) == npuErrorDoubleFree && stats().live_bytes == 0);
  std::vector<char*> others;
  for (int i = 0; i < 50; ++i) others.push_back(allocate(64));
  gate.open();
  EXPECT(npuDeviceSynchronize() == npuSuccess);
  for (char* other : others) EXPECT(other != block && npuFree(other) == npuSuccess);
  return read;
}

PRINTS(a_freed_block_lives_until_its_work_is_done) { EXPECT(read_after_free(nullptr, false) == 7); }
PRINTS(a_freed_block_lives_until_the_work_of_recorded_streams_is_done) {
  EXPECT(read_after_free(new_stream(), true) == 7);
}

PRINTS(a_block_belongs_to_the_stream_that_was_current) {
  npuStream_t stream = new_stream(), standard = nullptr;
  npuGetDefaultStream(&standard, 0);
  EXPECT(npuSetCurrentStream(stream) == npuSuccess);
  char* block = allocate(64);
  EXPECT(npuMemset(block, 7, 64) == npuSuccess && npuSetCurrentStream(standard) == npuSuccess);
  std::atomic<int> read{-1};
  Gate gate(stream);
  launch_on(stream, [&read, block] { read = block[0]; });
  EXPECT(npuFree(block) == npuSuccess);
  gate.open();
  EXPECT(npuDeviceSynchronize() == npuSuccess && read == 7);
}

PRINTS(a_pool_reuses_at_once_what_no_queued_work_uses) {
  npuStream_t stream = new_stream();
  Gate gate(stream);
  char* block = allocate(64);
  EXPECT(npuFree(block) == npuSuccess);
  char* again = allocate(64);
  EXPECT(again == block && npuFree(again) == npuSuccess);
}

PRINTS(held_memory_counts_until_it_is_had) {
  npuSetCapacity(0, 1000);
  char* block = allocate(600);
  Gate gate(nullptr);
  EXPECT(npuFree(block) == npuSuccess && stats().live_bytes == 0);
  std::thread opens([&] { pause(), gate.open(); });
  char* other = allocate(600);  // waits for the work that uses the first block
  EXPECT(npuStreamQuery(nullptr) == npuSuccess && stats().failed_allocations == 0);
  opens.join();
  EXPECT(npuFree(other) == npuSuccess);
}

PRINTS(damage_of_a_block_freed_late_is_told_by_a_synchronization) {
  char* block = allocate(64);
  Gate gate(nullptr);
  poke(block + 64, 1);
  EXPECT(npuFree(block) == npuSuccess);
  gate.open();
  EXPECT(npuDeviceSynchronize() == npuErrorDamagedMemory && message_has("written past its end"));
  EXPECT(npuDeviceSynchronize() == npuSuccess);
}

// Copies ---------------------------------------------------------------------------------------------------------

char* pinned(size_t size) {
  void* pointer = nullptr;
  EXPECT(npuMallocHost(&pointer, size) == npuSuccess);
  return static_cast<char*>(pointer);
}

// What arrives of a source that holds 1 and is overwritten with 2 while the copy is queued.
int arrives(char* source, void (*after)(char* source)) {
  npuStream_t stream = nullptr;
  npuGetDefaultStream(&stream, 0);
  char* block = allocate(1);
  *source = 1;
  {
    Gate gate(stream);
    EXPECT(npuMemcpyAsync(block, source, 1, npuMemcpyHostToDevice, stream) == npuSuccess);
    after(source);
  }
  int value = peek(block);
  EXPECT(npuFree(block) == npuSuccess);
  return value;
}

PRINTS(a_pageable_source_may_be_changed_at_once) {
  char source = 0;
  EXPECT(arrives(&source, [](char* it) { *it = 2; }) == 1);
}
PRINTS(a_pinned_source_is_read_in_its_turn) {
  char* source = pinned(1);
  EXPECT(arrives(source, [](char* it) { *it = 2; }) == 2);
  EXPECT(npuFreeHost(source) == npuSuccess);
}
PRINTS(freed_pinned_memory_lives_until_its_copies_are_done) {
  npuSetFill(nullptr, "0xDD");
  EXPECT(arrives(pinned(1), [](char* it) { EXPECT(npuFreeHost(it) == npuSuccess); }) == 1);
}

PRINTS(copies_to_the_host_wait_unless_it_is_pinned) {
  npuStream_t stream = nullptr;
  npuGetDefaultStream(&stream, 0);
  char* block = allocate(1);
  char* target = pinned(1);
  char pageable = 0;
  *target = 0;
  {
    Gate gate(stream);
    poke(block, 5);
    EXPECT(npuMemcpyAsync(target, block, 1, npuMemcpyDeviceToHost, stream) == npuSuccess);
    pause();
    EXPECT(npuStreamQuery(stream) == npuErrorNotReady);
    std::thread opens([&] { pause(), gate.open(); });
    EXPECT(npuMemcpyAsync(&pageable, block, 1, npuMemcpyDeviceToHost, stream) == npuSuccess && pageable == 5);
    opens.join();
  }
  EXPECT(*target == 5);
  *target = 0;
  poke(block, 6);
  EXPECT(npuMemcpy(target, block, 1, npuMemcpyDeviceToHost) == npuSuccess && *target == 6);
  EXPECT(npuFreeHost(target) == npuSuccess && npuFree(block) == npuSuccess);
}

// Errors ---------------------------------------------------------------------------------------------------------

void raises(const void*) { throw std::runtime_error("no such dtype"); }

PRINTS(a_late_error_is_told_once_with_the_kernel_and_the_call) {
  npuStream_t stream = new_stream();
  EXPECT(std::string(npuExchangeCall("an_op")).empty());
  EXPECT(npuLaunch(stream, "cast", raises, nullptr, 0) == npuSuccess);
  EXPECT(std::string(npuExchangeCall(nullptr)) == "an_op");
  std::atomic<int> done{0};
  launch_on(stream, [&] { done = 1; });
  EXPECT(npuStreamSynchronize(stream) == npuErrorLaunchFailure && done == 1);
  EXPECT(message_has("kernel 'cast', submitted by 'an_op', on npu:0: no such dtype"));
  EXPECT(npuStreamSynchronize(stream) == npuSuccess && npuDeviceSynchronize() == npuSuccess);
  for (int i = 0; i < 3; ++i) EXPECT(npuLaunch(stream, "cast", raises, nullptr, 0) == npuSuccess);
  npuSetDevice(1);
  EXPECT(npuDeviceSynchronize() == npuSuccess);  // another device's
  npuSetDevice(0);
  EXPECT(npuDeviceSynchronize() == npuErrorLaunchFailure && message_has("(and 2 more since)"));
  char byte = 0, *block = allocate(1);
  EXPECT(npuLaunch(nullptr, "cast", raises, nullptr, 0) == npuSuccess);
  EXPECT(npuMemcpy(&byte, block, 1, npuMemcpyDeviceToHost) == npuErrorLaunchFailure);
  EXPECT(npuFree(block) == npuSuccess);
}

PRINTS(a_blocking_launch_returns_its_own_error) {
  EXPECT(npuLaunch(nullptr, "cast", raises, nullptr, 0) == npuErrorLaunchFailure);
  EXPECT(message_has("kernel 'cast'") && npuDeviceSynchronize() == npuSuccess);
  std::atomic<int> done{0};
  EXPECT(launch_on(nullptr, [&] { done = 1; }) == npuSuccess && done == 1);
}

PRINTS(an_error_that_was_not_told_is_printed_at_the_exit) {
  EXPECT(npuLaunch(nullptr, "cast", raises, nullptr, 0) == npuSuccess);
  while (npuStreamQuery(nullptr) == npuErrorNotReady) std::this_thread::yield();
}

// Host functions -------------------------------------------------------------------------------------------------

PRINTS(host_functions_run_in_order_and_may_not_wait) {
  static std::atomic<int> value{0};
  static std::array<npuError_t, 5> refused{};
  static npuStream_t own = new_stream();
  launch_on(own, [] { value = 3; });
  const auto callback = [](void* data) {
    value = value * *static_cast<int*>(data);
    refused = {npuDeviceSynchronize(), npuStreamSynchronize(own), npuLaunch(own, "cast", raises, nullptr, 0),
               npuStreamDestroy(own), npuEmptyCache()};
  };
  int factor = 5;
  EXPECT(npuLaunchHostFunction(own, callback, &factor) == npuSuccess);
  EXPECT(npuLaunchHostFunction(own, nullptr, &factor) == npuErrorInvalidValue);
  EXPECT(npuStreamSynchronize(own) == npuSuccess && value == 15);
  for (npuError_t error : refused) EXPECT(error == npuErrorNotPermitted);
}

// Schedules ------------------------------------------------------------------------------------------------------

PRINTS(a_stream_made_synchronous_first_ends_its_queue) {
  std::vector<int> order;
  std::thread opens;
  Gate gate(nullptr);
  launch_on(nullptr, [&] { order.push_back(1); });
  EXPECT(npuSetLate(0) == npuSuccess && npuIsLate() == 0);
  opens = std::thread([&] { pause(), gate.open(); });
  launch_on(nullptr, [&] { order.push_back(2); });
  opens.join();
  EXPECT(order == std::vector<int>({1, 2}));
  launch_on(nullptr, [&] { order.push_back(3); });  // at once
  EXPECT(order.size() == 3 && npuStreamQuery(nullptr) == npuSuccess);
}

PRINTS(the_delays) {
  for (uint64_t stream = 0; stream < 3; ++stream) {
    for (uint64_t work = 1; work <= 20; ++work) {
      std::printf("%ld ", static_cast<long>(refnpu::driver::delay_of(stream, work).count()));
    }
  }
}

PRINTS(a_delay_that_does_not_exist_is_refused) {
  for (const char* delay : {"", "-1", "10000001", "1ms", "random", "random:", "random:-1", "random:4294967296"}) {
    EXPECT(npuSetDelay(delay) == npuErrorInvalidValue && message_has("expected microseconds from 0 to 10000000"));
  }
  EXPECT(npuSetDelay("0") == npuSuccess && npuSetDelay("random:4294967295") == npuSuccess);
}

PRINTS(work_waits_for_its_delay) {
  EXPECT(npuSetDelay("20000") == npuSuccess);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) launch_on(nullptr, [] {});
  EXPECT(npuDeviceSynchronize() == npuSuccess);
  EXPECT(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(60));
}

PRINTS(work_keeps_the_delay_under_which_it_was_submitted) {
  EXPECT(npuSetDelay("20000") == npuSuccess);
  const auto start = std::chrono::steady_clock::now();
  launch_on(nullptr, [] {});
  EXPECT(npuSetDelay("0") == npuSuccess && npuDeviceSynchronize() == npuSuccess);
  EXPECT(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(20));
}

PRINTS(a_full_queue_makes_the_host_wait) {
  std::atomic<int> done{0};
  for (int i = 0; i < 5000; ++i) EXPECT(launch_on(nullptr, [&] { ++done; }) == npuSuccess);
  EXPECT(npuDeviceSynchronize() == npuSuccess && done == 5000);
}

// A random program on four streams of two devices whose result is known: each step adds to cells that another stream
// may have written, behind the event that its stream recorded.
struct Shared {
  std::array<npuStream_t, 4> streams{};
  std::array<char*, 4> cells{};  // device memory, one int64 each
};

void step(Shared& shared, uint64_t& state, std::array<int64_t, 4>& expected) {
  const auto draw = [&](int below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<int>((state >> 33) % below);
  };
  const int from = draw(4), to = draw(4), amount = draw(100);
  npuEvent_t event = new_event();
  EXPECT(npuEventRecord(event, shared.streams[from]) == npuSuccess);
  EXPECT(npuStreamWaitEvent(shared.streams[to], event) == npuSuccess);
  auto* source = reinterpret_cast<int64_t*>(shared.cells[from]);
  auto* target = reinterpret_cast<int64_t*>(shared.cells[to]);
  EXPECT(launch_on(shared.streams[to], [=] { *target = (*target + *source + amount) % 1000003; }) == npuSuccess);
  EXPECT(npuEventRecord(event, shared.streams[to]) == npuSuccess);
  EXPECT(npuStreamWaitEvent(shared.streams[from], event) == npuSuccess);
  EXPECT(npuEventDestroy(event) == npuSuccess);
  expected[to] = (expected[to] + expected[from] + amount) % 1000003;
}

PRINTS(a_random_program_has_the_result_of_its_data_flow) {
  Shared shared;
  std::array<int64_t, 4> expected{};
  for (int i = 0; i < 4; ++i) {
    npuSetDevice(i / 2);
    shared.streams[i] = new_stream();
    shared.cells[i] = allocate(8);
    EXPECT(npuMemset(shared.cells[i], 0, 8) == npuSuccess && npuDeviceSynchronize() == npuSuccess);
  }
  uint64_t state = 5;
  for (int i = 0; i < 300; ++i) step(shared, state, expected);
  for (int i = 0; i < 4; ++i) {
    int64_t found = -1;
    EXPECT(npuStreamSynchronize(shared.streams[i]) == npuSuccess);
    EXPECT(npuMemcpy(&found, shared.cells[i], 8, npuMemcpyDeviceToHost) == npuSuccess && found == expected[i]);
    EXPECT(npuFree(shared.cells[i]) == npuSuccess);
  }
}

PRINTS(threads_share_streams) {
  constexpr int kThreads = 4, kRounds = 100;
  std::array<npuStream_t, 2> streams{new_stream(), new_stream()};
  std::atomic<int> total{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int round = 0; round < kRounds; ++round) {
        npuStream_t stream = streams[(id + round) % 2];
        void* block = nullptr;
        int32_t out = id * kRounds + round, in = -1;
        wrong += npuSetCurrentStream(stream) != npuSuccess || npuMalloc(&block, 4) != npuSuccess;
        wrong += npuMemcpy(block, &out, 4, npuMemcpyHostToDevice) != npuSuccess;
        wrong += launch_on(stream, [&total, block] { total += *static_cast<int32_t*>(block) >= 0; }) != npuSuccess;
        if (round % 3 == 0) wrong += npuMemcpy(&in, block, 4, npuMemcpyDeviceToHost) != npuSuccess || in != out;
        wrong += npuFree(block) != npuSuccess;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT(npuDeviceSynchronize() == npuSuccess && wrong == 0 && total == kThreads * kRounds);
  EXPECT(stats().live_blocks == 0);
}

// The end of streams and processes -------------------------------------------------------------------------------

PRINTS(a_stream_ends_its_work_before_it_is_destroyed) {
  npuStream_t stream = new_stream();
  std::atomic<int> done{0};
  for (int i = 0; i < 100; ++i) launch_on(stream, [&] { ++done; });
  char* block = allocate(8);
  EXPECT(npuRecordStream(block, stream) == npuSuccess);
  EXPECT(npuStreamDestroy(stream) == npuSuccess && done == 100);
  EXPECT(npuFree(block) == npuSuccess && npuStreamSynchronize(stream) == npuErrorInvalidValue);
}

PRINTS(a_process_exits_with_work_queued) {
  // Registered before the driver's handler, so called after it.
  if (std::getenv("AT_EXIT")) std::atexit([] { std::printf("%d", npuDeviceSynchronize()); });
  static int counted[2];  // static: the process does not wait for all of it
  npuStream_t stream = new_stream();
  npuEvent_t event = new_event();
  char* block = allocate(1000);
  for (int i = 0; i < 500; ++i) launch_on(stream, [=] { block[i] = 1, ++counted[0]; });
  npuEventRecord(event, stream);
  npuStreamWaitEvent(nullptr, event);
  for (int i = 0; i < 500; ++i) launch_on(nullptr, [] { ++counted[1]; });
  npuFree(block);
}

PRINTS(a_process_forks_with_work_queued) {
  npuStream_t stream = new_stream();
  std::atomic<int> done{0};
  char* block = allocate(1000);
  for (int i = 0; i < 50; ++i) launch_on(stream, [&] { ++done; });
  npuFree(allocate(10));
  const pid_t child = fork();
  if (child == 0) {
    void* more = nullptr;
    npuMemoryStats statistics;
    npuPointerAttributes attributes;
    const bool refused = npuMalloc(&more, 1) == npuErrorForked && npuDeviceSynchronize() == npuErrorForked &&
                         npuFree(block) == npuErrorForked && npuStreamDestroy(stream) == npuErrorForked;
    const bool answered =
        npuGetMemoryStats(&statistics, 0) == npuSuccess && npuPointerGetAttributes(&attributes, block) == npuSuccess;
    std::exit(refused && answered ? 42 : 1);  // with the handlers of the exit
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
  EXPECT(npuDeviceSynchronize() == npuSuccess && done == 50 && npuFree(block) == npuSuccess);
}

PRINTS(a_child_of_an_unused_driver_has_threads_of_its_own) {
  npuSetDelay("0");
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> done{0};
    launch_on(nullptr, [&] { done = 1; });
    const bool synchronized = npuDeviceSynchronize() == npuSuccess;
    std::exit(synchronized && done == 1 ? 42 : 1);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

}  // namespace
