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
    static constexpr uint64_t kNoScale = 0x7f7f7f7f7f7f7f7f;  // ones: zero bytes mean 2^-127, slow as a subnormal
    struct Scales {
        Float8 part[1];
    };
    static Scales scales(const uint64_t* words) { return {{e8m0(words[0])}}; }
    // The scales of unit i of a group, lane j for weights 8j to 8j + 7 of the unit.
    template <int i>
    static Float8 of_unit(const Scales& s) {
        return spread4<i>(s.part[0]);
    }
};

struct Nvfp4 {
    static constexpr int kBlock = 16;
    static constexpr int kGroupScales = kGroup / kBlock;
    static constexpr uint64_t kNoScale = 0;
    struct Scales {
        Float8 part[2];
    };
    static Scales scales(const uint64_t* words) { return {{e4m3(words[0]), e4m3(words[1])}}; }
    template <int i>
    static Float8 of_unit(const Scales& s) {
        return spread2<i % 2>(s.part[i / 2]);
    }
};

// The first `count` of eight bytes, lowest first, zeros after them. Built in a register: bytes stored one by one and
// loaded as a word would wait for the store.
inline uint64_t word_at(const uint8_t* bytes, int64_t count) {
    uint64_t word = 0;
    if (count >= 8) {
        std::memcpy(&word, bytes, sizeof word);  // the lowest byte is the first on the little-endian machines meant here
    } else {
        for (int64_t i = 0; i < count; ++i) word |= static_cast<uint64_t>(bytes[i]) << 8 * i;
    }
    return word;
}

// The first `count` of N bytes, zeros after them.
template <int N>
inline void copy_padded(uint8_t (&to)[N], const uint8_t* from, int64_t count) {
    for (int at = 0; at < N; at += 8) {
        const uint64_t word = word_at(from + at, count - at);
        std::memcpy(to + at, &word, sizeof word);
    }
}

// The scales of group `group` of a row of `count` blocks whose scales begin at `bytes`; Format::kNoScale beyond it.
template <class Format>
inline typename Format::Scales group_scales(const uint8_t* bytes, int64_t count, int64_t group) {
    uint64_t words[Format::kGroupScales / 8];
    for (int part = 0; part < Format::kGroupScales / 8; ++part) {
        const int64_t first = group * Format::kGroupScales + 8 * part, left = count - first;
        if (left >= 8) {
            words[part] = word_at(bytes + first, 8);
        } else if (left <= 0) {
            words[part] = Format::kNoScale;
        } else {
            // The row's last eight bytes in one load, where it has so many.
            words[part] = count >= 8 ? word_at(bytes + count - 8, 8) >> 8 * (8 - left) : word_at(bytes + first, left);
            words[part] |= Format::kNoScale << 8 * left;
        }
    }
    return Format::scales(words);
}

inline int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace hideaway
