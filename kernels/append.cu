// Writes the keys and values of new tokens where the block table says: slot = block * 16 + place in the block.
//
// qkv: [tokens][query heads + 2 KV heads][width]. k_cache, v_cache: [blocks][KV heads][16][width]. slots: of each
// token; a negative one is written nowhere (a token that only fills up a batch). Launch: tokens x ceil(2 * KV heads *
// width / WIDE / 128) blocks of 128 threads, 16 bytes a thread.
#define THREADS 128
#define BLOCK 16

extern "C" __global__ void __launch_bounds__(THREADS)
append(const element* qkv, element* k_cache, element* v_cache, const int* slots, int heads, int kv_heads, int width) {
    const int token = blockIdx.x, parts = width / WIDE, unit = blockIdx.y * THREADS + threadIdx.x;
    const int head = unit / parts, part = unit % parts, slot = slots[token];
    START_NEXT();
    AWAIT_PREVIOUS();
    if (head >= 2 * kv_heads || slot < 0) return;
    const uint4 v = ((const uint4*)(qkv + ((long long)token * (heads + 2 * kv_heads) + heads + head) * width))[part];
    element* cache = head < kv_heads ? k_cache : v_cache;
    const long long row = ((long long)(slot / BLOCK) * kv_heads + head % kv_heads) * BLOCK + slot % BLOCK;
    ((uint4*)(cache + row * width))[part] = v;
}
