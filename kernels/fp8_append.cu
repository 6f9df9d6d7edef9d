// Writes the keys and values of new tokens into a paged cache of 8-bit numbers (e4m3), divided by the scale of each head.
//
// qkv, slots: as in append.cu. k_cache, v_cache: [blocks][KV heads][16][width] bytes. scales: [2][KV heads], of keys and
// of values. Launch: tokens x ceil(2 * KV heads * width / 4 / 128) blocks of 128 threads, 4 numbers a thread.
#define THREADS 128
#define BLOCK 16

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

extern "C" __global__ void __launch_bounds__(THREADS)
fp8_append(const element* qkv, unsigned char* k_cache, unsigned char* v_cache, const float* scales, const int* slots,
           int heads, int kv_heads, int width) {
    const int token = blockIdx.x, parts = width / 4, unit = blockIdx.y * THREADS + threadIdx.x;
    const int head = unit / parts, part = unit % parts, slot = slots[token];
    START_NEXT();
    AWAIT_PREVIOUS();
    if (head >= 2 * kv_heads || slot < 0) return;
    const element* from = qkv + ((long long)token * (heads + 2 * kv_heads) + heads + head) * width + 4 * part;
    bits32 word = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) word |= to_e4m3(to_float(from[i]) / scales[head]) << 8 * i;
    unsigned char* cache = head < kv_heads ? k_cache : v_cache;
    const long long row = ((long long)(slot / BLOCK) * kv_heads + head % kv_heads) * BLOCK + slot % BLOCK;
    ((bits32*)(cache + row * width))[part] = word;
}
