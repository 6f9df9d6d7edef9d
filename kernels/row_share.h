// A row of numbers that a cluster of blocks shares: what each block has of it, sums over lanes and blocks, and how the
// least number that is left is found. Comes before sampling.cu, which says what is drawn.
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
#define BUCKETS 256
#define BITS_OF_A_ROUND 24.0f     // of chances, that the buckets of a round cover
#define TEAM 8                    // lanes that compare one candidate with the others
#define STEP (ELEMENT == 0 ? 16 : ELEMENT == 1 ? 13 : 0)  // bits by which neighbours differ, as float
#define LOWEST (ELEMENT == 1 ? -65504.0f : -0x1.fcp127f)  // a number of every kind; BELOW is lower
#define BELOW -3.4e38f
typedef unsigned long long bits64;
#if ELEMENT == 2
typedef long long place_type;  // differences of places have to fit
#else
typedef int place_type;
#endif

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
DEVICE bits32 fetch(const bits32* from, int block) {
    bits32 v;
    asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(v) : "r"(far_address(from, block)) : "memory");
    return v;
}
#else
#define OF_A_CLUSTER
#define ARRIVE()
#define ARRIVED() __syncthreads()
DEVICE void send(float* to, int, float x) { *to = x; }
DEVICE uint2 fetch(const uint2* from, int) { return *from; }
DEVICE bits32 fetch(const bits32* from, int) { return *from; }
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
    int first, count, most;  // words of the row; and how many any block has
    float top, scale;
};
// A number as it counts: within the kind, and those that a compiler may take for 0 are.
DEVICE float tidy(float x) { return fabsf(x) < 0x1p-126f ? 0.0f : fminf(fmaxf(x, LOWEST), -LOWEST); }
DEVICE void look(float* f, const Share& share, int i) {
    unpack(f, share.words[i]);
#if !HELD
#pragma unroll
    for (int k = 0; k < WIDE; ++k) f[k] = tidy(f[k]);
#endif
}
// A float above which those numbers are whose place is above this one.
DEVICE float cut_at(place_type place) {
    if (place < place_of(LOWEST)) return BELOW;
    const float x = number_at((int)place);
    return place < 0 && x > -0x1p-126f ? -0x1p-126f : x;
}
DEVICE float chance(float x, const Share& share) { return EXP2((x - share.top) * share.scale); }

struct Range {  // of places: the least number that is left is above `low`, and at most at `high`
    place_type low, high;
    float above;  // what the numbers above `high` weigh
};

// Which bucket a number is in, behind 2^23: whole, and never higher for a higher number.
DEVICE float bucket_of(float x, float to, float factor) { return fminf((to - x) * factor, BUCKETS - 1.0f) + 0x1p23f; }

// The last place of those from `low` on that is `low` itself or in this bucket or a later one.
DEVICE place_type last_place(place_type low, place_type high, int bucket, float to, float factor, int lane) {
    while (low < high) {
        const place_type step = (high - low + LANES - 1) / LANES, probe = low + step * (lane + 1);
        int many = probe <= high && bucket_of(number_at((int)probe), to, factor) >= 0x1p23f + bucket;
#pragma unroll
        for (int mask = 1; mask < LANES; mask *= 2) many += SHUFFLE_XOR(many, mask);
        low += step * many;
        if (high > low + step - 1) high = low + step - 1;
    }
    return low;
}

