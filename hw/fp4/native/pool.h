// Worker threads that help the calling thread and never hold it up unless they are in the middle of a task.
//
// A fork-join barrier waits for every thread of the team, even one the operating system has not scheduled yet; on a
// machine with other work that is a time slice lost in each call. Here tasks are claimed one at a time, the caller
// claims them too, and it waits only for tasks that were claimed. After a fork the child's caller does all of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace hideaway {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#endif
}

class Pool {
  public:
    explicit Pool(int threads) {
        for (int worker = 1; worker < threads; ++worker) std::thread([this] { serve(); }).detach();
        has_workers_ = threads > 1;
    }

    // Call run(task) for every task in [0, count), on this thread and on workers that are free; returns when all ran.
    template <class Run>
    void each(int count, const Run& run) {
        std::unique_lock<std::mutex> alone(mutex_, std::try_to_lock);
        if (!has_workers_ || count < 2 || !alone.owns_lock()) {
            for (int task = 0; task < count; ++task) run(task);
            return;
        }
        call_ = [](const void* context, int task) { (*static_cast<const Run*>(context))(task); };
        context_ = &run;
        finished_.store(0, std::memory_order_relaxed);
        const uint64_t job = (state_.load(std::memory_order_relaxed) >> 32) + 1;
        state_.store(job << 32 | static_cast<uint32_t>(count), std::memory_order_release);
        state_.notify_all();
        while (help()) {}
        wait_for(static_cast<uint32_t>(count));
    }

  private:
    // state_: number of the job in the high half, tasks of it that nobody has claimed in the low half. A claim
    // compares both, so a late worker cannot take a task of a job it did not see, and a claimed task keeps call_
    // and context_ alive, because the caller waits for it.
    std::atomic<uint64_t> state_{0};
    std::atomic<uint32_t> finished_{0};
    std::mutex mutex_;
    bool has_workers_ = false;
    void (*call_)(const void*, int) = nullptr;
    const void* context_ = nullptr;

    static constexpr auto kSpin = std::chrono::microseconds(50);  // the gap between two stages of an expert

    bool help() {
        uint64_t seen = state_.load(std::memory_order_acquire);
        while (static_cast<uint32_t>(seen) != 0) {
            if (state_.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel)) {
                call_(context_, static_cast<int>(static_cast<uint32_t>(seen)) - 1);
                finished_.fetch_add(1, std::memory_order_release);
                finished_.notify_one();
                return true;
            }
        }
        return false;
    }

    void serve() {
        for (;;) {
            while (help()) {}
            const auto until = std::chrono::steady_clock::now() + kSpin;
            bool found = false;
            while (!found && std::chrono::steady_clock::now() < until) {
                for (int turn = 0; turn < 32; ++turn) relax();
                found = static_cast<uint32_t>(state_.load(std::memory_order_relaxed)) != 0;
            }
            if (found) continue;
            const uint64_t seen = state_.load(std::memory_order_acquire);
            if (static_cast<uint32_t>(seen) == 0) state_.wait(seen, std::memory_order_acquire);
        }
    }

    void wait_for(uint32_t count) {
        const auto until = std::chrono::steady_clock::now() + kSpin;
        uint32_t done = finished_.load(std::memory_order_acquire);
        while (done != count) {
            if (std::chrono::steady_clock::now() < until) {
                for (int turn = 0; turn < 32; ++turn) relax();
            } else {
                finished_.wait(done, std::memory_order_acquire);
            }
            done = finished_.load(std::memory_order_acquire);
        }
    }
};

}  // namespace hideaway
