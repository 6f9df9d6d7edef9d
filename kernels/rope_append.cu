// rope.cu and append.cu in one launch, and the queries copied out: what follows the product with Wq, Wk, Wv.
//
// qkv: [tokens][heads + 2 KV heads][width] -> q: [tokens][heads][width], k_cache and v_cache: [blocks][KV heads][16]
// [width]. turns, positions: as in rope.cu; slots: as in append.cu. Launch: tokens x ceil((heads + 2 KV heads) * width /
// (2 * WIDE) / THREADS) blocks of THREADS threads.
//
// -DE4M3=1: the caches have 8-bit numbers in units of scales, [2][KV heads], of keys and of values.
// -DNORM=1: qkv are sums over rows of x, [tokens][hidden], that count as normed without a weight; x is read before the
// kernel before this one is done, and must not be written by it. Comes behind row_norm.h.
#ifndef NORM
#define NORM 0
#endif
#define BLOCK 16

extern "C" __global__ void __launch_bounds__(THREADS)
rope_append(const element* qkv, element* q, cached* k_cache, cached* v_cache, const float2* turns,
            const int* positions, const int* slots, int heads, int kv_heads, int width, const element* x, int hidden,
            float epsilon, const float* scales) {
    const int token = blockIdx.x, parts = width / (2 * WIDE), unit = blockIdx.y * THREADS + threadIdx.x;
    const int head = unit / parts, part = unit % parts, all = heads + 2 * kv_heads;
    const int position = positions[token], slot = slots[token];
    float2 turn[WIDE];  // does not depend on the kernel before: ask for it while that drains
#pragma unroll
    for (int k = 0; k < WIDE; ++k) turn[k] = turns[(long long)position * (width / 2) + part * WIDE + k];
#if NORM
    const uint4* normed = (const uint4*)(x + (long long)token * hidden);
    uint4 held[HELD];
    hold_row(held, normed, hidden / WIDE);
#endif
    START_NEXT();
    AWAIT_PREVIOUS();
    const bool inside = head < all;
    const uint4* from = (const uint4*)(qkv + ((long long)token * all + (inside ? head : 0)) * width) + part;
    const uint4 first = from[0], second = from[parts];
#if NORM
    const float norm = norm_of_row(held, normed, hidden / WIDE, epsilon);
#endif
    if (!inside) return;
    float a[WIDE], b[WIDE];
    unpack(a, first);
    unpack(b, second);
#pragma unroll
    for (int k = 0; k < WIDE; ++k) {
#if NORM
        a[k] *= norm, b[k] *= norm;
#endif
        if (head < heads + kv_heads) {
            const float x0 = a[k], x1 = b[k];
            a[k] = x0 * turn[k].x - x1 * turn[k].y;
            b[k] = x1 * turn[k].x + x0 * turn[k].y;
        }
    }
    if (head < heads) {
        uint4* to = (uint4*)(q + ((long long)token * heads + head) * width) + part;
        to[0] = pack(a);
        to[parts] = pack(b);
    } else if (slot >= 0) {
        const int kv = (head - heads) % kv_heads;
        const float scale = E4M3 ? scales[head - heads] : 1.0f;
        cached* to = head < heads + kv_heads ? k_cache : v_cache;
        to += (((long long)(slot / BLOCK) * kv_heads + kv) * BLOCK + slot % BLOCK) * width + part * WIDE;
        store_cached(to, a, scale);
        store_cached(to + width / 2, b, scale);
    }
}