// One round of a search. The numbers of the range fall into buckets, which all blocks add up, and the range becomes the
// bucket in which the sum from above reaches the limit: numbers weigh their chance or, counting, 1 each. limit below 0: it
// becomes p times the whole. Buckets of chances are equally wide, and each number counts in whole parts of what the middle
// of its bucket weighs, so that the sums depend on no order; where all numbers of the range weigh the same, as when
// counting, they are equally many places. own: room of this block, one of two that take turns.
DEVICE void narrow(const Share& share, Range& range, bool counting, float p, float& limit, bits32* own, float* sums) {
    const int thread = threadIdx.x, lane = thread % LANES;
    const float from = cut_at(range.low), to = number_at((int)range.high);
    const bool alike = counting || (to - from) * share.scale < 1e-6f;
    const float factor = (BUCKETS - 1) / fminf(to - from, BITS_OF_A_ROUND / share.scale), bits = share.scale / factor;
    const float unit = fminf(0x1p22f, 0x1p31f / (share.most * WIDE));
    int shift = 0;
    while (alike && (range.high - range.low - 1) >> shift >= BUCKETS) ++shift;
    for (int i = thread; i < BUCKETS; i += THREADS) own[i] = 0;
    __syncthreads();
    float f[WIDE];
    if (alike) {
        for (int i = thread; i < share.count; i += THREADS) {
            look(f, share, i);
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
                const place_type place = place_of(f[j]);
                if (place > range.low && place <= range.high) ATOMIC_ADD(own + ((range.high - place) >> shift), 1u);
            }
        }
    } else {
        for (int i = thread; i < share.count; i += THREADS) {
            look(f, share, i);
#pragma unroll
            for (int j = 0; j < WIDE; ++j)
                if (f[j] > from && f[j] <= to) {
                    const float bucket = bucket_of(f[j], to, factor);
                    const float weight = EXP2((bucket - 0x1p23f - (to - f[j]) * factor) * bits);
                    ATOMIC_ADD(own + (AS_BITS(bucket) & (BUCKETS - 1)), AS_BITS(weight * unit + 0x1p23f) - 0x4b000000u);
                }
        }
    }
    ARRIVE();
    ARRIVED();
    const float one = counting ? 1.0f : chance(to, share);
    for (int i = thread; i < BUCKETS; i += THREADS) {
        bits32 each[CLUSTER];
        float sum = 0.0f;
#pragma unroll
        for (int block = 0; block < CLUSTER; ++block) each[block] = fetch(own + i, block);
#pragma unroll
        for (int block = 0; block < CLUSTER; ++block) sum += (float)each[block];
        sums[i] = sum * (alike ? one : one / unit * EXP2(-bits * i));
    }
    __syncthreads();
    // Every warp looks for the bucket, some side by side in each lane.
    float mine[BUCKETS / LANES], sum = 0.0f, before = 0.0f;
#pragma unroll
    for (int i = 0; i < BUCKETS / LANES; i += 4) {
        const float4 four = ((const float4*)sums)[(lane * (BUCKETS / LANES) + i) / 4];
        mine[i] = four.x, mine[i + 1] = four.y, mine[i + 2] = four.z, mine[i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < BUCKETS / LANES; ++i) sum += mine[i];
    const float upto = range.above + sum_before(sum, lane);
    if (limit < 0.0f) limit = p * SHUFFLE(upto, LANES - 1);
    sum = upto - sum;
    int found = BUCKETS;
#pragma unroll
    for (int i = 0; i < BUCKETS / LANES; ++i) {
        if (found == BUCKETS && mine[i] > 0.0f && sum + mine[i] >= limit) found = lane * (BUCKETS / LANES) + i, before = sum;
        sum += mine[i];
    }
    int first = found;
#pragma unroll
    for (int mask = 1; mask < LANES; mask *= 2) {
        const int other = SHUFFLE_XOR(first, mask);
        first = other < first ? other : first;
    }
    if (first == BUCKETS) {  // only where rounding keeps the sum below the limit: all of the range is left
        range.high = range.low;
        return;
    }
    range.above = SHUFFLE(before, first / (BUCKETS / LANES));
    if (alike) {
        const place_type wide = (place_type)1 << shift;
        range.high -= first * wide;
        if (range.low < range.high - wide) range.low = range.high - wide;
    } else {
        if (first > 0) range.high = last_place(range.low, range.high, first, to, factor, lane);
        range.low = last_place(range.low, range.high, first + 1, to, factor, lane);
    }
}
