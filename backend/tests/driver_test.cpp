// The driver on its own: memory, devices, streams and events, in every allocator mode. No torch.
#include "tests/driver_test.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "refnpu/fault.h"

namespace {

TEST(memory_goes_there_and_back) {
  char* device = allocate(16);
  char out[17] = "0123456789abcdef", in[17] = {};
  EXPECT(npuMemcpy(device, out, 16, npuMemcpyHostToDevice) == npuSuccess);
  EXPECT(npuMemset(device + 4, '-', 4) == npuSuccess);
  EXPECT(npuMemcpy(in, device, 16, npuMemcpyDeviceToHost) == npuSuccess);
  EXPECT(std::string(in) == "0123----89abcdef");
  EXPECT(npuFree(device) == npuSuccess);
}

TEST(nothing_is_allocated_for_nothing) {
  void* pointer = &pointer;
  EXPECT(npuMalloc(&pointer, 0) == npuSuccess);
  EXPECT(pointer == nullptr);
  EXPECT(npuFree(nullptr) == npuSuccess);
  EXPECT(npuMalloc(nullptr, 8) == npuErrorInvalidValue);
}

TEST(statistics_follow_the_blocks) {
  char* first = allocate(100);
  char* second = allocate(50);
  EXPECT(stats().live_bytes == 150 && stats().live_blocks == 2);
  npuFree(first);
  EXPECT(stats().live_bytes == 50 && stats().peak_bytes == 150 && stats().peak_blocks == 2 && stats().frees == 1);
  EXPECT(npuResetPeakMemory(0) == npuSuccess);
  EXPECT(stats().peak_bytes == 50 && stats().peak_blocks == 1);
  npuFree(second);
  EXPECT(stats().allocated_bytes == 150 && stats().freed_bytes == 150 && stats(1).allocations == 0);
}

TEST(a_second_free_is_told_from_a_stray_one) {
  char* block = allocate(64);
  char host[8];
  EXPECT(npuFree(host) == npuErrorUntrackedPointer);
  EXPECT(message_has("never allocated") && message_has("nearest live block") && message_has("64 bytes, npu:0"));
  EXPECT(npuFree(block + 8) == npuErrorInvalidValue);
  EXPECT(message_has("not the start of its block"));
  EXPECT(npuFree(block) == npuSuccess);
  EXPECT(npuFree(block) == npuErrorDoubleFree);
  EXPECT(message_has("already freed") && message_has("no live block"));
}

TEST(a_copy_must_stay_in_its_block) {
  char* block = allocate(32);
  char host[64] = {};
  EXPECT(npuMemcpy(block + 30, host, 4, npuMemcpyHostToDevice) == npuErrorOutOfBounds);
  EXPECT(message_has("runs 2 bytes past the end") && message_has("32 bytes, npu:0"));
  EXPECT(npuMemcpy(host, block, 33, npuMemcpyDeviceToHost) == npuErrorOutOfBounds);
  EXPECT(npuMemset(block + 1, 0, 32) == npuErrorOutOfBounds);
  EXPECT(npuMemcpy(nullptr, block, 4, npuMemcpyDeviceToHost) == npuErrorInvalidValue);
  npuFree(block);
  EXPECT(npuMemcpy(block, host, 4, npuMemcpyHostToDevice) == npuErrorUntrackedPointer);
}

TEST(a_copy_must_go_in_its_direction) {
  char* block = allocate(32);
  char host[32] = {};
  EXPECT(npuMemcpy(block, host, 4, npuMemcpyDeviceToDevice) == npuErrorUntrackedPointer);
  EXPECT(npuMemcpy(host, block, 4, npuMemcpyHostToHost) == npuErrorBadDirection);
  EXPECT(message_has("the direction says host"));
  EXPECT(npuMemcpy(host, host, 4, static_cast<npuMemcpyKind>(7)) == npuErrorBadDirection);
  npuFree(block);
}

TEST(a_device_holds_no_more_than_its_capacity) {
  EXPECT(npuSetCapacity(0, 1000) == npuSuccess);
  char* block = allocate(600);
  void* more = nullptr;
  EXPECT(npuMalloc(&more, 401) == npuErrorOutOfMemory);
  EXPECT(message_has("600 of 1000 bytes are in use by 1 blocks"));
  EXPECT(npuMalloc(&more, SIZE_MAX) == npuErrorOutOfMemory);
  size_t free_bytes = 0, total_bytes = 0;
  EXPECT(npuMemGetInfo(&free_bytes, &total_bytes) == npuSuccess);
  EXPECT(free_bytes == 400 && total_bytes == 1000 && stats().failed_allocations == 2);
  npuFree(block);
}

TEST(devices_are_counted_and_kept_apart) {
  int count = 0, device = -1;
  EXPECT(npuGetDeviceCount(&count) == npuSuccess && count == 3);
  EXPECT(npuSetDevice(3) == npuErrorInvalidDevice && npuSetDevice(-1) == npuErrorInvalidDevice);
  EXPECT(npuSetDevice(2) == npuSuccess);
  char* block = allocate(10);
  npuPointerAttributes attributes;
  EXPECT(npuPointerGetAttributes(&attributes, block + 9) == npuSuccess);
  EXPECT(attributes.type == npuMemoryDevice && attributes.device == 2 && attributes.block == block);
  EXPECT(npuPointerGetAttributes(&attributes, &device) == npuSuccess && attributes.type == npuMemoryUnregistered);
  std::thread([&] { npuGetDevice(&device); }).join();
  EXPECT(device == 0);  // the current device is the thread's own
  EXPECT(stats(2).live_bytes == 10 && stats(0).live_bytes == 0);
  npuFree(block);
}

TEST(pinned_memory_is_known_and_is_not_device_memory) {
  void* pinned = nullptr;
  EXPECT(npuMallocHost(&pinned, 32) == npuSuccess);
  npuPointerAttributes attributes;
  EXPECT(npuPointerGetAttributes(&attributes, pinned) == npuSuccess && attributes.type == npuMemoryPinned);
  EXPECT(npuFree(pinned) == npuErrorInvalidValue);
  EXPECT(npuMemset(pinned, 0, 4) == npuErrorBadDirection);
  char* block = allocate(32);
  EXPECT(npuMemcpy(block, pinned, 32, npuMemcpyHostToDevice) == npuSuccess);
  EXPECT(npuMemcpy(block, pinned, 33, npuMemcpyHostToDevice) == npuErrorOutOfBounds);
  EXPECT(npuFreeHost(pinned) == npuSuccess && npuFreeHost(pinned) == npuErrorDoubleFree);
  npuFree(block);
}

struct AddArguments {
  int* target;
  int amount;
};
void add(const void* raw) {
  auto arguments = static_cast<const AddArguments*>(raw);
  *arguments->target += arguments->amount;
}
void raises(const void*) { throw std::runtime_error("no such dtype"); }

TEST(work_runs_in_the_order_of_its_stream) {
  npuStream_t stream = nullptr, current = nullptr;
  EXPECT(npuStreamCreate(&stream) == npuSuccess);
  int total = 0;
  for (int amount = 1; amount <= 10; ++amount) {
    AddArguments arguments{&total, amount};
    EXPECT(npuLaunch(stream, "add", add, &arguments, sizeof arguments) == npuSuccess);
  }
  EXPECT(npuStreamSynchronize(stream) == npuSuccess && npuStreamQuery(stream) == npuSuccess);
  EXPECT(total == 55);
  npuError_t error = npuLaunch(stream, "cast", raises, nullptr, 0);
  if (npuIsLate()) error = npuStreamSynchronize(stream);
  EXPECT(error == npuErrorLaunchFailure && message_has("kernel 'cast'") && message_has(": no such dtype"));
  EXPECT(npuSetCurrentStream(stream) == npuSuccess);
  EXPECT(npuGetCurrentStream(&current, 0) == npuSuccess && current == stream);
  EXPECT(npuGetDefaultStream(&current, 0) == npuSuccess && npuSetCurrentStream(current) == npuSuccess);
  EXPECT(npuStreamDestroy(stream) == npuSuccess && npuStreamDestroy(stream) == npuErrorInvalidValue);
  EXPECT(npuStreamSynchronize(stream) == npuErrorInvalidValue);
}

TEST(a_stream_that_is_destroyed_is_current_no_more) {
  npuStream_t stream = nullptr, current = nullptr, standard = nullptr;
  EXPECT(npuStreamCreate(&stream) == npuSuccess && npuSetCurrentStream(stream) == npuSuccess);
  EXPECT(npuStreamDestroy(stream) == npuSuccess);
  EXPECT(npuGetDefaultStream(&standard, 0) == npuSuccess);
  EXPECT(npuGetCurrentStream(&current, 0) == npuSuccess && current == standard);
  char* block = allocate(8);
  EXPECT(npuMemset(block, 0, 8) == npuSuccess && npuFree(block) == npuSuccess);
}

void raises_without_words(const void*) { throw std::runtime_error(""); }
void raises_number(const void*) { throw 7; }

TEST(a_kernel_that_raises_fails_whatever_it_raises) {
  for (npuKernel_t kernel : {raises_without_words, raises_number}) {
    npuError_t error = npuLaunch(nullptr, "cast", kernel, nullptr, 0);
    if (npuIsLate()) error = npuDeviceSynchronize();
    EXPECT(error == npuErrorLaunchFailure && message_has("kernel 'cast'"));
  }
}

struct OverwriteArguments {
  OverwriteArguments* callers;
  int* result;
  int value;
};
// Spoils what the caller holds, as a caller does that goes on before the kernel has run, then reads its own.
void overwrite(const void* raw) {
  auto arguments = static_cast<const OverwriteArguments*>(raw);
  arguments->callers->value = -1;
  *arguments->result = arguments->value;
}

TEST(a_launch_copies_its_arguments) {
  int result = 0;
  OverwriteArguments arguments{&arguments, &result, 7};
  EXPECT(npuLaunch(nullptr, "overwrite", overwrite, &arguments, sizeof arguments) == npuSuccess);
  EXPECT(npuDeviceSynchronize() == npuSuccess);
  EXPECT(result == 7);
  EXPECT(arguments.value == -1);
  EXPECT(npuLaunch(nullptr, "overwrite", overwrite, nullptr, 8) == npuErrorInvalidValue);
}

std::vector<npuActivity> activities;  // one thread of work in these tests
void keep_activity(const npuActivity* activity) { activities.push_back(*activity); }

TEST(work_is_told_to_the_activity_callback) {
  char* block = allocate(8);
  int total = 0;
  AddArguments arguments{&total, 1};
  EXPECT(npuSetActivityCallback(keep_activity) == npuSuccess);
  EXPECT(npuPushCorrelation(5) == npuSuccess);
  EXPECT(npuLaunch(nullptr, "add", add, &arguments, sizeof arguments) == npuSuccess);
  EXPECT(npuPopCorrelation() == npuSuccess && npuPopCorrelation() == npuErrorInvalidValue);
  EXPECT(npuMemset(block, 0, 8) == npuSuccess && npuDeviceSynchronize() == npuSuccess);
  EXPECT(npuSetActivityCallback(nullptr) == npuSuccess);
  EXPECT(npuMemset(block, 0, 8) == npuSuccess && npuDeviceSynchronize() == npuSuccess);
  EXPECT(activities.size() == 2);
  EXPECT(std::string(activities[0].name) == "add" && activities[0].correlation == 5);
  EXPECT(std::string(activities[1].name) == "memset" && activities[1].correlation == 0);
  EXPECT(activities[0].start_ns <= activities[0].end_ns && activities[0].end_ns <= activities[1].start_ns);
  npuFree(block);
}

TEST(events_mark_and_time_the_work) {
  npuEvent_t start = nullptr, end = nullptr;
  float milliseconds = -1;
  EXPECT(npuEventCreate(&start) == npuSuccess && npuEventCreate(&end) == npuSuccess);
  EXPECT(npuEventElapsedTime(&milliseconds, start, end) == npuErrorInvalidValue);
  EXPECT(npuEventRecord(start, nullptr) == npuSuccess && npuEventRecord(end, nullptr) == npuSuccess);
  EXPECT(npuStreamWaitEvent(nullptr, start) == npuSuccess);
  EXPECT(npuEventSynchronize(end) == npuSuccess && npuEventQuery(end) == npuSuccess);
  EXPECT(npuEventElapsedTime(&milliseconds, start, end) == npuSuccess && milliseconds >= 0);
  npuEventDestroy(start);
  npuEventDestroy(end);
}

TEST(threads_share_the_table) {
  constexpr int kThreads = 8, kRounds = 2000;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([id, &wrong] {
      npuSetDevice(id % 2);
      for (int round = 0; round < kRounds; ++round) {
        void* block = nullptr;
        char out = static_cast<char>(id), in = 0;
        size_t size = 1 + round % 97;
        wrong += npuMalloc(&block, size) != npuSuccess;
        char* last = static_cast<char*>(block) + size - 1;
        wrong += npuMemcpy(last, &out, 1, npuMemcpyHostToDevice) != npuSuccess;
        wrong += npuMemcpy(&in, last, 1, npuMemcpyDeviceToHost) != npuSuccess || in != out;
        wrong += npuFree(block) != npuSuccess;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT(wrong == 0);
  EXPECT(stats(0).live_blocks == 0 && stats(1).live_blocks == 0);
  EXPECT(stats(0).allocations == stats(0).frees && stats(0).allocations == kThreads / 2 * kRounds);
}

TEST(sound_memory_verifies) {
  char* block = allocate(24);
  char report[128];
  size_t damaged = 1;
  EXPECT(npuVerifyMemory(report, sizeof report, &damaged) == npuSuccess);
  EXPECT(damaged == 0 && report[0] == '\0');
  npuFree(block);
}

PRINTS(the_environment_is_what_was_asked) {
  void* pointer = nullptr;
  npuError_t error = npuMalloc(&pointer, 100);
  std::printf("%s|%s|%d|%zu|%s\n", npuAllocatorMode(), npuConfigurationError(), error,
              reinterpret_cast<uintptr_t>(pointer) % 64, refnpu::active_fault_name().c_str());
}

}  // namespace

int main(int count, char** names) {
  if (count != 2 || !tests().count(names[1])) return 64;
  tests().at(names[1])();
  return failures;
}
