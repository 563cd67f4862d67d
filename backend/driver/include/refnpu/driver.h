/* The C API of the simulated device: memory, streams, events. Knows nothing of torch. */
#ifndef REFNPU_DRIVER_H_
#define REFNPU_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Every call returns one of these. The words for the last failure of the calling thread: npuGetLastErrorMessage. */
typedef enum npuError {
  npuSuccess = 0,
  npuErrorInvalidValue = 1,
  npuErrorInvalidDevice = 2,
  npuErrorOutOfMemory = 3,
  npuErrorUntrackedPointer = 4, /* a free, or a copy's device end, that no live block holds */
  npuErrorDoubleFree = 5,
  npuErrorBadDirection = 6,   /* a copy whose ends do not lie where its direction says */
  npuErrorOutOfBounds = 7,    /* a copy or memset that runs past the end of its block */
  npuErrorLaunchFailure = 8,  /* a kernel raised */
  npuErrorNotReady = 9,       /* queried work is still pending; not a failure */
  npuErrorForked = 10,        /* the process was forked after its parent had used the device */
  npuErrorConfiguration = 11, /* an environment variable says something that does not exist */
  npuErrorDamagedMemory = 12, /* a freed block had been written past an end; it is freed all the same */
  npuErrorNotPermitted = 13   /* a call that may wait, in a thread that runs the work of a stream */
} npuError_t;

const char* npuGetErrorName(npuError_t error);
const char* npuGetLastErrorMessage(void); /* never null; valid until this thread's next failure */

/* -- devices --------------------------------------------------------------------------------------------------- */
/* REFNPU_DEVICES (default 3) devices; the current one is per thread and starts at 0. Where there are none, calls that
   need one return npuErrorInvalidDevice. */
typedef struct npuDeviceProperties {
  char name[64];
  size_t total_memory; /* bytes: REFNPU_CAPACITY, or what npuSetCapacity said */
  int multiprocessor_count;
  int major, minor;
} npuDeviceProperties;

npuError_t npuGetDeviceCount(int* count);
npuError_t npuGetDevice(int* device);
npuError_t npuSetDevice(int device);
npuError_t npuGetDeviceProperties(npuDeviceProperties* properties, int device);
npuError_t npuDeviceSynchronize(void);   /* waits for every stream of the current device; see "late work" below */
const char* npuConfigurationError(void); /* what is wrong with the REFNPU_ variables; empty when nothing is */
int npuDeviceUsed(void);                 /* 1 once this process has touched a device */
int npuIsForked(void);                   /* 1 in a child of a process that had touched a device */

typedef struct npuStream_st* npuStream_t; /* null: the current device's default stream */

/* -- memory ---------------------------------------------------------------------------------------------------- */
typedef enum npuMemcpyKind {
  npuMemcpyHostToHost = 0,
  npuMemcpyHostToDevice = 1,
  npuMemcpyDeviceToHost = 2, /* synchronizes: the data is there when it returns */
  npuMemcpyDeviceToDevice = 3
} npuMemcpyKind;

typedef struct npuMemoryStats {
  size_t live_bytes, live_blocks;
  size_t peak_bytes, peak_blocks;      /* the highest of these since start or npuResetPeakMemory */
  size_t allocations, frees;           /* how many, since start */
  size_t allocated_bytes, freed_bytes; /* summed since start */
  size_t failed_allocations;           /* refused: out of memory */
  size_t capacity;
  /* What the allocator mode holds for the device; more than live_bytes where it keeps freed memory for reuse. */
  size_t reserved_bytes, peak_reserved_bytes;
  size_t segments, peak_segments;           /* pieces in which it was had from the host */
  size_t reused_blocks, splits, merges;     /* of a caching mode, since start */
  size_t returned_bytes, returned_segments; /* given back to the host, since start */
} npuMemoryStats;

typedef enum npuMemoryType { npuMemoryUnregistered = 0, npuMemoryPinned = 1, npuMemoryDevice = 2 } npuMemoryType;

typedef struct npuPointerAttributes {
  npuMemoryType type;
  int device;  /* -1 for host memory */
  void* block; /* start of the block that holds the pointer; null when unregistered */
  size_t size; /* that block's bytes */
} npuPointerAttributes;

npuError_t npuMalloc(void** pointer, size_t size); /* on the current device; size 0 gives null */
/* As npuMalloc, at a multiple of `alignment`, which is a power of two. */
npuError_t npuMallocAligned(void** pointer, size_t size, size_t alignment);
/* The memory goes back after the work submitted so far to the stream that was current when the block was allocated, and
   to the streams that npuRecordStream named. Null is fine. */
npuError_t npuFree(void* pointer);
npuError_t npuRecordStream(void* pointer, npuStream_t stream); /* work of this stream uses the block, too */
npuError_t npuMallocHost(void** pointer, size_t size);
npuError_t npuFreeHost(void* pointer); /* the memory goes back after the copies from it and to it */
/* On the current stream. Returns when the copy is done, or when it no longer needs the caller's memory. */
npuError_t npuMemcpy(void* destination, const void* source, size_t size, npuMemcpyKind kind);
/* As npuMemcpy for pageable host memory. Pinned memory is read or written when the stream gets there. */
npuError_t npuMemcpyAsync(void* destination, const void* source, size_t size, npuMemcpyKind kind, npuStream_t stream);
npuError_t npuMemset(void* destination, int byte, size_t size); /* on the current stream */
npuError_t npuPointerGetAttributes(npuPointerAttributes* attributes, const void* pointer);
npuError_t npuMemGetInfo(size_t* free_bytes, size_t* total_bytes);
npuError_t npuGetMemoryStats(npuMemoryStats* stats, int device);
npuError_t npuResetPeakMemory(int device);
npuError_t npuSetCapacity(int device, size_t bytes);
const char* npuAllocatorMode(void);
npuError_t npuEmptyCache(void); /* gives back to the host what the allocator mode keeps for reuse */
/* What fresh and freed blocks are filled with from now on: none, zero, nan, 0xAB (any byte), random:SEED. Null leaves
   a fill as it is. */
