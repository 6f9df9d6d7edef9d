// Draws one token of each row of logits, by temperature, top-k and top-p, without sorting.
//
// Tokens are left by two rules, as course/lm/sampling.py has them. Top-k: fewer than k tokens are more likely. Top-p, of
// those: together, the tokens that are more likely have less than p of what top-k left. Equal logits are left together
// or not at all. The token is the first, in the order of ids, at which the sum of what is left exceeds draw times the
// whole: the same number draws the same token everywhere.
//
// logits: [rows][columns]. settings: [rows], x: log2(e) / temperature, y: p (1: all), z: the draw, 0 <= z < 1, w: the
// bits of k (0: all). out: [rows]. how: [rows], 0 if candidates were enough, else passes over the row. NaN counts as
// the lowest number. Launch: rows x CLUSTER blocks of THREADS threads, with HELD the bytes of a block's share shared.
//
// A cluster of CLUSTER blocks has a row, each a share of it (with HELD in shared memory). For a small k the k-th of the
// threads' largest numbers is a bound that at least k numbers reach, and hardly more: these candidates one block compares
// all with all, in whole numbers. Otherwise the least number that is left is found by two or three rounds of buckets, and
// what is left is added up in order.
extern "C" __global__ void OF_A_CLUSTER BOUNDS(THREADS, RESIDENT)
sampling(const element* logits, const float4* settings, int* out, int* how, int columns) {
    __shared__ float tops[WARPS], lows[WARPS], of_blocks[4][CLUSTER];
    __shared__ __align__(16) float value[MOST];
    __shared__ bits32 buckets[2][BUCKETS];
    __shared__ bits64 boxes[2][WARPS], weight[MOST], above[MOST];
    __shared__ int index[MOST], ahead[MOST];
    __shared__ __align__(16) uint2 list[MOST];
    __shared__ unsigned listed;
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    const int rank = blockIdx.x % CLUSTER, row = blockIdx.x / CLUSTER, words = columns / WIDE;
    ARRIVE();  // all blocks of the cluster are there once this has arrived
    START_NEXT();
    AWAIT_PREVIOUS();
    const float4 setting = settings[row];
    const int k = (int)AS_BITS(setting.w);
    const float p = setting.y, draw = setting.z;
    Share share;
    share.most = (words + CLUSTER - 1) / CLUSTER;
    share.first = rank * share.most;
    share.count = words - share.first < share.most ? words - share.first : share.most;
    if (share.count < 0) share.count = 0;
    share.scale = setting.x;
    share.words = (const uint4*)logits + (long long)row * words + share.first;
    float f[WIDE], top = LOWEST;
#if HELD
    SHARED(uint4, held);
    for (int i = thread; i < share.count; i += THREADS) COPY_ASYNC(held + i, share.words + i);
    COPY_COMMIT();
    COPY_WAIT(0);
    share.words = held;  // a thread reads only what it has written
#endif
    for (int i = thread; i < share.count; i += THREADS) {
#if HELD
        unpack(f, held[i]);
#pragma unroll
        for (int j = 0; j < WIDE; ++j) f[j] = tidy(f[j]);
        held[i] = pack(f);
        unpack(f, held[i]);
#else
        look(f, share, i);
#endif
#pragma unroll
        for (int j = 0; j < WIDE; ++j) top = fmaxf(top, f[j]);
    }
    float highest = top, lowest = thread < share.count ? top : -LOWEST;
#pragma unroll
    for (int mask = 1; mask < LANES; mask *= 2) {
        highest = fmaxf(highest, SHUFFLE_XOR(highest, mask));
        lowest = fminf(lowest, SHUFFLE_XOR(lowest, mask));
    }
    if (lane == 0) tops[warp] = highest, lows[warp] = lowest;
    if (thread == 0) listed = 0;
    __syncthreads();
    for (int i = 0; i < WARPS; ++i) highest = fmaxf(highest, tops[i]), lowest = fminf(lowest, lows[i]);

    // The bound that `wanted` of the share's threads reach.
    const bool few = k > 0 && k <= MOST / 2;
    const int wanted = (k + CLUSTER - 1) / CLUSTER;
    float bound = LOWEST;
    if (few && wanted < (share.count < THREADS ? share.count : THREADS)) {
        float low = lowest, high = highest;  // threads enough reach `low`
        for (int i = 0; i < 24 && low < high; ++i) {
            const float middle = 0.5f * low + 0.5f * high;
            const int many = COUNT_THREADS(top >= middle);
            if (many >= wanted) {
                low = middle;
                if (many <= wanted + wanted / 4) break;
            } else {
                if (middle >= high) break;
                high = middle;
            }
        }
        bound = low;
    }
    ARRIVED();
    if (warp == 0 && lane < CLUSTER) send(of_blocks[0] + rank, lane, highest), send(of_blocks[1] + rank, lane, bound);
    ARRIVE();
    ARRIVED();
    share.top = highest;
    for (int i = 0; i < CLUSTER; ++i) share.top = fmaxf(share.top, of_blocks[0][i]), bound = fminf(bound, of_blocks[1][i]);

    int many = MOST + 1;
    if (few) {  // candidates: each block writes its own down, and says how many they are
        for (int i = thread; i < share.count; i += THREADS) {
            look(f, share, i);
#pragma unroll
            for (int j = 0; j < WIDE; ++j)
                if (f[j] >= bound) {
                    const unsigned at = ATOMIC_ADD(&listed, 1u);
                    if (at < MOST) list[at].x = AS_BITS(f[j]), list[at].y = (share.first + i) * WIDE + j;
                }
        }
        __syncthreads();
        if (warp == 0 && lane < CLUSTER) send(of_blocks[2] + rank, lane, (float)listed);
        ARRIVE();
        ARRIVED();
        many = 0;
        for (int i = 0; i < CLUSTER; ++i) many += (int)of_blocks[2][i];
    }

    // The first block compares them, if they hold all that is left.
    if (many <= MOST) {
        if (rank == 0) {
            int from = 0;
            for (int block = 0; block < CLUSTER; ++block) {
                const int its = (int)of_blocks[2][block];
                for (int i = thread; i < its; i += THREADS) {
                    const uint2 one = fetch(list + i, block);
                    value[from + i] = AS_FLOAT(one.x), index[from + i] = (int)one.y;
                    weight[from + i] = (bits64)(chance(AS_FLOAT(one.x), share) * 0x1p40f);
                }
                from += its;
            }
        }
        ARRIVE();  // the lists are read
        ARRIVED();
        if (rank != 0) return;
        const int team = thread / TEAM, member = thread % TEAM, teams = THREADS / TEAM;
        for (int base = 0; base < many; base += teams) {  // all lanes come to the shuffles
            const int i = base + team < many ? base + team : many - 1;
            const float mine = value[i];
            bits64 weighs = 0;
            int count = 0;
            for (int j = member; j < many; j += TEAM)
                if (value[j] > mine) ++count, weighs += weight[j];
#pragma unroll
            for (int mask = 1; mask < TEAM; mask *= 2) count += SHUFFLE_XOR(count, mask), weighs += SHUFFLE_XOR(weighs, mask);
            if (member == 0) ahead[i] = count, above[i] = weighs;
        }
        __syncthreads();
        bits64 left = 0, kept = 0;
        for (int i = thread; i < many; i += THREADS)
            if (ahead[i] < k) left += weight[i];
        left = sum_of_block(left, boxes[0], lane, warp);
        const double limit = p < 1.0f ? p * (double)left : 1e30;
        for (int i = thread; i < many; i += THREADS) {
            if (ahead[i] >= k || (double)above[i] >= limit) weight[i] = 0;
            kept += weight[i];
        }
        kept = sum_of_block(kept, boxes[1], lane, warp);  // and behind it all see the weights
        bits64 target = (bits64)(draw * (double)kept);
        if (target >= kept) target = kept - 1;
        for (int base = 0; base < many; base += teams) {
            const int i = base + team < many ? base + team : many - 1, mine = index[i];
            bits64 weighs = 0;
            for (int j = member; j < many; j += TEAM)
                if (index[j] < mine) weighs += weight[j];
#pragma unroll
            for (int mask = 1; mask < TEAM; mask *= 2) weighs += SHUFFLE_XOR(weighs, mask);
            if (member == 0 && base + team < many && weighs <= target && target < weighs + weight[i]) out[row] = mine, how[row] = 0;
        }
        return;
    }

    // The least number that top-k leaves, and then the least that top-p leaves of them.
    int round = 0;
    Range range;
    range.low = (place_type)place_of(LOWEST) - 1;
    for (int rule = 0; rule < 2; ++rule) {
        if (rule == 0 ? k == 0 : p >= 1.0f) continue;
        float limit = rule == 0 ? (float)k : -1.0f;
        range.high = place_of(share.top), range.above = 0.0f;
        while (range.high - range.low > 1) narrow(share, range, rule == 0, p, limit, buckets[round++ % 2], value);
    }

    // Every 32 words of the share are a slot; the block in which the sum exceeds the draw looks for the slot.
    const float least = cut_at(range.low);
    float* slots = (float*)list;
    for (int i = thread - lane; i < share.count; i += THREADS) {
        float weighs = 0.0f;
        if (i + lane < share.count) {
            look(f, share, i + lane);
#pragma unroll
            for (int j = 0; j < WIDE; ++j)
                if (f[j] > least) weighs += chance(f[j], share);
        }
        weighs = sum_of_lanes(weighs);
        if (lane == 0) slots[i / LANES] = weighs;
    }
    __syncthreads();
    const int used = (share.count + LANES - 1) / LANES;
    float* exchange = of_blocks[3];
    if (warp == 0) {
        float weighs = 0.0f;
        for (int i = lane; i < used; i += LANES) weighs += slots[i];
        weighs = sum_of_lanes(weighs);
        if (lane < CLUSTER) send(exchange + rank, lane, weighs);
    }
    ARRIVE();
    ARRIVED();
    float all = 0.0f;
    for (int i = 0; i < CLUSTER; ++i) all += exchange[i];
    float target = draw * all;
    int owner = 0;
    for (int i = 0; i < CLUSTER; ++i)  // the last block with anything left, if rounding has put the draw behind all
        if (exchange[i] > 0.0f) {
            owner = i;
            if (target < exchange[i]) break;
            target -= exchange[i];
        }
    if (rank != owner || warp != 0) return;
    int slot = 0;
    float before = 0.0f;  // of the draw, in its slot
    for (int base = 0, found = 0; base < used && !found; base += LANES) {
        const float its = base + lane < used ? slots[base + lane] : 0.0f, upto = sum_before(its, lane);
        for (int i = 0; i < LANES && !found; ++i) {
            const float one = SHUFFLE(its, i), end = SHUFFLE(upto, i);
            if (one > 0.0f) slot = base + i, before = target - (end - one), found = target < end;
        }
        target -= SHUFFLE(upto, LANES - 1);
    }
    float weighs = 0.0f;
    if (slot * LANES + lane < share.count) {
        look(f, share, slot * LANES + lane);
#pragma unroll
        for (int j = 0; j < WIDE; ++j) weighs += f[j] > least ? chance(f[j], share) : 0.0f;
    }
    const float upto = sum_before(weighs, lane);
    int chosen = 0;  // the last lane with anything left at or before the draw
    for (int i = 0; i < LANES; ++i) {
        const float one = SHUFFLE(weighs, i), end = SHUFFLE(upto, i);
        if (one > 0.0f) {
            chosen = i;
            if (before < end) break;
        }
    }
    if (lane != chosen) return;
    float rest = before - (upto - weighs);
    int token = 0;
    bool found = false;
#pragma unroll
    for (int j = 0; j < WIDE; ++j) {
        const float one = f[j] > least ? chance(f[j], share) : 0.0f;
        if (!found && one > 0.0f) {
            token = (share.first + slot * LANES + lane) * WIDE + j;
            found = rest < one;
            rest -= one;
        }
    }
    out[row] = token;
    how[row] = round + 1;
}
