// What a CPU has no instruction for: the vectors of CUDA, votes, and the matrix products of a group of lanes, computed
// from what each lane puts down between two meetings of the group.
struct uint2 {
    unsigned x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace shim {

static inline float as_float(uint32_t bits) {
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}

static inline uint32_t as_bits(float number) {
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}

static inline unsigned add(unsigned* pointer, unsigned value) {  // threads take turns: nobody comes between
    const unsigned before = *pointer;
    *pointer += value;
    return before;
}

static inline int any_lane(int condition, int line) {
    for (int mask = 1; mask < WIDTH; mask *= 2) condition |= shuffle_xor(condition, mask, line);
    return condition;
}

// Of all threads of the block, and a barrier.
static int count_threads(int condition, int line) {
    static int counted;
    barrier(line);
    if (current == 0) counted = 0;
    barrier(line);
    counted += condition != 0;
    barrier(line);
    return counted;
}

// A 16 x 8 tile += 16 x 16 times 16 x 8; see mma in compat.h for who holds what.
template <class Low, class High>
static void mma(float* c, const uint32_t* mine, Low low, High high, int line) {
    static uint32_t held[MAX_THREADS / WIDTH][WIDTH][6];
    const int group = current / WIDTH, lane = current % WIDTH;
    std::memcpy(held[group][lane], mine, sizeof held[group][lane]);
    sync_lanes(line);
    for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + (i >= 2 ? 8 : 0), column = 2 * (lane % 4) + i % 2;
        float sum = 0;
        for (int k = 0; k < 16; ++k) {
            const uint32_t a = held[group][row % 8 * 4 + k % 8 / 2][row / 8 + 2 * (k / 8)];
            const uint32_t b = held[group][column * 4 + k % 8 / 2][4 + k / 8];
            sum += k % 2 ? high(a) * high(b) : low(a) * low(b);
        }
        c[i] += sum;
    }
    sync_lanes(line);
}

// Four 8 x 8 matrices of 16-bit numbers; lane i names row i % 8 of matrix i / 8.
static inline void load_matrices(uint32_t* r, const void* row, bool turned, int line) {
    static const uint16_t* rows[MAX_THREADS / WIDTH][WIDTH];
    const int group = current / WIDTH, lane = current % WIDTH;
    rows[group][lane] = static_cast<const uint16_t*>(row);
    sync_lanes(line);
    for (int m = 0; m < 4; ++m) {
        const uint16_t* const* matrix = &rows[group][8 * m];
        const int i = lane / 4, j = 2 * (lane % 4);
        const uint16_t first = turned ? matrix[j][i] : matrix[i][j];
        const uint16_t second = turned ? matrix[j + 1][i] : matrix[i][j + 1];
        r[m] = first | static_cast<uint32_t>(second) << 16;
    }
    sync_lanes(line);
}

}  // namespace shim
