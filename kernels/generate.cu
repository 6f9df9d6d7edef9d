// A whole small language model as one kernel that writes its answers by itself: no launch between two tokens.
//
// A cluster of CLUSTER blocks speaks for one sequence. What they compute lies in the shared memory of all of them: a
// warp that has finished a row of a matrix sends the number to every block, and a block goes on once all numbers of
// the phase have arrived (a barrier of Hopper that counts bytes). Five phases a layer: queries, keys and values;
// attention, each block over its share of the positions; the output matrix; gate and up; down. Then the head and the
// largest logit. The next row of weights is asked for before the wait. With CLUSTER = 1, all that other devices and
// the CPU shim have, a phase ends at a barrier of the block.
//
// tokens: [sequences][CONTEXT], of which `lengths` are given. The kernel appends the most likely token, the first of
// equal ones, until that is `last`, `most` have been written or the context is full, and writes the new length. tops:
// [sequences][CONTEXT], the largest logit after each token. Matrices: [LAYERS][rows][columns], the weight of the norm
// before them multiplied in. cache: [sequences][LAYERS][KV_HEADS][PARTS][2][PLACES][WIDTH]. WIDTH is 32, a dimension a
// lane. Launch: sequences x CLUSTER blocks, whole groups of lanes.
#ifndef LAYERS
#define LAYERS 6
#define HIDDEN 256
#define INNER 512
#define HEADS 8
#define KV_HEADS 2
#define VOCABULARY 2048
#define CONTEXT 512
#endif
#ifndef CLUSTER
#define CLUSTER 1
#endif
#ifndef THREADS
#define THREADS 256
#endif
#define WIDTH 32
#define WARPS (THREADS / LANES)
#define ALL_WARPS (CLUSTER * WARPS)
#define QKV ((HEADS + 2 * KV_HEADS) * WIDTH)
#define GROUP (HEADS / KV_HEADS)
#define PARTS (CLUSTER > KV_HEADS ? CLUSTER / KV_HEADS : 1)
#define UNITS (KV_HEADS * PARTS)
#define PLACES ((CONTEXT + PARTS - 1) / PARTS)
#define ACROSS(columns) (((columns) / WIDE + LANES - 1) / LANES)  // loads of a lane for a row
#define MOST_ACROSS (ACROSS(INNER) > ACROSS(HIDDEN) ? ACROSS(INNER) : ACROSS(HIDDEN))
typedef unsigned long long bits64;

#if CLUSTER > 1
#define OF_A_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
// Stores a number in a block of the cluster and adds its bytes to that block's barrier.
#define SEND(to, bits, type, far)                                                                              \
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes." type " [%0], %1, [%2];" ::"r"(       \
                     shared_address(to) + (far)), "r"(bits), "r"(shared_address(arrived + phase % 2) + (far))  \
                 : "memory")
#define SEND_BITS64(to, bits, far)                                                                             \
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(            \
                     shared_address(to) + (far)), "l"(bits), "r"(shared_address(arrived + phase % 2) + (far))  \
                 : "memory")
#define TO_ALL(to, number) \
    if (lane < CLUSTER) SEND(to, AS_BITS(number), "b32", far)
// Ends a phase in which each block receives so many bytes. Two barriers take turns: a quick block may send numbers of
// the next phase while a slow one still waits for those of this.
#define END_PHASE(bytes)                                                                                       \
    {                                                                                                          \
        const bits32 bar = shared_address(arrived + phase % 2), parity = phase / 2 % 2;                        \
        if (thread == 0)                                                                                       \
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)       \
                         : "memory");                                                                          \
        asm volatile(                                                                                          \
            "{.reg .pred done; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;" \
            " @!done bra again; }" ::"r"(bar), "r"(parity)                                                     \
            : "memory");                                                                                       \
        ++phase;                                                                                               \
    }
#define MEET() asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory")
#else
#define OF_A_CLUSTER
#define TO_ALL(to, number) \
    if (lane == 0) *(to) = number
#define END_PHASE(bytes) __syncthreads()
#define MEET() __syncthreads()
#endif

