// What differs between CUDA, HIP and the CPU shim, and nothing else. It is prepended to every kernel, so a kernel
// includes nothing and never asks who made the card.
//
// A group of lanes that shuffle is 32 wide everywhere. That is a warp on NVIDIA; a 64-lane wavefront on AMD (CDNA)
// holds two such groups, and a shuffle of width 32 stays inside its own. Every lane of a group must reach a shuffle:
// let loops around one run equally often in all threads of the block.
#define LANES 32

typedef unsigned short bits16;  // a bf16 or fp16 number as it lies in memory
typedef unsigned int bits32;    // two of them, the first in the low half; or the bits of a float

#if defined(CPU_SHIM)  // cpu_shim.h comes first and brings threadIdx, __syncthreads and the rest

// The one block of shared memory, sized at launch (shared_bytes).
#define SHARED(type, name) type* name = static_cast<type*>(shim::shared_memory())
#define SHUFFLE_DOWN(value, offset) shim::shuffle_down(value, offset, __LINE__)
#define SHUFFLE_XOR(value, mask) shim::shuffle_xor(value, mask, __LINE__)
#define SHUFFLE(value, lane) shim::exchange(value, lane, __LINE__)
#define ANY_LANE(condition) shim::any_lane(condition, __LINE__)
#define SYNC_LANES() shim::sync_lanes(__LINE__)
#define DEVICE static inline
#define LOAD_ONCE(pointer) (*(pointer))
#define ATOMIC_ADD(pointer, value) shim::add(pointer, value)
#define FENCE()
#define AS_FLOAT(bits) shim::as_float(bits)
#define AS_BITS(number) shim::as_bits(number)
#define EXP2(x) exp2f(x)
#define RSQRT(x) (1.0f / sqrtf(x))
#define TAKE_LOW(a, b) (((a) & 0xffffu) | ((b) << 16))
#define TAKE_HIGH(a, b) (((a) >> 16) | ((b) & 0xffff0000u))
#define COPY_ASYNC(to, from) (*(to) = *(from))
#define COPY_COMMIT()
#define COPY_WAIT(groups)
#define HAS_MMA 1
#define LOAD_MATRICES(r, row) shim::load_matrices(r, row, false, __LINE__)
#define LOAD_MATRICES_TURNED(r, row) shim::load_matrices(r, row, true, __LINE__)

#else

#define DEVICE __device__ __forceinline__
#define ATOMIC_ADD(pointer, value) atomicAdd(pointer, value)
#define FENCE() __threadfence()
#define AS_FLOAT(bits) __uint_as_float(bits)
#define AS_BITS(number) __float_as_uint(number)
#define RSQRT(x) rsqrtf(x)
#define SHARED(type, name) extern __shared__ __align__(16) type name[]

#if defined(__HIP__) || defined(__HIPCC__) || defined(__HIPCC_RTC__)

// ROCm 7 refuses 32-bit masks, and older versions have no *_sync: the plain forms work on all of them.
#define SHUFFLE_DOWN(value, offset) __shfl_down(value, offset, LANES)
#define SHUFFLE_XOR(value, mask) __shfl_xor(value, mask, LANES)
#define SHUFFLE(value, lane) __shfl(value, lane, LANES)
DEVICE int ANY_LANE(int condition) {
    for (int mask = 1; mask < LANES; mask *= 2) condition |= SHUFFLE_XOR(condition, mask);
    return condition;
}
// The lanes of a wavefront run in step; the fence keeps the compiler from moving memory accesses across.
#define SYNC_LANES() __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront"), __builtin_amdgcn_wave_barrier()
#define LOAD_ONCE(pointer) (*(pointer))
#define EXP2(x) exp2f(x)
#define TAKE_LOW(a, b) (((a) & 0xffffu) | ((b) << 16))
#define TAKE_HIGH(a, b) (((a) >> 16) | ((b) & 0xffff0000u))
#define HAS_MMA 0

#else  // CUDA

#define SHUFFLE_DOWN(value, offset) __shfl_down_sync(0xffffffffu, value, offset, LANES)
#define SHUFFLE_XOR(value, mask) __shfl_xor_sync(0xffffffffu, value, mask, LANES)
#define SHUFFLE(value, lane) __shfl_sync(0xffffffffu, value, lane, LANES)
#define ANY_LANE(condition) __any_sync(0xffffffffu, condition)
#define SYNC_LANES() __syncwarp()
#define TAKE_LOW(a, b) __byte_perm(a, b, 0x5410)
#define TAKE_HIGH(a, b) __byte_perm(a, b, 0x7632)

// 16 bytes that nobody will read again soon: they need no place in the first cache.
DEVICE uint4 LOAD_ONCE(const uint4* pointer) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(pointer));
    return v;
}
DEVICE float EXP2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#if __CUDA_ARCH__ >= 800
#define HAS_MMA 1
DEVICE bits32 shared_address(const void* pointer) { return (bits32)__cvta_generic_to_shared(pointer); }
// 16 bytes from global to shared memory, without passing through registers; COPY_WAIT(n): all but the last n groups
// have arrived.
#define COPY_ASYNC(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from))
#define COPY_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define COPY_WAIT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
// Four 8x8 matrices of 16-bit numbers from shared memory: lane i gives the address of row i % 8 of matrix i / 8.
#define LOAD_MATRICES(r, row)                                                                      \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"                 \
                 : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) : "r"(shared_address(row)))
#define LOAD_MATRICES_TURNED(r, row)                                                               \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"           \
                 : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) : "r"(shared_address(row)))
