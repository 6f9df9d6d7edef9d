// rope.cu and append.cu in one launch, and the queries copied out: what follows the product with Wq, Wk, Wv.
//
// qkv: [tokens][heads + 2 KV heads][width] -> q: [tokens][heads][width], k_cache and v_cache: [blocks][KV heads][16]
// [width]. turns, positions: as in rope.cu; slots: as in append.cu. Launch: tokens x ceil((heads + 2 KV heads) * width /
// (2 * WIDE) / 128) blocks of 128 threads.
//
// -DNORM=1: qkv are sums over rows of x, [tokens][hidden], that count as normed without a weight; x is read before the
// kernel before this one is done, and must not be written by it. Comes behind row_norm.h.
#ifndef NORM
#define NORM 0
#endif
#define BLOCK 16

extern "C" __global__ void __launch_bounds__(THREADS)
rope_append(const element* qkv, element* q, element* k_cache, element* v_cache, const float2* turns,
            const int* positions, const int* slots, int heads, int kv_heads, int width, const element* x, int hidden,
            float epsilon) {
    const int token = blockIdx.x, parts = width / (2 * WIDE), unit = blockIdx.y * THREADS + threadIdx.x;
    const int head = unit / parts, part = unit % parts, all = heads + 2 * kv_heads;
    const int position = positions[token], slot = slots[token];
    float2 turn[WIDE];  // does not depend on the kernel before: ask for it while that drains
#pragma unroll
    for (int k = 0; k < WIDE; ++k) turn[k] = turns[(long long)position * (width / 2) + part * WIDE + k];
#if NORM
    const float norm = norm_of_row(x + (long long)token * hidden, hidden, epsilon);
#endif
    START_NEXT();
    AWAIT_PREVIOUS();
    if (head >= all) return;
    const uint4* from = (const uint4*)(qkv + ((long long)token * all + head) * width) + part;
    uint4 first = from[0], second = from[parts];
    if (NORM || head < heads + kv_heads) {
        float a[WIDE], b[WIDE];
        unpack(a, first);
        unpack(b, second);
#pragma unroll
        for (int k = 0; k < WIDE; ++k) {
            float x0 = a[k], x1 = b[k];
#if NORM
            x0 *= norm, x1 *= norm;
#endif
            const bool turned = head < heads + kv_heads;
            a[k] = turned ? x0 * turn[k].x - x1 * turn[k].y : x0;
            b[k] = turned ? x1 * turn[k].x + x0 * turn[k].y : x1;
        }
        first = pack(a);
        second = pack(b);
    }
    uint4* to;
    if (head < heads) {
        to = (uint4*)(q + ((long long)token * heads + head) * width);
    } else {
        if (slot < 0) return;
        const int kv = (head - heads) % kv_heads;
        element* cache = head < heads + kv_heads ? k_cache : v_cache;
        to = (uint4*)(cache + (((long long)(slot / BLOCK) * kv_heads + kv) * BLOCK + slot % BLOCK) * width);
    }
    to[part] = first;
    to[part + parts] = second;
}