// This lane's words of a row of weights; zeros where there is no such row.
DEVICE void load_row(uint4* words, const element* matrix, int row, int rows, int columns, int lane) {
#pragma unroll
    for (int i = 0; i < ACROSS(columns); ++i) {
        words[i].x = words[i].y = words[i].z = words[i].w = 0;
        if (row < rows && lane + LANES * i < columns / WIDE)
            words[i] = LOAD_ONCE((const uint4*)(matrix + (long long)row * columns) + lane + LANES * i);
    }
}
DEVICE float dot(const uint4* words, const float* x, int columns, int lane) {
    float f[WIDE], sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ACROSS(columns); ++i)
        if (lane + LANES * i < columns / WIDE) {
            unpack(f, words[i]);
#pragma unroll
            for (int k = 0; k < WIDE; ++k) sum += f[k] * x[WIDE * (lane + LANES * i) + k];
        }
    return sum;
}
DEVICE float sum_of_lanes(float x) {
#pragma unroll
    for (int mask = 1; mask < LANES; mask *= 2) x += SHUFFLE_XOR(x, mask);
    return x;
}
// What RMSNorm divides by, as a factor.
DEVICE float norm_factor(const float* x, float epsilon, int lane) {
    float squares = 0.0f;
#pragma unroll
    for (int i = lane; i < HIDDEN; i += LANES) squares += x[i] * x[i];
    return RSQRT(sum_of_lanes(squares) / HIDDEN + epsilon);
}
DEVICE float turned(const float* head, const float2* turns, int pos, int lane) {
    const float2 turn = turns[pos * (WIDTH / 2) + lane % (WIDTH / 2)];
    return head[lane] * turn.x + head[lane ^ (WIDTH / 2)] * (lane < WIDTH / 2 ? -turn.y : turn.y);
}

extern "C" __global__ void OF_A_CLUSTER BOUNDS(THREADS, 1)
generate(const element* embedding, const element* qkv_rows, const element* o_rows, const element* gate_up_rows,
         const element* down_rows, const element* head_rows, const float2* turns, element* cache, int* tokens,
         int* lengths, float* tops, int most, int last, float epsilon) {
    __shared__ __align__(16) float x[HIDDEN], middle[HIDDEN], qkv[QKV], attended[HEADS * WIDTH], inner[INNER];
    __shared__ float sums[PARTS][HEADS][WIDTH], highest[PARTS][HEADS], weights[PARTS][HEADS], query[WARPS][WIDTH];
    __shared__ bits64 of_warps[WARPS], of_blocks[CLUSTER];
    const int thread = threadIdx.x, lane = thread % LANES, warp = thread / LANES;
    const int rank = blockIdx.x % CLUSTER, sequence = blockIdx.x / CLUSTER;
    // Row by row over the blocks: each has some of every matrix, so that nobody is a phase ahead of a block that waits.
    const int first_row = warp * CLUSTER + rank;
    cache += (long long)sequence * LAYERS * UNITS * 2 * PLACES * WIDTH;
    tokens += sequence * CONTEXT;
    tops += sequence * CONTEXT;
    const int given = lengths[sequence];
    const int stop = given + most < CONTEXT ? given + most : CONTEXT;  // tokens, at most
#if CLUSTER > 1
    __shared__ bits64 arrived[2];
    bits32 phase = 0, far;  // from an address here to the same in block `lane`, or its neighbour if there is none
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(shared_address(x)), "r"(lane % CLUSTER));
    far -= shared_address(x);
    if (thread < 2) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(arrived + thread)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
