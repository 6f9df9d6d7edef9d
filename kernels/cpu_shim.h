// Runs the unmodified source of a GPU kernel on one core of a CPU, and watches it more closely than a GPU would.
//
// One fiber a GPU thread: its own stack, switched with _setjmp and _longjmp (build with -U_FORTIFY_SOURCE: glibc's
// checked longjmp refuses other stacks). Threads of a block take turns; a barrier hands the turn on until all are
// there. Lanes that shuffle are a smaller barrier. So the threads of a block never run at the same moment, and a race
// may stay hidden; what does show is a barrier or a shuffle that not everyone reaches, memory touched outside of the
// buffers, an index outside of an array of known size (-fsanitize=bounds), and an endless loop, by interrupting it.
//
// cpu_guard.h, which comes next, holds the watching; cpu_launch.h, which comes last, the entry point.
#define CPU_SHIM 1
#if defined(__APPLE__)
#define _XOPEN_SOURCE 700  // ucontext
#define _DARWIN_C_SOURCE
#endif
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#define __global__
#define __device__ static inline
#define __host__
#define __forceinline__ inline
#define __shared__ static  // one launch at a time, one block at a time
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace shim {

enum { MAX_THREADS = 1024, WIDTH = 32, STACK = 1 << 17, STACK_GUARD = 1 << 14 };
enum State { READY, AT_BARRIER, AT_SHUFFLE, ENDED };

struct Fiber {
    jmp_buf where;        // to go on from
    bool made = false;
    State state;
    int line;             // of the barrier or shuffle it waits at
    unsigned shuffles;    // so far in this block
    uint64_t lent[2];     // what its last two shuffles offer to other lanes
};

static Fiber fibers[MAX_THREADS];
static jmp_buf scheduler;
static unsigned char* stacks = nullptr;
static int current, threads;  // the fiber whose turn it is; threads a block
static void (*body)(void**);  // calls the kernel with its arguments
static void** arguments;

// These are in cpu_guard.h.
[[noreturn]] static void diverged(int thread, int other);
static void check_slice(), check_block();
static inline void* shared_memory();

// A function that calls _setjmp is never inlined, so nothing of the kernel lives in registers across a switch except
// what the jump restores.
__attribute__((noinline)) static void yield() {
    if (_setjmp(fibers[current].where) == 0) _longjmp(scheduler, 1);
}

static void fiber_main() {
    yield();  // made, and waiting for its first block
    for (;;) {
        body(arguments);
        fibers[current].state = ENDED;
        yield();
    }
}

// Making a fiber costs two system calls more than a switch, so fibers live on and serve block after block.
__attribute__((noinline)) static void make(int thread) {
    static ucontext_t start;
    current = thread;
    getcontext(&start);
    start.uc_stack.ss_sp = stacks + static_cast<size_t>(thread) * STACK + STACK_GUARD;
    start.uc_stack.ss_size = STACK - STACK_GUARD;
    start.uc_link = nullptr;
    makecontext(&start, fiber_main, 0);
    if (_setjmp(scheduler) == 0) setcontext(&start);
    fibers[thread].made = true;
}

__attribute__((noinline)) static void resume(int thread) {
    current = thread;
    threadIdx.x = thread % blockDim.x;
    threadIdx.y = thread / blockDim.x % blockDim.y;
    threadIdx.z = thread / blockDim.x / blockDim.y;
    if (_setjmp(scheduler) == 0) _longjmp(fibers[thread].where, 1);
    check_slice();
}

static inline void barrier(int line) {
    fibers[current].state = AT_BARRIER;
    fibers[current].line = line;
    yield();
}

// Lets the lanes of a group go on if all that have not ended are at their shuffle; it must be the same one.
static bool release_lanes(int group) {
    const int first = group * WIDTH, last = first + WIDTH < threads ? first + WIDTH : threads;
    int waiting = -1;
    for (int lane = first; lane < last; ++lane) {
        if (fibers[lane].state == ENDED) continue;
        if (fibers[lane].state != AT_SHUFFLE) return false;
        if (waiting >= 0 && fibers[lane].line != fibers[waiting].line) diverged(lane, waiting);
        waiting = lane;
    }
    for (int lane = first; lane < last; ++lane)
        if (fibers[lane].state == AT_SHUFFLE) fibers[lane].state = READY;
    return waiting >= 0;
}

// Offers `value` to the other lanes and returns what lane `from` offers. Two slots suffice: nobody reaches the third
// shuffle before everybody has left the first. A lane that is not there, or has ended, offers the bits of a NaN.
template <class T>
static T exchange(T value, int from, int line) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
    const int me = current, slot = fibers[me].shuffles++ % 2;
    std::memcpy(&fibers[me].lent[slot], &value, sizeof value);
    fibers[me].state = AT_SHUFFLE;
    fibers[me].line = line;
    if (!release_lanes(me / WIDTH)) yield();
    const int source = me / WIDTH * WIDTH + from;
    std::memset(&value, 0xff, sizeof value);
    if (source < threads && fibers[source].shuffles >= fibers[me].shuffles)
        std::memcpy(&value, &fibers[source].lent[slot], sizeof value);
    return value;
}

template <class T>
static T shuffle_down(T value, int offset, int line) {
    const int lane = current % WIDTH;
    return exchange(value, lane + offset < WIDTH ? lane + offset : lane, line);
}

template <class T>
static T shuffle_xor(T value, int mask, int line) {
    return exchange(value, (current % WIDTH) ^ (mask % WIDTH), line);
}

static inline void sync_lanes(int line) { exchange(0, 0, line); }

// Nobody can go on: name a thread that waits, and one that keeps it waiting.
[[noreturn]] static void stuck() {
    int waiting = 0;
    for (int t = 0; t < threads; ++t) {
        if (fibers[t].state == AT_BARRIER && fibers[waiting].state == ENDED) waiting = t;
        if (fibers[t].state != AT_SHUFFLE) continue;
        for (int lane = t / WIDTH * WIDTH; lane < t / WIDTH * WIDTH + WIDTH && lane < threads; ++lane)
            if (fibers[lane].state == AT_BARRIER) diverged(t, lane);
    }
    int other = 0;
    while (fibers[other].state == AT_BARRIER && fibers[other].line == fibers[waiting].line) ++other;
    diverged(waiting, other);
}

static bool all_at_one_barrier() {
    for (int t = 0; t < threads; ++t)
        if (fibers[t].state != AT_BARRIER || fibers[t].line != fibers[0].line) return false;
    return true;
}

static void run_block() {
    int ended = 0;
    for (int t = 0; t < threads; ++t) {
        fibers[t].state = READY;
        fibers[t].shuffles = 0;
    }
    for (;;) {
        bool moved = false;
        for (int t = 0; t < threads; ++t) {
            if (fibers[t].state != READY) continue;
            moved = true;
            resume(t);
            if (fibers[t].state != ENDED) continue;
            ++ended;
            release_lanes(t / WIDTH);  // its group may have waited for it
        }
        if (moved) continue;  // a shuffle may have let others go on
        if (ended == threads) break;
        if (!all_at_one_barrier()) stuck();
        for (int t = 0; t < threads; ++t) fibers[t].state = READY;
    }
    check_block();
}

}  // namespace shim

#define __syncthreads() shim::barrier(__LINE__)
