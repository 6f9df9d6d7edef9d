// Writes the keys and values of new tokens into a paged cache of 8-bit numbers (e4m3), divided by the scale of each head.
//
// qkv, slots: as in append.cu. k_cache, v_cache: [blocks][KV heads][16][width] bytes. scales: [2][KV heads], of keys and
// of values. Launch: tokens x ceil(2 * KV heads * width / 4 / 128) blocks of 128 threads, 4 numbers a thread.
#define THREADS 128
#define BLOCK 16

extern "C" __global__ void __launch_bounds__(THREADS)
fp8_append(const element* qkv, unsigned char* k_cache, unsigned char* v_cache, const float* scales, const int* slots,
           int heads, int kv_heads, int width) {
    const int token = blockIdx.x, parts = width / 4, unit = blockIdx.y * THREADS + threadIdx.x;
    const int head = unit / parts, part = unit % parts, slot = slots[token];
    START_NEXT();
    AWAIT_PREVIOUS();
    if (head >= 2 * kv_heads || slot < 0) return;
    const element* from = qkv + ((long long)token * (heads + 2 * kv_heads) + heads + head) * width + 4 * part;
    const float f[4] = {to_float(from[0]), to_float(from[1]), to_float(from[2]), to_float(from[3])};
    unsigned char* cache = head < kv_heads ? k_cache : v_cache;
    const long long row = ((long long)(slot / BLOCK) * kv_heads + head % kv_heads) * BLOCK + slot % BLOCK;
    ((bits32*)(cache + row * width))[part] = four_e4m3(f, scales[head]);
}