npuError_t npuSetFill(const char* fresh, const char* freed);
/* Looks at every live block the way the allocator mode can; writes one line per damaged block. Each damage is told
   once, so that it is charged to the work since the last look. */
npuError_t npuVerifyMemory(char* report, size_t report_size, size_t* damaged_blocks);

/* -- streams and events ---------------------------------------------------------------------------------------- */
typedef struct npuEvent_st* npuEvent_t;
typedef void (*npuKernel_t)(const void* arguments);

npuError_t npuStreamCreate(npuStream_t* stream);
/* Waits for the stream. If it is the current one of this thread, the default stream takes its place; it must not be
   that of another thread. */
npuError_t npuStreamDestroy(npuStream_t stream);
npuError_t npuStreamSynchronize(npuStream_t stream);
npuError_t npuStreamQuery(npuStream_t stream); /* npuSuccess or npuErrorNotReady */
npuError_t npuStreamGetDevice(npuStream_t stream, int* device);
npuError_t npuGetDefaultStream(npuStream_t* stream, int device);
npuError_t npuGetCurrentStream(npuStream_t* stream, int device); /* of this thread */
npuError_t npuSetCurrentStream(npuStream_t stream);              /* for the stream's own device */

/* Submits a kernel. npuLaunch copies the `size` bytes at `arguments` before it returns, and the kernel gets the copy,
   aligned as malloc aligns: the caller may change or drop its own at once. The work may still be pending until a
   synchronization, and the error of a kernel comes from this call or from a later one that waits for the stream.
   `name` must outlive the process. */
npuError_t npuLaunch(npuStream_t stream, const char* name, npuKernel_t kernel, const void* arguments, size_t size);

/* Calls a function of the host's in the order of the stream. It must not call what may wait: that is refused. */
typedef void (*npuHostFunction_t)(void* data);
npuError_t npuLaunchHostFunction(npuStream_t stream, npuHostFunction_t function, void* data);

/* Late work. With REFNPU_LATE=1 work runs in a thread of its stream, after the delay that REFNPU_DELAY_US says; with 0,
   the default, in the thread that submits it. The first error of a device's late work is returned by the next call that
   waits for any work of the device (npuDeviceSynchronize, npuStreamSynchronize, npuEventSynchronize, a copy to the
   host), once. What has not begun when the process exits is dropped. */
npuError_t npuSetLate(int late); /* for work that is submitted from now on; 0 ends recording, too */
int npuIsLate(void);
/* Recorded work. With REFNPU_LAZY=1 late work does not start by itself: it is recorded until npuMarkStep, or until a
   call waits for it or asks whether it is done. A blocking copy to pageable memory runs the work that the copied bytes
   need, and leaves the rest recorded, unless the stream has work of which nobody knows what it uses: events, host
   functions, copies of pinned memory, kernels without device memory among their arguments. All work before it runs. */
npuError_t npuSetLazy(int lazy); /* for work that is submitted from now on */
int npuIsLazy(void);
npuError_t npuMarkStep(void); /* starts all that is recorded for the current device; does not wait */
/* Kernels that this thread submits from now on read and do not write the blocks that hold these pointers. They may
   write all others that their arguments point into. Null: none. The list must live until the next call. Returns the one
   before. */
typedef struct npuReads {
  const void* const* pointers;
  size_t count;
} npuReads;
const npuReads* npuExchangeReads(const npuReads* reads);
npuError_t npuSetDelay(const char* delay); /* microseconds, or random:SEED; for work that is submitted from now on */
/* The name of the call that this thread makes, for errors of the late work that it submits; null: none. It must outlive
   the process. Returns the one before. */
const char* npuExchangeCall(const char* name);

npuError_t npuEventCreate(npuEvent_t* event);
npuError_t npuEventDestroy(npuEvent_t event);
npuError_t npuEventRecord(npuEvent_t event, npuStream_t stream);
npuError_t npuEventQuery(npuEvent_t event);
npuError_t npuEventSynchronize(npuEvent_t event);
npuError_t npuStreamWaitEvent(npuStream_t stream, npuEvent_t event);
npuError_t npuEventElapsedTime(float* milliseconds, npuEvent_t start, npuEvent_t end);

/* -- profiling ------------------------------------------------------------------------------------------------- */
typedef struct npuActivity {
  const char* name; /* of the kernel; "memcpy" and "memset" for the driver's own work */
  int device;
  npuStream_t stream;
  uint64_t correlation;     /* npuPushCorrelation's at the time of the submission, 0 without one */
  int64_t start_ns, end_ns; /* nanoseconds of Unix time */
} npuActivity;

/* Called after each piece of work, in the thread that ran it; several threads may call it at once. */
typedef void (*npuActivityCallback_t)(const npuActivity* activity);
npuError_t npuSetActivityCallback(npuActivityCallback_t callback); /* null: none */

/* What this thread submits carries the id that it pushed last. */
npuError_t npuPushCorrelation(uint64_t id);
npuError_t npuPopCorrelation(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif /* REFNPU_DRIVER_H_ */
