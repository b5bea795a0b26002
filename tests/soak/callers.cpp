#include "tests/soak/callers.hpp"

#include <array>
#include <exception>
#include <iostream>
#include <random>

#include "tests/support/http_call.hpp"

namespace werk::test {

namespace {

using Random = std::mt19937_64;

std::uint64_t pick(Random& random, std::uint64_t below) { return random() % below; }

enum class Leaves : std::uint8_t { never, at_once, after_first_piece };

struct Plan {
  std::string target;
  std::string body;
  bool streamed = false;
  Leaves leaves = Leaves::never;
};

// Three models that are there and, now and then, one that isn't; both dialects.
Plan make_plan(Random& random) {
  constexpr std::array kModels = {"a", "b", "c"};
  const bool unknown = pick(random, 50) == 0;
  const std::string model = unknown ? "nobody" : kModels[pick(random, kModels.size())];
  Plan plan;
  plan.streamed = pick(random, 4) != 0;
  const bool messages = pick(random, 3) == 0;
  plan.target = messages ? "/v1/messages" : "/v1/chat/completions";
  plan.body = R"({"model":")" + model + R"(","max_tokens":64,"stream":)" +
              (plan.streamed ? "true" : "false") +
              R"(,"messages":[{"role":"user","content":"Hi"}]})";
  const std::uint64_t fate = pick(random, 10);
  if (fate == 0) plan.leaves = Leaves::at_once;
  if (fate == 1) plan.leaves = Leaves::after_first_piece;
  return plan;
}

bool holds(const std::string& body, std::string_view text) {
  return body.find(text) != std::string::npos;
}

void make_call(std::uint16_t port, const Plan& plan, Seen& seen) {
  HttpCall call(port, "POST", plan.target, plan.body);
  ++seen.made;
  if (plan.leaves == Leaves::at_once) {
    ++seen.left;
    return;
  }
  if (call.status() != 200) {
    call.whole_body();
    ++seen.refused;
    return;
  }
  if (plan.leaves == Leaves::after_first_piece && plan.streamed) {
    call.body_until("data:");
    ++seen.left;
    return;
  }
  const std::string& body = call.whole_body();
  const bool ended = !plan.streamed || holds(body, "[DONE]") || holds(body, "message_stop");
  if (call.end() == BodyEnd::proper && ended) {
    ++seen.whole;
  } else if (plan.streamed && holds(body, "\"error\"")) {
    ++seen.refused;
  } else {
    ++seen.broken;
  }
}

}  // namespace

Seen& Seen::operator+=(const Seen& other) {
  made += other.made;
  whole += other.whole;
  refused += other.refused;
  left += other.left;
  broken += other.broken;
  return *this;
}

Callers::Callers(std::uint16_t port, std::size_t count, std::uint64_t seed)
    : port_(port), seen_(count) {
  for (std::size_t i = 0; i < count; ++i)
    threads_.emplace_back([this, i, seed] { run(i, seed + i); });
}

Callers::~Callers() { stop(); }

void Callers::wait_for(std::uint64_t calls) {
  std::unique_lock lock(mutex_);
  const std::uint64_t until = ended_ + calls;
  changed_.wait(lock, [&] { return ended_ >= until; });
}

Seen Callers::stop() {
  over_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  Seen all;
  for (const Seen& one : seen_) all += one;
  return all;
}

void Callers::run(std::size_t index, std::uint64_t seed) {
  Random random(seed);
  while (!over_) {
    try {
      make_call(port_, make_plan(random), seen_[index]);
    } catch (const std::exception& error) {
      std::cerr << "soak: a call failed: " << error.what() << "\n";
      ++seen_[index].broken;
    }
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }
}

}  // namespace werk::test
