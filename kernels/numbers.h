// Numbers of 16 and 32 bits, the 16 bytes that a lane loads at once, and the quick functions of a GPU.
typedef unsigned short bits16;  // a bf16 or fp16 number as it lies in memory
typedef unsigned int bits32;    // two of them, the first in the low half; or the bits of a float

#if defined(CPU_SHIM)
#define AS_FLOAT(bits) shim::as_float(bits)
#define AS_BITS(number) shim::as_bits(number)
#define RSQRT(x) (1.0f / sqrtf(x))
#else
#define AS_FLOAT(bits) __uint_as_float(bits)
#define AS_BITS(number) __float_as_uint(number)
#define RSQRT(x) rsqrtf(x)
#endif

#if !defined(CPU_SHIM) && !defined(__HIP__) && !defined(__HIPCC__) && !defined(__HIPCC_RTC__)
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
#define TAKE_LOW(a, b) __byte_perm(a, b, 0x5410)  // the low halves of two words as one
#define TAKE_HIGH(a, b) __byte_perm(a, b, 0x7632)
#define MIX_LOW(a, b) __byte_perm(a, b, 0x5140)  // the bytes of two low halves by turns, and of two high ones
#define MIX_HIGH(a, b) __byte_perm(a, b, 0x7362)
#else
#define LOAD_ONCE(pointer) (*(pointer))
#define EXP2(x) exp2f(x)
#define TAKE_LOW(a, b) (((a) & 0xffffu) | ((b) << 16))
#define TAKE_HIGH(a, b) (((a) >> 16) | ((b) & 0xffff0000u))
#define MIX_LOW(a, b) (((a) & 0xffu) | ((b) & 0xffu) << 8 | ((a) & 0xff00u) << 8 | ((b) & 0xff00u) << 16)
#define MIX_HIGH(a, b) MIX_LOW((a) >> 16, (b) >> 16)
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
    if (rest >= 0x00800000u) return AS_FLOAT(sign | (rest + 0x38000000u));
    return AS_FLOAT(sign | AS_BITS(AS_FLOAT(0x38800000u | rest) - 0x1p-14f));  // subnormal, by way of no float that is
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

// Two e4m3 numbers in the low 16 bits as two fp16 numbers, which are E4M3_UNIT times too small where there is no
// instruction for it: shifted by 7 bits, an exponent that counts from 7 is one that counts from 15.
#if !defined(CPU_SHIM) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define E4M3_UNIT 1.0f
DEVICE bits32 halves(bits32 two) {
    bits32 both;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(both) : "h"((bits16)two));
    return both;
}
#else
#define E4M3_UNIT 256.0f
DEVICE bits32 halves(bits32 two) {
    const bits32 apart = (two & 0xffu) | (two & 0xff00u) << 8;
    return (apart & 0x007f007fu) << 7 | (apart & 0x00800080u) << 8;
}
#endif

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

// An e4m3 number in the low 8 bits. No float on the way is below 2^-6: compilers may be told that such small ones are 0.
DEVICE float from_e4m3(bits32 bits) {
    const bits32 size = bits & 0x7fu;
    const float number = size >= 8 ? AS_FLOAT((size << 20) + 0x3c000000u) : AS_FLOAT(0x3c800000u | size << 20) - 0x1p-6f;
    return bits & 0x80u ? -number : number;
}
// To the nearest, ties to even; what is larger than 448, the largest number, becomes that.
DEVICE bits32 to_e4m3(float x) {
    const bits32 bits = AS_BITS(x), sign = bits >> 24 & 0x80u;
    bits32 size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return sign | 0x7fu;  // NaN
    if (size > 0x43e00000u) size = 0x43e00000u;
    // Below 2^-6 numbers are 2^-9 apart, as the floats above 2^14 that end in the same bits.
    if (size < 0x3c800000u) return sign | (AS_BITS(AS_FLOAT(size) + 16384.0f) - 0x46800000u);
    return sign | (((size + 0x7ffffu + (size >> 20 & 1u)) >> 20) - 120 * 8);
}
DEVICE bits32 four_e4m3(const float* f, float scale) {  // in units of the scale
    bits32 word = 0;
    for (int i = 0; i < 4; ++i) word |= to_e4m3(f[i] / scale) << 8 * i;
    return word;
}

// What a paged cache holds: numbers as above, or with -DE4M3=1 those of 8 bits, in units of a scale.
#ifndef E4M3
#define E4M3 0
#endif
#if E4M3
typedef unsigned char cached;
DEVICE cached to_cached(float x, float scale) { return (cached)to_e4m3(x / scale); }
DEVICE void store_cached(cached* to, const float* f, float scale) {  // WIDE numbers
    for (int i = 0; i < WIDE / 4; ++i) ((bits32*)to)[i] = four_e4m3(f + 4 * i, scale);
}
#else
typedef element cached;
DEVICE cached to_cached(float x, float) { return to_element(x); }
DEVICE void store_cached(cached* to, const float* f, float) { *(uint4*)to = pack(f); }
#endif
