// Eight float lanes and the FP4 look-ups in plain C++, for processors without AVX2; the same operations in the same
// order as lanes_avx2.h, so both give the same bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace hideaway {

inline constexpr const char* kLanesName = "generic";

struct Float8 {
    float lane[8];
};

template <class Make>
inline Float8 make8(const Make& make) {
    Float8 out;
    for (int i = 0; i < 8; ++i) out.lane[i] = make(i);
    return out;
}

inline Float8 load(const float* from) { return make8([&](int i) { return from[i]; }); }
inline void store(float* to, Float8 a) { std::memcpy(to, a.lane, sizeof a.lane); }
inline Float8 broadcast(float a) { return make8([&](int) { return a; }); }
inline Float8 add(Float8 a, Float8 b) { return make8([&](int i) { return a.lane[i] + b.lane[i]; }); }
inline Float8 mul(Float8 a, Float8 b) { return make8([&](int i) { return a.lane[i] * b.lane[i]; }); }
inline Float8 fma(Float8 a, Float8 b, Float8 c) {
    return make8([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
}

// ((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7))
inline float sum(Float8 a) {
    const float* v = a.lane;
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

inline void prefetch(const uint8_t* at) { __builtin_prefetch(at); }

// Lanes 0-3 are a[2i], lanes 4-7 are a[2i + 1]: scales of two blocks of 32.
template <int i>
inline Float8 spread4(Float8 a) {
    return make8([&](int lane) { return a.lane[2 * i + lane / 4]; });
}

// Two lanes each of a[4i] to a[4i + 3]: scales of four blocks of 16.
template <int i>
inline Float8 spread2(Float8 a) {
    return make8([&](int lane) { return a.lane[4 * i + lane / 2]; });
}

// Eight E8M0 bytes, the first lowest in the word: 2^(e - 127), NaN for 255.
inline Float8 e8m0(uint64_t word) {
    return make8([&](int i) {
        const int e = word >> 8 * i & 255;
        return e == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, e - 127);
    });
}

// Eight E4M3 bytes (no infinities, NaN for 0x7f and 0xff).
inline Float8 e4m3(uint64_t word) {
    return make8([&](int i) {
        const int e = word >> 8 * i & 255;
        const int magnitude = e & 0x7f, exponent = magnitude >> 3, fraction = magnitude & 7;
        const float sign = e & 0x80 ? -1.0f : 1.0f;
        if (magnitude == 0x7f) return std::numeric_limits<float>::quiet_NaN();
        return sign * (exponent ? std::ldexp(8.0f + fraction, exponent - 10) : std::ldexp(1.0f * fraction, -9));
    });
}

inline constexpr int8_t kTwiceValue[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
inline constexpr float kValue[16] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f,
                                     -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// 64 weights (32 bytes) as unsigned bytes 2 * value + 12: those of low nibbles, those of high nibbles.
struct Shifted {
    uint8_t low[32], high[32];
};

inline Shifted shifted64(const uint8_t* bytes) {
    Shifted out;
    for (int i = 0; i < 32; ++i) {
        out.low[i] = static_cast<uint8_t>(kTwiceValue[bytes[i] & 15] + 12);
        out.high[i] = static_cast<uint8_t>(kTwiceValue[bytes[i] >> 4] + 12);
    }
    return out;
}

// Lane j: the sum over bytes 4j to 4j + 3 of weight * (256 * upper + lower), both nibbles; exact in int32.
inline Float8 dot64(const Shifted& weights, const int8_t* planes) {
    return make8([&](int lane) {
        int32_t total = 0;
        for (int i = 4 * lane; i < 4 * lane + 4; ++i) {
            total += weights.low[i] * (256 * planes[i] + planes[i + 64]);
            total += weights.high[i] * (256 * planes[i + 32] + planes[i + 96]);
        }
        return static_cast<float>(total);
    });
}

// 32 weights (16 bytes) as float32 in their order.
struct Float32x32 {
    Float8 part[4];
};

inline Float32x32 values32(const uint8_t* bytes) {
    Float32x32 out;
    for (int i = 0; i < 32; ++i) out.part[i / 8].lane[i % 8] = kValue[i % 2 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15];
    return out;
}

}  // namespace hideaway
