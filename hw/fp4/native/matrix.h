// An FP4 matrix where it lies, and what differs between the two formats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__) && defined(__FMA__) && !defined(HIDEAWAY_GENERIC)
#include "lanes_avx2.h"
#else
#include "lanes_generic.h"
#endif

namespace hideaway {

inline constexpr int kUnit = 64;    // weights the look-ups take at a time
inline constexpr int kGroup = 256;  // weights of one step of the inner loops: four units

// (out, in) weights: each output's codes contiguous, two a byte, low nibble first; padded to whole blocks.
struct Matrix {
    const uint8_t* codes;
    const uint8_t* scales;
    int64_t columns;  // in, a multiple of the block

    int64_t codes_stride() const { return columns / 2; }
};

struct Mxfp4 {
    static constexpr int kBlock = 32;
    static constexpr int kGroupScales = kGroup / kBlock;
    struct Scales {
        Float8 part[1];
    };
    static Scales scales(const uint8_t* bytes) { return {{e8m0(bytes)}}; }
    // The scales of unit i of a group, lane j for weights 8j to 8j + 7 of the unit.
    template <int i>
    static Float8 of_unit(const Scales& s) {
        return spread4<i>(s.part[0]);
    }
};

struct Nvfp4 {
    static constexpr int kBlock = 16;
    static constexpr int kGroupScales = kGroup / kBlock;
    struct Scales {
        Float8 part[2];
    };
    static Scales scales(const uint8_t* bytes) { return {{e4m3(bytes), e4m3(bytes + 8)}}; }
    template <int i>
    static Float8 of_unit(const Scales& s) {
        return spread2<i % 2>(s.part[i / 2]);
    }
};

// Copies of a known small size where there is one: a call to memcpy would cost more than the work around it.
inline void copy_bytes(uint8_t* to, const uint8_t* from, int64_t count) {
    for (; count >= 8; count -= 8, to += 8, from += 8) std::memcpy(to, from, 8);
    for (int64_t i = 0; i < count; ++i) {
        to[i] = from[i];
        asm volatile("" : : : "memory");  // keeps the loop a loop
    }
}

// The scales of group `group` of a row of `count` blocks whose scales begin at `bytes`; zero bytes beyond the row.
template <class Format>
inline typename Format::Scales group_scales(const uint8_t* bytes, int64_t count, int64_t group) {
    const int64_t first = group * Format::kGroupScales, left = count - first;
    if (left >= Format::kGroupScales) return Format::scales(bytes + first);
    uint8_t padded[Format::kGroupScales] = {};
    copy_bytes(padded, bytes + first, left);
    return Format::scales(padded);
}

inline int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace hideaway