#endif
    MEET();

    int token = tokens[0], pos = 0;
    for (;;) {
        uint4 next[MOST_ACROSS], now[MOST_ACROSS], also[MOST_ACROSS], next_also[MOST_ACROSS];
#define COPY_WORDS(to, from) \
    _Pragma("unroll") for (int i = 0; i < MOST_ACROSS; ++i) to[i] = from[i]
        load_row(next, qkv_rows, first_row, QKV, HIDDEN, lane);
        for (int i = thread; i < HIDDEN; i += THREADS) x[i] = to_float(embedding[(long long)token * HIDDEN + i]);
        __syncthreads();
        for (int layer = 0; layer < LAYERS; ++layer) {
            const element *wq = qkv_rows + (long long)layer * QKV * HIDDEN,
                          *wo = o_rows + (long long)layer * HIDDEN * HEADS * WIDTH,
                          *wg = gate_up_rows + (long long)layer * 2 * INNER * HIDDEN, *wu = wg + INNER * HIDDEN,
                          *wd = down_rows + (long long)layer * HIDDEN * INNER;
            float factor = norm_factor(x, epsilon, lane);
            for (int row = first_row; row < QKV; row += ALL_WARPS) {
                COPY_WORDS(now, next);
                load_row(next, wq, row + ALL_WARPS, QKV, HIDDEN, lane);
                const float value = sum_of_lanes(dot(now, x, HIDDEN, lane)) * factor;
                TO_ALL(qkv + row, value);
            }
            load_row(next, wo, first_row, HIDDEN, HEADS * WIDTH, lane);
            END_PHASE(4 * QKV);

            // Attention. Position p belongs to part p % PARTS of each KV head, which one block keeps and reads.
            for (int unit = rank; unit < UNITS; unit += CLUSTER) {
                const int kv = unit / PARTS, part = unit % PARTS;
                element* keys = cache + ((long long)(layer * UNITS + unit) * 2) * PLACES * WIDTH;
                element* place = keys + pos / PARTS * WIDTH;
                if (pos % PARTS == part && warp == 0) {
                    const float* k = qkv + (HEADS + kv) * WIDTH;
                    place[lane] = to_element(turned(k, turns, pos, lane));
                    place[PLACES * WIDTH + lane] = to_element(k[KV_HEADS * WIDTH + lane]);
                }
            }
            __syncthreads();
            for (int job = warp; job < GROUP * ((UNITS - rank + CLUSTER - 1) / CLUSTER); job += WARPS) {
                const int unit = rank + job / GROUP * CLUSTER, part = unit % PARTS;
                const int head = unit / PARTS * GROUP + job % GROUP;
                const element* keys = cache + ((long long)(layer * UNITS + unit) * 2) * PLACES * WIDTH;
                const element* values = keys + PLACES * WIDTH;
                const int count = pos >= part ? (pos - part) / PARTS + 1 : 0;
                const float* q = query[warp];
                query[warp][lane] = turned(qkv + head * WIDTH, turns, pos, lane) * (1.44269504f * 0.17677670f);
                SYNC_LANES();
                float top = -1e30f, weight = 0.0f, sum = 0.0f;
                for (int first = 0; first < count; first += LANES) {
                    float score = -1e30f;
                    if (first + lane < count) {
                        float f[WIDE];
                        score = 0.0f;
#pragma unroll
                        for (int i = 0; i < WIDTH / WIDE; ++i) {
                            unpack(f, ((const uint4*)(keys + (first + lane) * WIDTH))[i]);
#pragma unroll
                            for (int k = 0; k < WIDE; ++k) score += f[k] * q[WIDE * i + k];
                        }
                    }
                    float higher = score;
#pragma unroll
                    for (int mask = 1; mask < LANES; mask *= 2) higher = fmaxf(higher, SHUFFLE_XOR(higher, mask));
                    higher = fmaxf(higher, top);
                    const float share = first + lane < count ? EXP2(score - higher) : 0.0f, fade = EXP2(top - higher);
                    weight = weight * fade + sum_of_lanes(share);
                    sum *= fade;
                    top = higher;
                    const int many = count - first < LANES ? count - first : LANES;
#pragma unroll 8
                    for (int i = 0; i < many; ++i)
                        sum += SHUFFLE(share, i) * to_float(values[(first + i) * WIDTH + lane]);
                }
#if CLUSTER > 1
#pragma unroll
                for (int block = 0; block < CLUSTER; ++block)
                    SEND(&sums[part][head][lane], AS_BITS(sum), "b32", SHUFFLE(far, block));
#else
                sums[part][head][lane] = sum;
#endif
                TO_ALL(&highest[part][head], top);
                TO_ALL(&weights[part][head], weight);
                SYNC_LANES();  // before the warp's next query
            }
            END_PHASE(4 * PARTS * HEADS * (WIDTH + 2));

            for (int i = thread; i < HEADS * WIDTH; i += THREADS) {
                const int head = i / WIDTH;
                float top = highest[0][head], weight = 0.0f, sum = 0.0f;
                for (int part = 1; part < PARTS; ++part) top = fmaxf(top, highest[part][head]);
                for (int part = 0; part < PARTS; ++part) {
                    const float fade = EXP2(highest[part][head] - top);
                    weight += fade * weights[part][head];
                    sum += fade * sums[part][head][i % WIDTH];
                }
                attended[i] = sum / weight;
            }
            __syncthreads();
            for (int row = first_row; row < HIDDEN; row += ALL_WARPS) {
                COPY_WORDS(now, next);
                load_row(next, wo, row + ALL_WARPS, HIDDEN, HEADS * WIDTH, lane);
                const float value = sum_of_lanes(dot(now, attended, HEADS * WIDTH, lane)) + x[row];
                TO_ALL(middle + row, value);
            }
            load_row(next, wg, first_row, INNER, HIDDEN, lane);
            load_row(next_also, wu, first_row, INNER, HIDDEN, lane);
            END_PHASE(4 * HIDDEN);

            factor = norm_factor(middle, epsilon, lane);
            for (int row = first_row; row < INNER; row += ALL_WARPS) {
                COPY_WORDS(now, next);
                COPY_WORDS(also, next_also);
                load_row(next, wg, row + ALL_WARPS, INNER, HIDDEN, lane);
                load_row(next_also, wu, row + ALL_WARPS, INNER, HIDDEN, lane);
                const float gate = sum_of_lanes(dot(now, middle, HIDDEN, lane)) * factor;
                const float up = sum_of_lanes(dot(also, middle, HIDDEN, lane)) * factor;
                TO_ALL(inner + row, gate / (1.0f + EXP2(-1.44269504f * gate)) * up);
            }
            load_row(next, wd, first_row, HIDDEN, INNER, lane);
            END_PHASE(4 * INNER);

            for (int row = first_row; row < HIDDEN; row += ALL_WARPS) {
                COPY_WORDS(now, next);
                load_row(next, wd, row + ALL_WARPS, HIDDEN, INNER, lane);
                const float value = sum_of_lanes(dot(now, inner, INNER, lane)) + middle[row];
                TO_ALL(x + row, value);
            }
            if (layer + 1 < LAYERS)
                load_row(next, wq + QKV * HIDDEN, first_row, QKV, HIDDEN, lane);
            else
                load_row(next, head_rows, first_row, VOCABULARY, HIDDEN, lane);
            END_PHASE(4 * HIDDEN);
        }

        // The largest logit: as bits that order as the numbers do, and below them the place, the first one highest.
        const float factor = norm_factor(x, epsilon, lane);
        bits64 best = 0;
        for (int row = first_row; row < VOCABULARY; row += ALL_WARPS) {
            COPY_WORDS(now, next);
            load_row(next, head_rows, row + ALL_WARPS, VOCABULARY, HIDDEN, lane);
            const bits32 bits = AS_BITS(sum_of_lanes(dot(now, x, HIDDEN, lane)) * factor);
            const bits64 key = (bits64)(bits >> 31 ? ~bits : bits | 0x80000000u) << 32 | (bits32)(VOCABULARY - 1 - row);
            best = key > best ? key : best;
        }
        if (lane == 0) of_warps[warp] = best;
        __syncthreads();
        if (warp == 0) {
            best = lane < WARPS ? of_warps[lane] : 0;
            for (int mask = 1; mask < LANES; mask *= 2) {
                const bits64 other = SHUFFLE_XOR(best, mask);
                best = other > best ? other : best;
            }
#if CLUSTER > 1
            if (lane < CLUSTER) SEND_BITS64(of_blocks + rank, best, far);
#else
            if (lane == 0) of_blocks[0] = best;
#endif
        }
        END_PHASE(8 * CLUSTER);
        best = 0;
        for (int block = 0; block < CLUSTER; ++block) best = of_blocks[block] > best ? of_blocks[block] : best;
        const bits32 bits = (bits32)(best >> 32);
        token = VOCABULARY - 1 - (int)(best & 0xffffffffu);
        if (thread == 0 && rank == 0) tops[pos] = AS_FLOAT(bits >> 31 ? bits & 0x7fffffffu : ~bits);
        ++pos;
        if (pos < given) {
            token = tokens[pos];
            continue;
        }
        if (pos == stop) break;
        if (thread == 0 && rank == 0) tokens[pos] = token;
        if (token == last) break;
    }
    if (thread == 0 && rank == 0) lengths[sequence] = pos < stop ? pos + 1 : stop;
    MEET();  // nobody leaves while another may still send to it
}