#else
#define HAS_MMA 0
#endif

#endif
#endif

// Programmatic dependent launch: a kernel may start while the one before it drains. It must not touch what that one
// writes before AWAIT_PREVIOUS, which every thread reaches; without such a launch both are nothing.
#if !defined(CPU_SHIM) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define START_NEXT() asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define AWAIT_PREVIOUS() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define START_NEXT()
#define AWAIT_PREVIOUS()
#endif

// The numbers a kernel works on: -DELEMENT=0 is bf16, 1 is fp16, 2 is fp32. Sums are always float.
#ifndef ELEMENT
#define ELEMENT 0
#endif

// Both roundings are to the nearest, ties to even; what is too large becomes infinite.
DEVICE bits16 to_bf16(float x) {
    const bits32 u = AS_BITS(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;  // NaN must not round to infinity
    return (bits16)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
DEVICE float from_fp16(bits16 h) {
    const bits32 sign = (h & 0x8000u) << 16, rest = (h & 0x7fffu) << 13;
    if (rest >= 0x0f800000u) return AS_FLOAT(sign | 0x70000000u | rest);  // infinite or NaN
    return AS_FLOAT(sign | AS_BITS(AS_FLOAT(rest) * 0x1p112f));
}
DEVICE bits16 to_fp16(float x) {
    bits32 u = AS_BITS(x);
    const bits32 sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    if (u >= 0x47800000u) return (bits16)(sign | (u > 0x7f800000u ? 0x7e00u : 0x7c00u));
    if (u < 0x38800000u) return (bits16)(sign | (AS_BITS(AS_FLOAT(u) + 0.5f) - 0x3f000000u));  // subnormal
    return (bits16)(sign | ((u + 0xc8000fffu + ((u >> 13) & 1u)) >> 13));
}

// Two numbers as one word and back.
#if ELEMENT == 0
DEVICE float low(bits32 pair) { return AS_FLOAT(pair << 16); }
DEVICE float high(bits32 pair) { return AS_FLOAT(pair & 0xffff0000u); }
#elif !defined(CPU_SHIM) && defined(__CUDA_ARCH__)
DEVICE float low(bits32 pair) {
    float x;
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(x) : "r"(pair));
    return x;
}
DEVICE float high(bits32 pair) {
    float x;
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h;}" : "=f"(x) : "r"(pair));
    return x;
}
#else
DEVICE float low(bits32 pair) { return from_fp16((bits16)(pair & 0xffffu)); }
DEVICE float high(bits32 pair) { return from_fp16((bits16)(pair >> 16)); }
#endif
DEVICE bits32 pair(float first, float second) {
#if !defined(CPU_SHIM) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    bits32 both;
#if ELEMENT == 0
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
#else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
#endif
    return both;
#elif ELEMENT == 0
    return to_bf16(first) | ((bits32)to_bf16(second) << 16);
#else
    return to_fp16(first) | ((bits32)to_fp16(second) << 16);
#endif
}

// A number, and the 16 bytes that a lane loads at once: WIDE numbers.
#if ELEMENT == 2
typedef float element;
#define WIDE 4
DEVICE float to_float(element x) { return x; }
DEVICE element to_element(float x) { return x; }
DEVICE void unpack(float* f, uint4 v) {
    f[0] = AS_FLOAT(v.x), f[1] = AS_FLOAT(v.y), f[2] = AS_FLOAT(v.z), f[3] = AS_FLOAT(v.w);
}
DEVICE uint4 pack(const float* f) {
    uint4 v;
    v.x = AS_BITS(f[0]), v.y = AS_BITS(f[1]), v.z = AS_BITS(f[2]), v.w = AS_BITS(f[3]);
    return v;
}
#else
typedef bits16 element;
#define WIDE 8
DEVICE float to_float(element x) { return low(x); }
DEVICE element to_element(float x) { return (element)(pair(x, 0.0f) & 0xffffu); }
DEVICE void unpack(float* f, uint4 v) {
    f[0] = low(v.x), f[1] = high(v.x), f[2] = low(v.y), f[3] = high(v.y);
    f[4] = low(v.z), f[5] = high(v.z), f[6] = low(v.w), f[7] = high(v.w);
}
DEVICE uint4 pack(const float* f) {
    uint4 v;
    v.x = pair(f[0], f[1]), v.y = pair(f[2], f[3]), v.z = pair(f[4], f[5]), v.w = pair(f[6], f[7]);
    return v;
}
#endif

// c (16 x 8, float) += a (16 x 16) b (16 x 8), by a group of lanes. Lane 4 g + t holds, as pairs of neighbours in k:
// a0: row g, k 2t; a1: row g + 8, k 2t; a2: row g, k 2t + 8; a3: row g + 8, k 2t + 8; b0: column g, k 2t; b1: column g,
// k 2t + 8; c[0], c[1]: row g, columns 2t, 2t + 1; c[2], c[3]: row g + 8. (PTX ISA, mma.m16n8k16.)
#if defined(CPU_SHIM)
DEVICE void mma(float* c, bits32 a0, bits32 a1, bits32 a2, bits32 a3, bits32 b0, bits32 b1) {
    const bits32 mine[6] = {a0, a1, a2, a3, b0, b1};
    shim::mma(c, mine, low, high, 0);
}
#elif HAS_MMA
#if ELEMENT == 0
#define MMA_TYPE "bf16.bf16"
#else
#define MMA_TYPE "f16.f16"
#endif
DEVICE void mma(float* c, bits32 a0, bits32 a1, bits32 a2, bits32 a3, bits32 b0, bits32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#endif
