// Rotary position embedding, in place: the pair (x[i], x[i + width / 2]) of a head turns by the angle of its token's
// position. Su et al., arXiv:2104.09864, in the half-split form that Llama's weights use.
//
// x: [tokens][heads][width], of which the first `rotated` heads turn (queries and keys; values stay). turns: cosine and
// sine of [position][width / 2]. Launch: tokens x ceil(rotated * width / (2 * WIDE) / 128) blocks of 128 threads; each
// thread turns WIDE pairs. width: a multiple of 2 * WIDE.
#define THREADS 128

extern "C" __global__ void __launch_bounds__(THREADS)
rope(element* x, const float2* turns, const int* positions, int heads, int rotated, int width) {
    const int token = blockIdx.x, parts = width / (2 * WIDE), unit = blockIdx.y * THREADS + threadIdx.x;
    const int head = unit / parts, part = unit % parts;
    START_NEXT();
    AWAIT_PREVIOUS();
    if (head >= rotated) return;
    uint4* first = (uint4*)(x + ((long long)token * heads + head) * width) + part;
    uint4* second = first + parts;
    const float2* turn = turns + (long long)positions[token] * (width / 2) + part * WIDE;
    float a[WIDE], b[WIDE];
    unpack(a, *first);
    unpack(b, *second);
#pragma unroll
    for (int k = 0; k < WIDE; ++k) {
        const float x0 = a[k], x1 = b[k];
        a[k] = x0 * turn[k].x - x1 * turn[k].y;
        b[k] = x1 * turn[k].x + x0 * turn[k].y;
    }
    *first = pack(a);
    *second = pack(b);
}
