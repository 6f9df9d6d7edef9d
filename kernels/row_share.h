// A row of numbers that a cluster of blocks shares: what each block has of it, sums over lanes and blocks, and how the
// least number that is left is searched. Comes before sampling.cu, which says what is drawn.
#ifndef CLUSTER
#define CLUSTER 1
#endif
#ifndef THREADS
#define THREADS 512
#endif
#ifndef RESIDENT
#define RESIDENT 1
#endif
#ifndef HELD
#define HELD 0
#endif
#define WARPS (THREADS / LANES)
#define MOST 1024                 // candidates
#define SLOTS (2 * MOST)          // 32 words of a share are a slot
#define PIVOTS 7
#define TEAM 8                    // lanes that compare one candidate with the others
#define STEP (ELEMENT == 0 ? 16 : ELEMENT == 1 ? 13 : 0)  // bits by which neighbours differ, as float
#define LOWEST (ELEMENT == 1 ? -65504.0f : -0x1.fcp127f)  // a number of every kind; BELOW is lower
#define BELOW -3.4e38f
typedef unsigned long long bits64;

#if CLUSTER > 1
#define OF_A_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#define ARRIVE() asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory")
#define ARRIVED() asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory")
DEVICE bits32 far_address(const void* mine, int block) {
    bits32 far;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(shared_address(mine)), "r"(block));
    return far;
}
DEVICE void send(float* to, int block, float x) {
    asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(far_address(to, block)), "r"(AS_BITS(x)) : "memory");
}
DEVICE uint2 fetch(const uint2* from, int block) {
    uint2 v;
    asm volatile("ld.shared::cluster.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(far_address(from, block)) : "memory");
    return v;
}
#else
#define OF_A_CLUSTER
#define ARRIVE()
#define ARRIVED() __syncthreads()
DEVICE void send(float* to, int, float x) { *to = x; }
DEVICE uint2 fetch(const uint2* from, int) { return *from; }
#endif

// Neighbours among the numbers that the kind has are neighbouring whole numbers, in the same order.
DEVICE int place_of(float x) {
    const int bits = (int)AS_BITS(x);
    return (bits ^ (bits >> 31 & 0x7fffffff)) >> STEP;
}
DEVICE float number_at(int place) {
    const int bits = place < 0 ? (int)((bits32)place << STEP) | ((1 << STEP) - 1) : place << STEP;
    return AS_FLOAT((bits32)(bits ^ (bits >> 31 & 0x7fffffff)));
}
DEVICE float sum_of_lanes(float x) {
#pragma unroll
    for (int mask = 1; mask < LANES; mask *= 2) x += SHUFFLE_XOR(x, mask);
    return x;
}
DEVICE float sum_before(float x, int lane) {  // of this lane and those before it
#pragma unroll
    for (int by = 1; by < LANES; by *= 2) {
        const float other = SHUFFLE(x, (lane - by) & (LANES - 1));
        if (lane >= by) x += other;
    }
    return x;
}
// Sums over the block, the same in all threads. `box` must not be in use.
DEVICE bits64 sum_of_block(bits64 x, bits64* box, int lane, int warp) {
#pragma unroll
    for (int mask = 1; mask < LANES; mask *= 2) x += SHUFFLE_XOR(x, mask);
    if (lane == 0) box[warp] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < WARPS; ++i) x += box[i];
    return x;
}

struct Share {  // what a block has of its row
    const uint4* words;
    int first, count;  // words of the row
    float top, scale;
};
DEVICE void look(float* f, const Share& share, int i) {
    unpack(f, share.words[i]);
#if !HELD
#pragma unroll
    for (int k = 0; k < WIDE; ++k) f[k] = fminf(fmaxf(f[k], LOWEST), -LOWEST);
#endif
}
DEVICE float chance(float x, const Share& share) { return EXP2((x - share.top) * share.scale); }

// Of how many pivots, which rise, the numbers of the row above weigh `limit` or more: as chances or, counting, 1 each.
// upper, lower: what the numbers above the first pivot of the others weigh, and above the last of these, if there is one.
// inbox: where the blocks send, one of two that take turns.
DEVICE int too_low(const Share& share, const float* pivots, bool counting, float limit, float* box, float* inbox,
                   float* upper, float* lower) {
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    float above[PIVOTS], f[WIDE];
#pragma unroll
    for (int p = 0; p < PIVOTS; ++p) above[p] = 0.0f;
#pragma unroll 1
    for (int i = thread; i < share.count; i += THREADS) {
        look(f, share, i);
#pragma unroll
        for (int k = 0; k < WIDE; ++k) {
            const float weight = counting ? 1.0f : chance(f[k], share);
#pragma unroll
            for (int p = 0; p < PIVOTS; ++p)
                if (f[k] > pivots[p]) above[p] += weight;
        }
    }
#pragma unroll
    for (int p = 0; p < PIVOTS; ++p) {
        above[p] = sum_of_lanes(above[p]);
        if (lane == 0) box[p * WARPS + warp] = above[p];
    }
    __syncthreads();
    for (int p = warp; p < PIVOTS; p += WARPS) {
        const float x = sum_of_lanes(lane < WARPS ? box[p * WARPS + lane] : 0.0f);
        if (lane < CLUSTER) send(inbox + p * CLUSTER + blockIdx.x % CLUSTER, lane, x);
    }
    ARRIVE();
    ARRIVED();
    float x = 0.0f;
    if (lane < PIVOTS)
        for (int block = 0; block < CLUSTER; ++block) x += inbox[lane * CLUSTER + block];
    int many = lane < PIVOTS && x >= limit;
#pragma unroll
    for (int mask = 1; mask < LANES; mask *= 2) many += SHUFFLE_XOR(many, mask);
    const float here = SHUFFLE(x, many < PIVOTS ? many : 0), before = SHUFFLE(x, many > 0 ? many - 1 : 0);
    if (many < PIVOTS) *upper = here;
    if (many > 0) *lower = before;
    return many;
}
