// Late work: order, errors, schedules, and the end of a process. test_late.py runs these with REFNPU_LATE=1.
#include "tests/late_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "driver/src/schedule.h"

namespace {

PRINTS(work_is_pending_until_it_is_awaited) {
  npuStream_t stream = new_stream();
  npuEvent_t before = new_event(), after = new_event();
  std::atomic<int> done{0};
  EXPECT(npuEventRecord(before, stream) == npuSuccess && npuEventSynchronize(before) == npuSuccess);
  Gate gate(stream);
  launch_on(stream, [&] { done = 1; });
  EXPECT(npuEventRecord(after, stream) == npuSuccess);
  let_time_pass();
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
  let_time_pass();
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
  let_time_pass();
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
    opens = std::thread([&] { let_time_pass(), gate.open(); });
    EXPECT(npuDeviceSynchronize() == npuSuccess && done == 2);
    opens.join();
  }
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
  opens = std::thread([&] { let_time_pass(), gate.open(); });
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
