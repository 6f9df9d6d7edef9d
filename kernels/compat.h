// What differs between CUDA, HIP and the CPU shim, and nothing else; with numbers.h and tensor.h it is prepended to every
// kernel, so a kernel includes nothing and never asks who made the card.
//
// A group of lanes that shuffle is 32 wide everywhere. That is a warp on NVIDIA; a 64-lane wavefront on AMD (CDNA)
// holds two such groups, and a shuffle of width 32 stays inside its own. Every lane of a group must reach a shuffle:
// let loops around one run equally often in all threads of the block.
#define LANES 32

#if defined(CPU_SHIM)  // cpu_shim.h comes first and brings threadIdx, __syncthreads and the rest

// The one block of shared memory, sized at launch (shared_bytes).
#define SHARED(type, name) type* name = static_cast<type*>(shim::shared_memory())
#define SHUFFLE_DOWN(value, offset) shim::shuffle_down(value, offset, __LINE__)
#define SHUFFLE_XOR(value, mask) shim::shuffle_xor(value, mask, __LINE__)
#define SHUFFLE(value, lane) shim::exchange(value, lane, __LINE__)
#define ANY_LANE(condition) shim::any_lane(condition, __LINE__)
#define SYNC_LANES() shim::sync_lanes(__LINE__)
#define COUNT_THREADS(condition) shim::count_threads(condition, __LINE__)
#define ATOMIC_ADD(pointer, value) shim::add(pointer, value)
#define FENCE()
#define FENCE_SYSTEM()
#define BOUNDS(threads, blocks)
#define DEVICE static inline

#else

#define SHARED(type, name) extern __shared__ __align__(16) type name[]
#define ATOMIC_ADD(pointer, value) atomicAdd(pointer, value)
#define FENCE() __threadfence()
#define FENCE_SYSTEM() __threadfence_system()  // for the program, too, where it looks into the same memory
#define COUNT_THREADS(condition) __syncthreads_count(condition)  // of the block, a barrier too
#define DEVICE __device__ __forceinline__

#if defined(__HIP__) || defined(__HIPCC__) || defined(__HIPCC_RTC__)

// ROCm 7 refuses 32-bit masks, and older versions have no *_sync: the plain forms work on all of them.
#define SHUFFLE_DOWN(value, offset) __shfl_down(value, offset, LANES)
#define SHUFFLE_XOR(value, mask) __shfl_xor(value, mask, LANES)
#define SHUFFLE(value, lane) __shfl(value, lane, LANES)
DEVICE int ANY_LANE(int condition) {
    for (int mask = 1; mask < LANES; mask *= 2) condition |= SHUFFLE_XOR(condition, mask);
    return condition;
}
// HIP's second bound is another: wavefronts of a SIMD unit. Given blocks, it would make registers spill.
#define BOUNDS(threads, blocks) __launch_bounds__(threads)
// The lanes of a wavefront run in step; the fence keeps the compiler from moving memory accesses across.
#define SYNC_LANES() __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront"), __builtin_amdgcn_wave_barrier()

#else  // CUDA

#define SHUFFLE_DOWN(value, offset) __shfl_down_sync(0xffffffffu, value, offset, LANES)
#define SHUFFLE_XOR(value, mask) __shfl_xor_sync(0xffffffffu, value, mask, LANES)
#define SHUFFLE(value, lane) __shfl_sync(0xffffffffu, value, lane, LANES)
#define ANY_LANE(condition) __any_sync(0xffffffffu, condition)
#define SYNC_LANES() __syncwarp()
#define BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)  // blocks: that a multiprocessor should hold

#endif
#endif
